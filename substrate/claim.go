package substrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/store"
)

// Reasons that the log itself gives.
const (
	ReasonMaxAttempts = "max-attempts"   // delivered as often as allowed, and no better reason is known
	ReasonCorrupt     = "corrupt-record" // the stored message does not check: it is kept as it is and never delivered
)

// Claim gives messages of a lane to the caller, each under a lease of its own, and counts the attempt before the payload
// leaves. It does not wait for messages: see WaitReady. Messages that were delivered MaxAttempts times are buried
// instead; they don't count to MaxMessages.
//
// Once asked, the claim goes on even if ctx ends; its deliveries are returned all the same. An error may come beside
// deliveries, which are the caller's then too.
func (l *Log) Claim(ctx context.Context, r ClaimRequest) (ClaimResult, error) {
	if err := r.validate(); err != nil {
		return ClaimResult{}, err
	}
	t := l.find(TopicName{r.Tenant, r.Topic})
	if t == nil {
		return ClaimResult{}, nil
	}
	if err := l.fillWindow(t); err != nil {
		return ClaimResult{}, err
	}
	var p claimPlan
	bytes := int64(r.MaxMessages)*takenBytes + limits.ClaimMessages*buriedBytes
	err := l.submit(ctx, &request{bytes: bytes, need: needLittle, prompt: p.prompt, plan: func(now time.Time) (frame, error) {
		p = planClaim(t, r, now)
		if p.claimFrame == nil {
			return nil, nil
		}
		return &p, nil
	}})
	if err != nil || p.claimFrame == nil {
		return ClaimResult{}, err
	}
	return l.deliver(ctx, t, &p)
}

// Bounds of what one message takes in the frames of claims and moves.
const (
	takenBytes  = 64
	buriedBytes = 64 + limits.ReasonBytes
	movedBytes  = 64 + limits.KeyBytes
)

func (r *ClaimRequest) validate() error {
	if err := validName(r.Tenant, r.Topic); err != nil {
		return err
	}
	if err := validLane(r.Lane); err != nil {
		return err
	}
	switch {
	case r.MaxMessages < 1 || r.MaxMessages > limits.ClaimCeilingMsgs:
		return fmt.Errorf("claim: MaxMessages is %d: want 1 to %d", r.MaxMessages, limits.ClaimCeilingMsgs)
	case r.MaxBytes < 1:
		return fmt.Errorf("claim: MaxBytes is %d: want at least 1", r.MaxBytes)
	case r.Lease <= 0:
		return fmt.Errorf("claim: Lease is %s: want more than 0", r.Lease)
	case r.MaxAttempts < 1:
		return fmt.Errorf("claim: MaxAttempts is %d: want at least 1", r.MaxAttempts)
	}
	return nil
}

// claimPlan is a claim's frame with what its caller needs to hand the messages out.
type claimPlan struct {
	*claimFrame
	token   uint64
	bodies  [][]byte // of the messages taken, where they are in memory
	reasons []string // their last reasons
	origins []origin
	letters []DeadLetter
}

// apply applies the frame and notes its number, which is the token of its leases.
func (p *claimPlan) apply(s *state, number uint64) {
	p.token = number
	p.claimFrame.apply(s, number)
}

// prompt reports whether the claim takes nothing but messages that were durable before its group, and buries nothing.
func (p *claimPlan) prompt(durable uint64) bool {
	return p.claimFrame != nil && len(p.buried) == 0 &&
		!slices.ContainsFunc(p.taken, func(e taken) bool { return !e.fresh || e.position >= durable })
}

