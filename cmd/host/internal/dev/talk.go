package dev

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/longshore/longshore/cmd/host/internal/telemetry"
	"github.com/longshore/longshore/limits"
)

// Talk writes lines of several speakers to one writer, whole. Its methods may be called from many goroutines.
type Talk struct {
	mu sync.Mutex
	w  io.Writer
}

// NewTalk returns a Talk that writes to w.
func NewTalk(w io.Writer) *Talk { return &Talk{w: w} }

// Write writes what is whole lines already, such as an entry of a log.
func (t *Talk) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, err := t.w.Write(p)
	if err != nil {
		return n, fmt.Errorf("write: %w", err)
	}
	return n, nil
}

// say writes a line, or one for each line of the text, with what has no visible form escaped.
func (t *Talk) say(format string, args ...any) {
	var b strings.Builder
	for line := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n") {
		b.Write(telemetry.Escape([]byte(line)))
		b.WriteByte('\n')
	}
	_, _ = io.WriteString(t, b.String()) // there is nobody else to tell
}

// output passes on what a build says: line by line as it says it, with what has no visible form escaped, and no more than
// limits.BuildOutputBytes. It is used by one goroutine. End it.
type output struct {
	talk    *Talk
	line    []byte // that has no end yet
	written int
	full    bool
}

// Write implements io.Writer. It fails never: a build isn't to end for what it says.
func (o *output) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n') + 1
		whole := end > 0
		if !whole {
			end = len(rest)
		}
		end = min(end, limits.BuildLineBytes-len(o.line))
		o.line = append(o.line, rest[:end]...)
		if rest = rest[end:]; whole || len(o.line) >= limits.BuildLineBytes {
			o.flush()
		}
	}
	return len(p), nil
}

// flush writes the line as far as it is there, but for the first bytes of a character.
func (o *output) flush() {
	whole := len(o.line) - cutOff(o.line)
	text := string(bytes.TrimSuffix(bytes.TrimSuffix(o.line[:whole], []byte("\n")), []byte("\r")))
	o.line = append(o.line[:0], o.line[whole:]...)
	if o.full {
		return
	}
	if o.full = o.written+whole > limits.BuildOutputBytes; o.full {
		o.talk.say("longshore: the build has said %d bytes, and what more it says is not shown", o.written)
		return
	}
	o.written += whole
	o.talk.say("%s", text)
}

// end writes what had no end of a line.
func (o *output) end() {
	if len(o.line) > 0 {
		o.line = append(o.line, '\n')
		o.flush()
	}
}

// cutOff returns how many bytes at the end of text begin a character that isn't whole.
func cutOff(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if utf8.RuneStart(text[len(text)-n]) {
			if utf8.FullRune(text[len(text)-n:]) {
				return 0
			}
			return n
		}
	}
	return 0
}
