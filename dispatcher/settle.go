package dispatcher

import (
	"errors"

	"github.com/longshore/longshore/substrate"
)

// unit is what is settled in one commit: the deliveries of one run with what it published, or those that were never run.
type unit struct {
	run        *run // nil if there was none
	job        *job
	deliveries []*delivery
	decisions  []decision
	mute       bool // tells nobody: its events were refused
}

// units returns what there is to settle.
func (j *job) units() []*unit {
	var units []*unit
	concluded := map[*run]bool{}
	for _, r := range j.runs {
		concluded[r] = true
		units = append(units, &unit{run: r, job: j, deliveries: r.deliveries})
	}
	rest := &unit{job: j}
	for _, d := range j.deliveries {
		if !concluded[d.run] {
			rest.deliveries = append(rest.deliveries, d)
		}
	}
	if len(rest.deliveries) > 0 {
		units = append(units, rest)
	}
	return units
}

// settle decides about a unit and carries that out: for the consumer first, so that it doesn't claim again what it gives
// back, and then for the messages.
func (c *consumer) settle(p phases, u *unit) {
	if c.dropLost(u); len(u.deliveries) == 0 {
		return
	}
	c.decide(u)
	outbox, err := u.seal()
	if err != nil {
		u.redecide(c, finding{end: atSeal}, err)
		outbox = nil
	}
	replies := u.replies()
	receipts := make([]Receipt, len(u.deliveries))
	for i, d := range u.deliveries {
		c.follow(d, u.decisions[i])
		receipts[i] = c.receipt(d, u.decisions[i], publishedBy(outbox, d, u)+repliesTo(d.Message.ID, replies))
	}
	events := c.eventsOf(u, receipts)
	if err = c.commit(p, u, with(outbox, events), receipts); err != nil {
		drop(events)
	}
	refused, isRefusal := refusedBy(err)
	switch {
	case err == nil:
		for _, r := range replies {
			c.inquiries.deliver(r)
		}
		c.allTold(events, nil)
		c.settled(u, receipts, len(outbox))
	case isRefusal && len(events) > 0: // perhaps because of them
		c.allTold(events, err)
		u.mute = true
		c.settle(p, u)
	case errors.Is(err, substrate.ErrLeaseLost):
		c.settleApart(p, u)
	case errors.Is(err, substrate.ErrStaleFence):
		u.passOverStale(err)
		c.settle(p, u)
	case errors.Is(err, substrate.ErrConflict):
		c.conflicted(p, u, err)
	case isRefusal && (len(outbox) > 0 || u.commitsValues()):
		refused.before = c.condition.outboxRefused(refused.topic)
		u.redecide(c, finding{end: atCommit, refused: refused}, err)
		c.settle(p, u)
	default:
		c.discardAll(u, err)
	}
}

// decide reaches the verdict on each delivery of a unit.
func (c *consumer) decide(u *unit) {
	u.decisions = make([]decision, len(u.deliveries))
	for i, d := range u.deliveries {
		u.decisions[i] = decide(d.finding, d.Attempt, c.policy, chance())
	}
}

// redecide replaces the finding of each delivery that was to be acknowledged, and decides anew.
func (u *unit) redecide(c *consumer, f finding, cause error) {
	for i, d := range u.deliveries {
		if u.decisions[i].handled() {
			d.finding, d.cause = f, cause
		}
	}
	u.mute = false
	c.decide(u)
}

// seal returns what is committed with the unit.
func (u *unit) seal() ([]substrate.Message, error) {
	if u.run == nil {
		return nil, nil
	}
	return u.run.seal(u.acked())
}

// acked returns the ids of the messages that are acknowledged because the guest handled them.
func (u *unit) acked() map[string]bool {
	acked := map[string]bool{}
	for i, d := range u.deliveries {
		if u.decisions[i].handled() {
			acked[d.Message.ID] = true
		}
	}
	return acked
}

// dropLost takes the deliveries out whose lease is lost: those are another holder's.
func (c *consumer) dropLost(u *unit) {
	var held []*delivery
	lost := false
	for _, d := range u.deliveries {
		d.older = c.heldOf(d.older)
		if !d.lease.lost() {
			held = append(held, d)
			continue
		}
		lost = true
		c.discard(d, ReasonLeaseLost)
		for _, older := range d.older {
			older.finding = finding{end: notStarted}
			held = append(held, older)
		}
	}
	if u.deliveries = held; lost {
		u.giveBackShared()
	}
}

// heldOf returns the deliveries whose lease is not lost, and discards the others.
func (c *consumer) heldOf(all []*delivery) (held []*delivery) {
	for _, d := range all {
		if d.lease.lost() {
			c.discard(d, ReasonLeaseLost)
		} else {
			held = append(held, d)
		}
	}
	return held
}

// giveBackShared gives those back that were handled together with one that can't be acknowledged, if something was published
// for all of them together: it can't be committed, and they must not be done without it.
func (u *unit) giveBackShared() {
	if u.run == nil || !u.run.shares() {
		return
	}
	for _, d := range u.deliveries {
		if d.finding.handled() {
			d.finding = finding{end: notStarted}
		}
	}
}

