package substrate

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// registerAttempts is after how many attempts a claim buries, in the histories.
const registerAttempts = 3

// A message is a register: what a call did to it, or found of it, is an operation. A claim is one for each message: it
// took or buried it, or, unless it was full, did not find it claimable.
type (
	regInput struct {
		kind     string // "publish", "claim", "settle", "extend", "redrive", "reopen"
		id       string
		token    uint64 // of the lease, for settle and extend
		verdict  Verdict
		reason   string
		delay    int64
		from, to int64 // unix ns: the times of the call and of its return
	}

	regOutput struct {
		result  string // claim: "took", "buried", "missed"; else "done" or "refused"
		token   uint64
		attempt int
		reason  string
		until   int64
	}

	// regState is the register. What is free may be claimed from a moment between lo and hi on; a lease ends there.
	regState struct {
		kind    string // "" for none, "free", "leased", "dead", "done"
		token   uint64
		attempt int
		reason  string
		lo, hi  int64
	}
)

// register is the model: which steps of a message are right.
func register() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			index := map[string]int{}
			var parts [][]porcupine.Operation
			for _, op := range history {
				id := op.Input.(regInput).id
				i, known := index[id]
				if !known {
					i = len(parts)
					index[id] = i
					parts = append(parts, nil)
				}
				parts[i] = append(parts[i], op)
			}
			return parts
		},
		Init: func() any { return regState{} },
		Step: func(state, input, output any) (bool, any) {
			return state.(regState).step(input.(regInput), output.(regOutput))
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
	}
}

func (s regState) step(in regInput, out regOutput) (bool, regState) {
	switch in.kind {
	case "publish":
		return s.kind == "", regState{kind: "free", lo: in.from, hi: in.from}
	case "claim":
		return s.claim(in, out)
	case "settle":
		return s.settle(in, out)
	case "extend":
		if out.result == "refused" {
			return !s.holds(in.token), s
		}
		legal := s.holds(in.token)
		s.lo, s.hi = out.until, out.until
		return legal, s
	case "redrive":
		if out.result == "refused" {
			return s.kind != "dead", s
		}
		return s.kind == "dead", regState{kind: "free", lo: in.from, hi: in.to}
	default: // reopen: leases are void, and nothing ran
		if s.kind == "leased" {
			s.kind, s.lo, s.hi = "free", in.from, in.to
			s.attempt--
		}
		return true, s
	}
}

func (s regState) holds(token uint64) bool { return s.kind == "leased" && s.token == token }

// claim says what a claim may do. What is free or under a lease can be had from its time on.
func (s regState) claim(in regInput, out regOutput) (bool, regState) {
	open := s.kind == "free" || s.kind == "leased"
	switch out.result {
	case "missed":
		return !open || s.hi > in.from, s
	case "buried":
		return open && s.lo <= in.to && s.attempt >= registerAttempts, regState{kind: "dead"}
	default:
		legal := open && s.lo <= in.to && s.attempt < registerAttempts && out.attempt == s.attempt+1 && out.reason == s.reason
		return legal, regState{kind: "leased", token: out.token, attempt: out.attempt, reason: s.reason, lo: out.until, hi: out.until}
	}
}

func (s regState) settle(in regInput, out regOutput) (bool, regState) {
	if out.result == "refused" {
		return !s.holds(in.token), s
	}
	legal := s.holds(in.token)
	switch in.verdict {
	case Ack:
		return legal, regState{kind: "done"}
	case Bury:
		return legal, regState{kind: "dead"}
	case Release:
		s.attempt--
	case Retry:
	}
	if in.reason != "" {
		s.reason = in.reason
	}
	s.kind, s.token, s.lo, s.hi = "free", 0, in.from+in.delay, in.to+in.delay
	return legal, s
}
