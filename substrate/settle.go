package substrate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore/longshore/limits"
)

// Settle ends deliveries and publishes outbox, in one commit: all of it, or nothing with an error. It returns when that is
// durable. If one of the leases is not the newest of its message, the error is ErrLeaseLost; if the token of one's fence is
// below what the lane accepted since, ErrStaleFence. An outbox needs an Ack or a Bury: what is to come back publishes nothing.
//
// Messages of the outbox that carry a Reservation were admitted before; the others are admitted as Publish would. Once
// asked, the settlement goes on even if ctx ends.
func (l *Log) Settle(ctx context.Context, settlements []Settlement, outbox []Message) error {
	return l.settle(ctx, settlements, outbox, nil)
}

func (l *Log) settle(ctx context.Context, settlements []Settlement, outbox []Message, values *ValueChanges) error {
	if len(settlements) == 0 && len(outbox) == 0 {
		return nil
	}
	if err := validateSettlements(settlements, len(outbox) > 0); err != nil {
		return err
	}
	var f settleFrame
	var bytes int64
	if len(outbox) > 0 {
		var err error
		if f.outbox.entries, bytes, err = l.encodeMessages(outbox); err != nil {
			return err
		}
	}
	for i := range settlements {
		bytes += entryOverheadBytes + int64(len(settlements[i].Reason)+len(settlements[i].Receipt))
	}
	bytes += values.bytes()
	need := needLittle
	if len(outbox) > 0 || values.adds() {
		need = needMuch
	}
	return l.submit(ctx, &request{bytes: bytes, need: need, plan: func(now time.Time) (frame, error) {
		for i := range settlements {
			item, err := l.planSettlement(&settlements[i], now)
			if err != nil {
				return nil, err
			}
			f.items = append(f.items, item)
		}
		f.relaxed = l.relaxed(len(f.items), func(i int) TopicName { return f.items[i].name.topic })
		if values != nil {
			var err error
			if f.writes, err = l.planValues(settlements[0].Lease.Tenant, values); err != nil {
				return nil, err
			}
		}
		if len(outbox) > 0 {
			if err := l.planPublish(&f.outbox, make([]Receipt, len(outbox)), now, true); err != nil {
				return nil, err
			}
		}
		return &f, nil
	}})
}

func validateSettlements(settlements []Settlement, outbox bool) error {
	if len(settlements) > limits.ClaimCeilingMsgs {
		return fmt.Errorf("settle: %d settlements: want at most %d", len(settlements), limits.ClaimCeilingMsgs)
	}
	seen := make(map[Lease]struct{}, len(settlements))
	ends := false
	for i := range settlements {
		s := &settlements[i]
		if s.Verdict < Ack || s.Verdict > Bury {
			return fmt.Errorf("settle: verdict %d: want Ack, Retry, Release or Bury", s.Verdict)
		}
		ends = ends || s.Verdict == Ack || s.Verdict == Bury
		if err := limits.Check("reason bytes", int64(len(s.Reason)), limits.ReasonBytes); err != nil {
			return err
		}
		if err := limits.Check("receipt bytes", int64(len(s.Receipt)), limits.ReceiptBytes); err != nil {
			return err
		}
		if _, twice := seen[s.Lease]; twice {
			return fmt.Errorf("settle: the lease on position %d stands twice", s.Lease.Position)
		}
		seen[s.Lease] = struct{}{}
	}
	if outbox && !ends {
		return errors.New("settle: an outbox is committed with an Ack or a Bury, and there is none")
	}
	return nil
}

// planSettlement checks the lease and makes the settlement's times absolute.
func (l *Log) planSettlement(s *Settlement, now time.Time) (settled, error) {
	ln := l.holds(s.Lease)
	if ln == nil {
		return settled{}, ErrLeaseLost
	}
	if err := ln.checkFence(s.Lease, s.Fence); err != nil {
		return settled{}, err
	}
	item := settled{name: ln.id(), position: s.Lease.Position, verdict: s.Verdict, reason: s.Reason}
	switch s.Verdict {
	case Retry, Release:
		item.at = now.Add(max(s.Delay, 0)).UnixNano()
	case Bury:
		item.at, item.receipt, item.unrun = now.UnixNano(), s.Receipt, s.Unrun
	case Ack:
		item.keep = l.keeps(ln.topic)
	}
	return item, nil
}

// keeps reports whether the messages of a topic stay for a while after all lanes are done with them. Log.mu is held.
func (l *Log) keeps(t *topic) bool { return l.admission.view(l.state, t.name).KeepMilli.Value > 0 }

// holds returns the lane of a lease that is the newest of its message, or nil.
func (l *Log) holds(lease Lease) *lane {
	ln := l.state.existing(laneName{TopicName{lease.Tenant, lease.Topic}, lease.Lane})
	if ln == nil {
		return nil
	}
	if f := ln.flights[lease.Position]; f == nil || !f.leased || f.token != lease.Token {
		return nil
	}
	return ln
}

// Extend moves the end of the holder's own lease to d from now and returns it, or ErrLeaseLost.
func (l *Log) Extend(ctx context.Context, lease Lease, d time.Duration) (time.Time, error) {
	if d <= 0 {
		return time.Time{}, fmt.Errorf("extend: %s: want more than 0", d)
	}
	var until time.Time
	err := l.submit(ctx, &request{bytes: entryOverheadBytes, need: needLittle, plan: func(now time.Time) (frame, error) {
		ln := l.holds(lease)
		if ln == nil {
			return nil, ErrLeaseLost
		}
		until = now.Add(d)
		return &extendFrame{name: ln.id(), position: lease.Position, until: until.UnixNano()}, nil
	}})
	return until, err
}