// passOverStale notes which delivery of a unit came from a tenure that is over.
func (u *unit) passOverStale(err error) {
	var stale *substrate.StaleFenceError
	known := errors.As(err, &stale)
	u.giveBackShared()
	for _, d := range u.deliveries {
		if d.fence.Key != "" && (!known || d.Lease == stale.Lease) {
			d.fence, d.cause = substrate.Fence{}, err
			d.finding = finding{end: atFence}
		}
	}
}

// settleApart settles each delivery of a unit by itself, since one of them is lost and it isn't known which.
func (c *consumer) settleApart(p phases, u *unit) {
	if len(u.deliveries) == 1 && len(u.deliveries[0].older) == 0 {
		c.discard(u.deliveries[0], ReasonLeaseLost)
		return
	}
	u.giveBackShared()
	for _, d := range u.deliveries {
		older := d.older
		d.older = nil
		for _, o := range older {
			o.finding, o.cause = d.finding, d.cause
			if o.finding.handled() {
				o.finding = finding{end: atStale} // the newest of its key was handled
			}
			c.settle(p, &unit{job: u.job, deliveries: []*delivery{o}})
		}
		c.settle(p, &unit{run: u.run, job: u.job, deliveries: []*delivery{d}})
	}
}

// settled notes what the queue has taken, with so many messages published.
func (c *consumer) settled(u *unit, receipts []Receipt, published int) {
	for i, d := range u.deliveries {
		c.watch(d, u.decisions[i])
	}
	if !u.holds() {
		c.condition.progressed(published+u.sent(), c.Concurrency) // after what may hold the consumer
	}
	for i, d := range u.deliveries {
		if u.decisions[i].handled() {
			c.newest.handled(d)
		}
		c.report(d, receipts[i])
		for _, older := range d.older {
			r := receipts[i].ofOlder(older, u.decisions[i])
			if u.decisions[i].handled() {
				r.Reason = ReasonStale
			}
			c.report(older, r)
		}
	}
}

// discardAll reports deliveries whose settlement couldn't be stored.
func (c *consumer) discardAll(u *unit, err error) {
	for _, d := range u.deliveries {
		reason := ReasonStorageError
		if d.lease.lost() {
			reason = ReasonLeaseLost
		}
		d.cause = err
		c.discard(d, reason)
	}
}

// sent returns how many messages were published at once for the unit's deliveries.
func (u *unit) sent() (n int) {
	for _, d := range u.deliveries {
		n += d.sent
	}
	return n
}

// publishedBy returns how many messages of an outbox are counted to a delivery: those that it caused, and to the first one
// of a unit those of all.
func publishedBy(outbox []substrate.Message, d *delivery, u *unit) int {
	n := 0
	for _, m := range outbox {
		if m.Parent == d.Message.ID || (d == u.deliveries[0] && !u.has(m.Parent)) {
			n++
		}
	}
	return n
}

func (u *unit) has(id string) bool {
	for _, d := range u.deliveries {
		if d.Message.ID == id {
			return true
		}
	}
	return false
}

// settlements returns what the queue is told of a unit.
func (u *unit) settlements(receipts []Receipt) []substrate.Settlement {
	var all []substrate.Settlement
	for i, d := range u.deliveries {
		dec := u.decisions[i]
		s := substrate.Settlement{Lease: d.Lease, Verdict: dec.verdict, Delay: dec.delay}
		if dec.charges() || dec.noted {
			s.Reason = dec.reason
		}
		if dec.verdict == substrate.Bury {
			s.Receipt, s.Unrun = receipts[i].encode(), dec.unrun
		}
		for _, older := range d.older {
			of := s
			of.Lease = older.Lease
			all = append(all, of)
		}
		if dec.verdict == substrate.Ack {
			s.Fence = d.fence
		}
		all = append(all, s)
	}
	return all
}

// commit settles a unit, with the outbox. It tries for as long as the storage fails, the leases hold and the host lets it; it
// doesn't insist on an outbox that is refused.
func (c *consumer) commit(p phases, u *unit, outbox []substrate.Message, receipts []Receipt) error {
	settlements := u.settlements(receipts)
	for {
		err := c.settleIn(p, u, settlements, outbox)
		if err == nil {
			c.storageWorked(settling)
			return nil
		}
		_, refused := refusedBy(err)
		if final(err) || errors.Is(err, substrate.ErrStaleFence) || errors.Is(err, substrate.ErrConflict) ||
			(refused && (len(outbox) > 0 || u.commitsValues())) {
			return err
		}
		ctx := u.deliveries[0].lease.ctx
		c.storageFailed(ctx, settling, err)
		if ctx.Err() != nil {
			if u.deliveries[0].lease.lost() {
				return errors.Join(substrate.ErrLeaseLost, err)
			}
			return err
		}
	}
}

// holds reports whether a decision of the unit keeps the consumer from claiming.
func (u *unit) holds() bool {
	for _, dec := range u.decisions {
		if dec.then == hold {
			return true
		}
	}
	return false
}
