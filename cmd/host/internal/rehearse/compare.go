package rehearse

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"

	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

// side says what would become of a message in one version.
func (w *work) side(r dispatcher.Rehearsed) wire.RehearsedSide {
	of := r.Receipt
	s := wire.RehearsedSide{
		Verdict: of.Verdict, Reason: of.Reason, Handled: r.Handled, Pauses: r.Pauses, Guest: r.Text, Refused: r.Refused,
		Outputs: []wire.RehearsedOutput{}, Batch: of.Batch, Fuel: of.Fuel, WallNS: of.Wall.Nanoseconds(),
		PeakMemoryBytes: of.PeakMemoryBytes, HostCalls: of.HostCalls,
	}
	if r.Cause != nil {
		s.Cause = r.Cause.Error()
	}
	for _, m := range r.Outputs {
		o := outputOf(m.ContentType, pairsOf(m.Metadata), m.Payload)
		o.Topic, o.Options = m.Topic, w.Options(m.Options)
		s.Outputs = append(s.Outputs, o)
	}
	for _, m := range r.Replies {
		s.Replies = append(s.Replies, outputOf(m.ContentType, pairsOf(m.Metadata), m.Data))
	}
	for _, v := range r.Values {
		one := wire.RehearsedValue{Bucket: v.Bucket, Key: v.Key, Delete: v.Delete, Bytes: len(v.Data)}
		if !v.Delete {
			one.SHA256 = digestOf(v.Data)
		}
		s.Values = append(s.Values, one)
	}
	return s
}

func outputOf(contentType string, metadata []wire.Pair, payload []byte) wire.RehearsedOutput {
	return wire.RehearsedOutput{
		ContentType: contentType, Metadata: metadata, PayloadBytes: len(payload), PayloadSHA256: digestOf(payload),
		PayloadBase64: append([]byte{}, payload[:min(len(payload), limits.RehearsalPayloadBytes)]...),
	}
}

func pairsOf[P ~struct{ Key, Value string }](of []P) (out []wire.Pair) {
	for _, p := range of {
		out = append(out, wire.Pair(p))
	}
	return out
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// compare says in what the end of a message differs, and whether it is better or worse.
func compare(m *wire.RehearsedMessage, before, after dispatcher.Rehearsed) {
	m.Change = wire.SameEnd
	differ := func(what string, differs bool) {
		if differs && !slices.Contains(m.Differs, what) {
			m.Differs = append(m.Differs, what)
		}
	}
	differ("outputs", len(before.Outputs) != len(after.Outputs))
	for i := range min(len(before.Outputs), len(after.Outputs)) {
		a, b := before.Outputs[i], after.Outputs[i]
		differ("topic", a.Topic != b.Topic)
		differ("content-type", a.ContentType != b.ContentType)
		differ("metadata", !slices.Equal(a.Metadata, b.Metadata))
		differ("payload", !bytes.Equal(a.Payload, b.Payload))
		differ("options", !bytes.Equal(a.Options.Encode(), b.Options.Encode()))
	}
	differ("replies", !slices.EqualFunc(before.Replies, after.Replies, sameReply))
	differ("values", !slices.EqualFunc(before.Values, after.Values, sameWrite))
	if len(m.Differs) > 0 {
		m.Change = wire.OtherOutputs
	}
	differ("verdict", before.Receipt.Verdict != after.Receipt.Verdict)
	differ("reason", before.Receipt.Reason != after.Receipt.Reason)
	if slices.Contains(m.Differs, "verdict") || slices.Contains(m.Differs, "reason") {
		m.Change = wire.OtherVerdict
	}
	m.Better, m.Worse = rank(after) < rank(before), rank(after) > rank(before)
}

func sameReply(a, b messaging.Message) bool {
	return a.ContentType == b.ContentType && slices.Equal(a.Metadata, b.Metadata) && bytes.Equal(a.Data, b.Data)
}

func sameWrite(a, b substrate.ValueWrite) bool {
	return a.Bucket == b.Bucket && a.Key == b.Key && a.Delete == b.Delete && bytes.Equal(a.Data, b.Data)
}

// rank orders ends from the best to the worst: handled, passed over, not done, dead.
func rank(r dispatcher.Rehearsed) int {
	switch r.Receipt.Verdict {
	case substrate.Ack.String():
		if r.Handled {
			return 0
		}
		return 1
	case substrate.Bury.String():
		return 3
	}
	return 2
}

// summarise counts the messages.
func (w *work) summarise() {
	s := &w.out.Summary
	logs, worst := 0.0, 0.0
	for i := range w.out.Messages {
		m := &w.out.Messages[i]
		s.Messages++
		s.HandledAfter += count(m.After.Handled)
		s.Same += count(m.Change == wire.SameEnd)
		s.VerdictChanged += count(m.Change == wire.OtherVerdict)
		s.OutputsChanged += count(m.Change == wire.OtherOutputs)
		s.Better += count(m.Better)
		s.Worse += count(m.Worse)
		if m.Before == nil {
			continue
		}
		s.HandledBefore += count(m.Before.Handled)
		if !m.Before.Handled || !m.After.Handled || m.Before.Fuel == 0 || m.After.Fuel == 0 {
			continue
		}
		ratio := float64(m.After.Fuel) / float64(m.Before.Fuel)
		s.FuelMessages++
		logs += math.Log(ratio)
		if ratio > worst {
			worst, s.FuelWorstID = ratio, m.ID
		}
	}
	if s.FuelMessages > 0 {
		mean := math.Exp(logs / float64(s.FuelMessages))
		s.FuelRatio, s.FuelWorst = &mean, &worst
	}
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}
