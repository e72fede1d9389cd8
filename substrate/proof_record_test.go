package substrate

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// An act is a line of what a workload did: that it asked for something, or what it was answered. Of a call that was asked
// and not answered nobody knows the outcome.
type act struct {
	Call     uint64 `json:"c"`           // the same for the question and its answer
	Kind     string `json:"k"`           // "publish", "claim", "settle", "redrive", "discard", "pause"
	Step     string `json:"s"`           // "ask", "done", "refused", "unknown"
	Why      string `json:"w,omitempty"` // of a refusal
	Topic    string `json:"t,omitempty"`
	Messages []note `json:"m,omitempty"` // of a publish, or the outbox of a settlement

	Receipts []Receipt `json:"r,omitempty"`
	Taken    []taking  `json:"d,omitempty"` // of a claim, in the answer; of a settlement, in the question
	IDs      []string  `json:"i,omitempty"` // that a claim buried, or a discard names
	Count    int       `json:"n,omitempty"` // of a redrive or discard, in the answer
	Paused   bool      `json:"p,omitempty"`
}

// note is a message that is published.
type note struct {
	ID      string `json:"i"`
	Topic   string `json:"t"`
	Sum     uint32 `json:"s"` // of its payload
	Key     string `json:"k,omitempty"`
	Delayed bool   `json:"d,omitempty"`
	Expires bool   `json:"e,omitempty"`
}

// taking is a delivery, and what becomes of it.
type taking struct {
	ID      string  `json:"i"`
	Lease   Lease   `json:"l"`
	Attempt int     `json:"a"`
	Verdict Verdict `json:"v,omitempty"`
	Reason  string  `json:"r,omitempty"`
}

func noteIn(m *Message) note {
	return note{
		ID: m.ID, Topic: m.Topic, Sum: crc32.ChecksumIEEE(m.Payload), Key: m.Options.IdempotencyKey,
		Delayed: m.Options.Delay > 0, Expires: m.Options.TTL > 0,
	}
}

// recorder writes acts as they happen. What it has written survives the process.
type recorder struct {
	mu    sync.Mutex
	out   io.Writer
	calls uint64
	acts  int
}

// ask records a question, before it is asked, and returns how to record its answer.
func (r *recorder) ask(a act) (answer func(err error, a act)) {
	r.mu.Lock()
	r.calls++
	a.Call, a.Step = r.calls, "ask"
	r.mu.Unlock()
	r.write(a)
	return func(err error, b act) {
		b.Call, b.Kind, b.Step = a.Call, a.Kind, "done"
		switch {
		case errors.Is(err, context.Canceled):
			b.Step = "unknown"
		case err != nil:
			b.Step, b.Why = "refused", err.Error()
		}
		r.write(b)
	}
}

func (r *recorder) write(a act) {
	line, err := json.Marshal(a)
	if err != nil {
		panic(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.out.Write(append(line, '\n')); err != nil {
		panic(err)
	}
	r.acts++
}

func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.acts
}

// readActs reads what a recorder wrote, but for a last line that was cut short.
func readActs(t *testing.T, b []byte) (acts []act) {
	t.Helper()
	whole := b[:bytes.LastIndexByte(b, '\n')+1]
	s := bufio.NewScanner(bytes.NewReader(whole))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var a act
		require.NoError(t, json.Unmarshal(s.Bytes(), &a), "%s", s.Text())
		acts = append(acts, a)
	}
	require.NoError(t, s.Err())
	return acts
}
