package messaging

import (
	"bytes"

	"github.com/longshore/longshore/limits"
)

// Names of the streams that a guest may write to.
const (
	Stdout = "stdout"
	Stderr = "stderr"
)

// logCapture cuts what a guest writes into lines.
type logCapture struct {
	written        int64
	stdout, stderr []byte // unfinished lines
	whole          []byte // lines of wasi:logging, which are always finished
}

// WriteLog takes bytes that the guest wrote to Stdout, Stderr or a level of wasi:logging, and hands whole lines on. Bytes past Limits.LogBytes
// end the call: WriteLog logs what fits, then panics with *limits.Error.
func (c *Call) WriteLog(stream string, p []byte) {
	left := c.o.Limits.LogBytes - c.log.written
	c.log.written += int64(len(p))
	err := limits.Check(limits.NameLogBytes, c.log.written, c.o.Limits.LogBytes)
	if err != nil {
		p = p[:max(left, 0)]
	}
	partial := c.log.partial(stream)
	for {
		line, rest, whole := bytes.Cut(p, []byte("\n"))
		*partial = append(*partial, line...)
		if !whole {
			break
		}
		c.emit(stream, partial)
		p = rest
	}
	if err != nil {
		panic(err)
	}
}

// FlushLog hands on lines that the guest didn't finish. Call it once, after the guest ended in any way.
func (c *Call) FlushLog() {
	for _, stream := range []string{Stdout, Stderr} {
		if partial := c.log.partial(stream); len(*partial) > 0 {
			c.emit(stream, partial)
		}
	}
}

func (c *Call) emit(stream string, line *[]byte) {
	if c.o.Log != nil {
		c.o.Log(stream, *line)
	}
	*line = (*line)[:0]
}

func (l *logCapture) partial(stream string) *[]byte {
	switch stream {
	case Stdout:
		return &l.stdout
	case Stderr:
		return &l.stderr
	}
	return &l.whole
}