// planClaim chooses what a claim takes and buries: first the messages that were delivered before and are due again, then
// new ones, in order of their positions. It changes nothing.
func planClaim(t *topic, r ClaimRequest, now time.Time) claimPlan {
	if t.paused {
		return claimPlan{}
	}
	p := claimPlan{claimFrame: &claimFrame{
		name: laneName{t.name, r.Lane}, until: now.Add(r.Lease).UnixNano(), died: now.UnixNano(),
	}}
	bytes := int64(0)
	room := func(payloadBytes int) bool {
		bytes += int64(payloadBytes)
		return len(p.taken) < r.MaxMessages && (bytes <= r.MaxBytes || len(p.taken) == 0)
	}
	p.expect(min(r.MaxMessages, t.timers.len()+len(t.window)))
	full := false
	t.timers.each(func(f *flight) bool {
		if f.at > now.UnixNano() {
			return false
		}
		if t.expired(f.position, now.UnixNano()) != "" {
			return true // the sweep is about to bury it
		}
		if f.attempt >= r.MaxAttempts {
			p.bury(t, f, now)
			return len(p.buried) < limits.ClaimMessages
		}
		if full = !room(f.origin.payloadBytes); full {
			return false
		}
		p.take(taken{position: f.position, attempt: f.attempt + 1}, t.inTail(f.position), f.reason, f.origin)
		return true
	})
	for _, e := range t.window {
		if t.expired(e.position, now.UnixNano()) != "" {
			continue
		}
		if full || !room(e.origin.payloadBytes) {
			break
		}
		p.take(taken{position: e.position, attempt: 1, fresh: true, origin: e.origin}, e, "", e.origin)
	}
	if len(p.taken)+len(p.buried) == 0 {
		return claimPlan{}
	}
	return p
}

// expect makes room for n messages.
func (p *claimPlan) expect(n int) {
	p.taken, p.reasons = make([]taken, 0, n), make([]string, 0, n)
	p.origins, p.bodies = make([]origin, 0, n), make([][]byte, 0, n)
}

func (p *claimPlan) take(e taken, held *entry, reason string, o origin) {
	p.taken = append(p.taken, e)
	p.reasons = append(p.reasons, reason)
	p.origins = append(p.origins, o)
	var body []byte
	if held != nil {
		body = held.body
	}
	p.bodies = append(p.bodies, body)
}

func (p *claimPlan) bury(t *topic, f *flight, now time.Time) {
	reason := f.reason
	if reason == "" {
		reason = ReasonMaxAttempts
	}
	p.buried = append(p.buried, buried{f.position, reason})
	dead := deadRecord{attempts: f.attempt, reason: reason, died: now.UnixNano(), origin: f.origin}
	p.letters = append(p.letters, dead.letter(t.name, "", f.position))
}

// deliver reads what the claim took. A message whose record does not check is buried; after a fault of the database, or
// for a record of a newer program, the error comes beside what could be read, and the leases of the rest run out.
func (l *Log) deliver(ctx context.Context, t *topic, p *claimPlan) (ClaimResult, error) {
	result := ClaimResult{Buried: p.letters, Deliveries: make([]Delivery, 0, len(p.taken))}
	var faults []error
	var corrupt []Settlement
	p.ownBodies()
	for i := range p.taken {
		e := &p.taken[i]
		lease := Lease{Tenant: t.name.Tenant, Topic: t.name.Topic, Lane: p.name.lane, Position: e.position, Token: p.token}
		m, err := l.claimed(t, e.position, p.bodies[i])
		switch {
		case err == nil:
			result.Deliveries = append(result.Deliveries, Delivery{
				Message: m, Lease: lease, Attempt: e.attempt,
				Expires: time.Unix(0, p.until), PreviousReason: p.reasons[i],
			})
		case unreadable(err):
			corrupt = append(corrupt, Settlement{Lease: lease, Verdict: Bury, Reason: ReasonCorrupt})
			dead := deadRecord{attempts: e.attempt, reason: ReasonCorrupt, died: time.Now().UnixNano(), origin: p.origins[i]}
			result.Buried = append(result.Buried, dead.letter(t.name, p.name.lane, e.position))
		default:
			faults = append(faults, err)
		}
	}
	if err := l.Settle(context.WithoutCancel(ctx), corrupt, nil); err != nil {
		faults = append(faults, err)
	}
	return result, errors.Join(faults...)
}

// unreadable reports whether err says that a message's record is gone or does not check, and never will.
func unreadable(err error) bool {
	var corrupt *store.CorruptError
	return errors.As(err, &corrupt) || errors.Is(err, store.ErrNotFound) || errors.Is(err, errTruncated)
}

func (l *Log) claimed(t *topic, position uint64, body []byte) (Message, error) {
	if body == nil {
		return l.message(t, position)
	}
	return decodeMessage(t.name, body)
}

// ownBodies copies the bodies that are in memory into one buffer of the caller's.
func (p *claimPlan) ownBodies() {
	n := 0
	for _, body := range p.bodies {
		n += len(body)
	}
	all := make([]byte, 0, n)
	for i, body := range p.bodies {
		if body != nil {
			at := len(all)
			all = append(all, body...)
			p.bodies[i] = all[at:len(all):len(all)]
		}
	}
}
