package substrate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/store"
)

// Reasons that the log itself gives.
const (
	ReasonMaxAttempts = "max-attempts"   // delivered as often as allowed, and no better reason is known
	ReasonCorrupt     = "corrupt-record" // the stored message does not check: it is kept as it is and never delivered
	ReasonMissing     = "missing-record" // there is no record of the message
)

// Claim gives messages of a lane to the caller, each under a lease of its own, and counts the attempt before the payload
// leaves. It does not wait for messages: see WaitReady. Messages that were delivered MaxAttempts times, or that expired, are
// buried instead; they don't count to MaxMessages. A message whose record does not check goes into quarantine: see
// Log.Quarantined.
//
// Once asked, the claim goes on even if ctx ends; its deliveries are returned all the same. An error may come beside
// deliveries, which are the caller's then too. A group has to exist (ErrNoGroup), and the default lane must not be off
// (ErrLaneOff).
func (l *Log) Claim(ctx context.Context, r ClaimRequest) (ClaimResult, error) {
	if err := r.validate(); err != nil {
		return ClaimResult{}, err
	}
	ln, err := l.findLane(laneName{TopicName{r.Tenant, r.Topic}, r.Lane})
	if ln == nil || err != nil {
		return ClaimResult{}, err
	}
	for range claimRounds {
		result, again, err := l.claimOnce(ctx, ln, r)
		if !again || err != nil {
			return result, err
		}
	}
	return ClaimResult{}, nil
}

// claimRounds bounds how often a claim looks further when all that it met had to be parked.
const claimRounds = 16

// claimOnce makes one claim, and reports whether it found nothing but messages to park.
func (l *Log) claimOnce(ctx context.Context, ln *lane, r ClaimRequest) (result ClaimResult, again bool, err error) {
	if err := l.fill(ln, r.MaxMessages); err != nil {
		return ClaimResult{}, false, err
	}
	var p claimPlan
	bytes := int64(r.MaxMessages)*takenBytes + limits.ClaimMessages*buriedBytes + limits.WindowMessages*parkedBytes
	err = l.submit(ctx, &request{bytes: bytes, need: needLittle, prompt: p.prompt, plan: func(now time.Time) (frame, error) {
		switch {
		case l.state.existing(ln.id()) != ln:
			return nil, nil // it was deleted meanwhile, or its tenant was
		case ln.off():
			return nil, ErrLaneOff
		}
		p = planClaim(ln, r, now)
		if p.claimFrame == nil {
			return nil, nil
		}
		return &p, nil
	}})
	if err != nil || p.claimFrame == nil {
		return ClaimResult{}, false, err
	}
	result, err = l.deliver(context.WithoutCancel(ctx), ln, &p)
	return result, len(p.taken)+len(p.buried) == 0 && p.changes(), err
}

// Bounds of what one message takes in the frames of claims and moves.
const (
	takenBytes  = 96
	parkedBytes = 24
	buriedBytes = 64 + limits.ReasonBytes
	movedBytes  = 64 + limits.OperatorBytes
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

// deliver reads what the claim took. A message whose record does not check is quarantined; after a fault of the database,
// or for a record of a newer program, the error comes beside what could be read, and the leases of the rest run out.
func (l *Log) deliver(ctx context.Context, ln *lane, p *claimPlan) (ClaimResult, error) {
	t := ln.topic
	result := ClaimResult{Buried: p.letters, Deliveries: make([]Delivery, 0, len(p.taken))}
	var faults []error
	var found []*quarantined
	p.ownBodies()
	for i := range p.taken {
		e := &p.taken[i]
		lease := Lease{Tenant: t.name.Tenant, Topic: t.name.Topic, Lane: p.name.lane, Position: e.position, Token: p.token}
		m, err := l.claimed(t, e.position, p.bodies[i])
		switch {
		case err == nil:
			result.Deliveries = append(result.Deliveries, Delivery{
				Message: m, Lease: lease, Attempt: e.attempt,
				Expires: time.Unix(0, p.until), PreviousReason: p.reasons[i], Operator: p.origins[i].operator, Suspect: p.suspect,
			})
		case unreadable(err):
			found = append(found, l.inspect(t, e.position, err))
		default:
			faults = append(faults, err)
		}
	}
	var err error
	if result.Quarantined, result.Skipped, err = l.quarantine(ctx, t, found); err != nil {
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
