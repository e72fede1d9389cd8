package substrate

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"sync"
)

// proofStep is one call that a worker of a child makes of its log: reported before it is made, and again, with what came
// of it, once it has returned. Whoever reads the reports of a killed child knows what it was told, and what it had asked.
type proofStep struct {
	Worker  int
	Number  int // of the worker's steps, from 1
	Done    bool
	Kind    string // "publish", "claim", "settle", "redrive", "discard", "extend"
	Relaxed bool   // the answer says nothing about the disk

	Messages []proofSent    // of a publish, or of the outbox of a settle
	Settled  []proofVerdict // of a settle
	ID       string         // of the dead letter that is moved
	Attempts int            // the most that a claim allows
	Taken    []proofTaken   // what a claim has returned
	Buried   []string       // and has buried
	Last     uint64         // the last position that was given

	Fault string // what must not be; all else is empty then
}

type proofSent struct{ ID, Topic, Digest string }

type proofVerdict struct {
	ID, Reason string
	Verdict    Verdict
}

type proofTaken struct {
	ID, Digest string
	Attempt    int
}

// durable reports whether the answer of the step says that it is on the disk.
func (s *proofStep) durable() bool {
	switch s.Kind {
	case "claim":
		return len(s.Buried) > 0
	case "extend":
		return false
	case "redrive", "discard":
		return true
	default:
		return !s.Relaxed
	}
}

// proofReport writes lines of JSON to a pipe. A write of a line is one system call: a kill leaves none of it, or all, or,
// for a long one, a part that the reader drops.
type proofReport struct {
	mu sync.Mutex
	to io.Writer
}

func (r *proofReport) line(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.to.Write(append(b, '\n')); err != nil {
		os.Exit(0) // nobody reads
	}
}

// readProofLines decodes lines until the end, and drops a last one that was cut.
func readProofLines[T any](from io.Reader, take func(T)) error {
	r := bufio.NewReaderSize(from, 1<<20)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return nil //nolint:nilerr // the writer was killed
		}
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			return fmt.Errorf("a report: %w in %.200q", err, line)
		}
		take(v)
	}
}

// proofPayload returns the payload of a message: its id, its topic, and bytes that follow from the id.
func proofPayload(id, topic string, size int) []byte {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	random := rand.NewChaCha8([32]byte(append(h.Sum(nil), make([]byte, 24)...)))
	b := append([]byte(id+" "+topic+" "), make([]byte, size)...)
	_, _ = random.Read(b[len(b)-size:])
	return b
}

func proofDigest(payload []byte) string {
	sum := sha256.Sum256(payload)
	return hex.EncodeToString(sum[:8])
}
