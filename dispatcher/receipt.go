package dispatcher

import (
	"bytes"
	"encoding/json"
	"time"
)

// Verdicts that a Receipt may carry besides those of the queue ("ack", "retry", "release", "bury").
const (
	// VerdictDiscard: the lease was lost, or the settlement couldn't be stored. Nothing was settled.
	VerdictDiscard = "discard"
	// VerdictQuarantine: the message's record does not check. The guest never sees it.
	VerdictQuarantine = "quarantine"
)

// Receipt says what one delivery did and cost. Its text is the host's own; it holds no guest bytes. As JSON it is kept
// with a dead letter.
type Receipt struct {
	Consumer string `json:"consumer"`
	Tenant   string `json:"tenant"`
	Topic    string `json:"topic"`
	Lane     string `json:"lane,omitempty"`
	Message  string `json:"message"` // id
	Attempt  int    `json:"attempt"` // from 1; of what was buried unrun, the last that ran; 0 of what was quarantined

	Verdict string        `json:"verdict"` // "ack", "retry", "release", "bury", "discard" or "quarantine"
	Reason  string        `json:"reason,omitempty"`
	Delay   time.Duration `json:"delay_ns,omitempty"` // until the message may be claimed again

	Module          string        `json:"module,omitempty"` // hex SHA-256 of the module; "" if no guest was started
	Version         string        `json:"version,omitempty"`
	Canary          bool          `json:"canary,omitempty"` // it was the canary's
	Batch           int           `json:"batch,omitempty"`  // messages of the last call, if more than one; each has an equal part of the next three
	Fuel            int64         `json:"fuel"`             // instructions
	Wall            time.Duration `json:"wall_ns"`          // of the guest call
	PeakMemoryBytes int64         `json:"peak_memory_bytes"`
	HostCalls       int64         `json:"host_calls"`
	Published       int           `json:"published"` // messages committed with the acknowledgement or at once, and replies
	At              time.Time     `json:"at"`        // when the verdict was reached
}

// encode returns the JSON form of r, of less than limits.ReceiptBytes: every string of it is bounded and printable.
func (r Receipt) encode() []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return nil // only for a time after the year 9999
	}
	return bytes.TrimSpace(b.Bytes())
}
