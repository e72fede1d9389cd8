package crashtest

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate"
)

// logLine is what the tests read of a line that a host logs.
type logLine struct {
	Level   string `json:"level"`
	Msg     string `json:"msg"`
	Tenant  string `json:"tenant"`
	Topic   string `json:"topic"`
	Message string `json:"message"`
	Attempt int    `json:"attempt"`
	Line    string `json:"line"`    // of a guest
	Verdict string `json:"verdict"` // of a delivery
}

// run identifies one handling: a message may be handled more than once.
type run struct {
	message string
	attempt int
}

// record is what the tests know of the handlings by all hosts of a folder, from the files that they logged to.
type record struct {
	begun    map[string]int      // handlings that began, by message
	last     map[string]int      // highest attempt that began
	ended    map[string]int      // attempt whose handling ended, and no verdict was reported yet
	paused   map[string]int      // attempt whose guest is paused
	acked    map[string]struct{} // messages whose acknowledgement was reported
	comeback []string            // messages that were handled after that
	attempts []run               // attempts that the host counted wrong

	guestLines map[string]int                        // in this run, by tenant
	consumers  map[substrate.TopicName]consumerState // in this run
}

// consumerState is what a consumer that handles one message at a time was doing.
type consumerState struct {
	begun int // handlings
	doing doing
}

type doing uint8

const (
	claiming doing = iota // or waiting for messages
	handling
	settling
)

func newRecord() *record {
	return &record{begun: map[string]int{}, last: map[string]int{}, ended: map[string]int{}, paused: map[string]int{}, acked: map[string]struct{}{}}
}

// read reads what the host that ended last has logged.
func (r *record) read(t *testing.T, f folder) {
	t.Helper()
	r.guestLines, r.consumers = map[string]int{}, map[substrate.TopicName]consumerState{}
	raw, err := os.ReadFile(f.file(logFile))
	require.NoError(t, err)
	for raw := range bytes.Lines(raw) {
		if !bytes.HasSuffix(raw, []byte("\n")) {
			break // the kill came in between
		}
		var l logLine
		require.NoError(t, json.Unmarshal(raw, &l), "%s", raw)
		require.NotEqual(t, "error", l.Level, "%s", raw)
		r.add(t, l)
	}
}

func (r *record) add(t *testing.T, l logLine) {
	t.Helper()
	name := substrate.TopicName{Tenant: l.Tenant, Topic: l.Topic}
	c := r.consumers[name]
	defer func() { r.consumers[name] = c }()
	switch l.Msg {
	case "guest wrote":
		r.guestLines[l.Tenant]++
		switch l.Line {
		case beginLine:
			c.begun++
			c.doing = handling
			r.begins(run{l.Message, l.Attempt})
		case endLine:
			c.doing = settling
			r.ended[l.Message] = l.Attempt
		}
	case "guest is paused":
		r.paused[l.Message] = l.Attempt
	case "guest goes on":
		delete(r.paused, l.Message)
	case "delivery":
		c.doing = claiming
		delete(r.ended, l.Message)
		require.Contains(t, []string{"ack", "retry", "bury"}, l.Verdict, "message %s", l.Message)
		if l.Verdict == "ack" {
			r.acked[l.Message] = struct{}{}
		}
	}
}

// charged returns how many attempts of a message must have been counted: a crash takes back that of a handling that had
// ended and wasn't settled, or whose guest was paused, unless it came right after the end or at an end of the pause.
func (r *record) charged(message string) int {
	last := r.last[message]
	if last > 0 && (r.ended[message] == last || r.paused[message] == last) {
		return last - 1
	}
	return last
}

// begins notes a handling. The host must have counted at least as many attempts as handlings began, but for those it took
// back, and none twice.
func (r *record) begins(this run) {
	if this.attempt == r.last[this.message] && r.charged(this.message) < this.attempt {
		r.begun[this.message]--
		r.last[this.message]--
	}
	delete(r.ended, this.message)
	delete(r.paused, this.message)
	r.begun[this.message]++
	if this.attempt < r.begun[this.message] || this.attempt <= r.last[this.message] {
		r.attempts = append(r.attempts, this)
	}
	r.last[this.message] = max(r.last[this.message], this.attempt)
	if _, done := r.acked[this.message]; done {
		r.comeback = append(r.comeback, this.message)
	}
}

// handled returns how many handlings began in this run.
func (r *record) handled() int {
	n := 0
	for _, c := range r.consumers {
		n += c.begun
	}
	return n
}

// settling returns how many settlements were in flight at the end of this run.
func (r *record) settling() int {
	n := 0
	for name, c := range r.consumers {
		if c.doing == settling && r.complete(name) {
			n++
		}
	}
	return n
}

// claiming returns how many consumers had a claim in flight at the end of this run: they had no message in hand, and
// either the log has recorded a claim since the run before, or there must have been one, because the consumer was at work
// and an acknowledged message was waiting.
func (r *record) claiming(logs map[substrate.TopicName]topicInLog, before map[string]int, acked map[string]struct{}) int {
	n := 0
	for name, l := range logs {
		c := r.consumers[name]
		if c.doing != claiming || !r.complete(name) {
			continue
		}
		_, waiting := acked[l.next]
		if l.claimedSince(before, r.last) || waiting && c.begun > 0 {
			n++
		}
	}
	return n
}

// complete reports whether no line of the tenant's guests can have been dropped in this run: fewer than one second's
// worth were written.
func (r *record) complete(name substrate.TopicName) bool {
	return r.guestLines[name.Tenant] < limits.GuestLogLinesPerSec
}
