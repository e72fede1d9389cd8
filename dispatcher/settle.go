package dispatcher

import (
	"errors"
	"slices"

	"github.com/longshore/longshore/substrate"
)

// unit is what is settled in one commit: the deliveries of one run with what it published, or those that were never run.
type unit struct {
	run        *run // nil if there was none
	job        *job
	deliveries []*delivery
	mute       bool // tells nobody: its events were refused

	decisions   []decision
	receipts    []Receipt
	published   int // messages of its run that are committed with it
	replies     []*reply
	events      []event
	outbox      []substrate.Message // what is published with it: the messages of the run and the events
	settlements []substrate.Settlement
}

// appendUnits adds what there is to settle of a job.
func (j *job) appendUnits(units []*unit) []*unit {
	for _, r := range j.runs {
		units = append(units, &unit{run: r, job: j, deliveries: r.deliveries})
	}
	rest := &unit{job: j}
	for _, d := range j.deliveries {
		if !slices.Contains(j.runs, d.run) {
			rest.deliveries = append(rest.deliveries, d)
		}
	}
	if len(rest.deliveries) > 0 {
		units = append(units, rest)
	}
	return units
}

// settleTogether settles units in one commit or, if the queue refuses that, each by itself.
func (c *consumer) settleTogether(p phases, units []*unit) {
	var apart, together []*unit
	for _, u := range units {
		switch {
		case !c.prepare(u):
		case u.commitsValues():
			apart = append(apart, u)
		default:
			together = append(together, u)
		}
	}
	if len(together) > 1 && c.queue.Settle(p.settle, allSettlements(together), wholeOutbox(together)) == nil {
		c.storageWorked(settling)
		for _, u := range together {
			c.settled(u)
		}
		together = nil
	}
	for _, u := range slices.Concat(together, apart) {
		c.carryOut(p, u)
	}
}

func allSettlements(units []*unit) (all []substrate.Settlement) {
	all = make([]substrate.Settlement, 0, len(units))
	for _, u := range units {
		all = append(all, u.settlements...)
	}
	return all
}

func wholeOutbox(units []*unit) (all []substrate.Message) {
	n := 0
	for _, u := range units {
		n += len(u.outbox)
	}
	all = make([]substrate.Message, 0, n)
	for _, u := range units {
		all = append(all, u.outbox...)
	}
	return all
}

// settle decides about a unit and carries that out.
func (c *consumer) settle(p phases, u *unit) {
	if c.prepare(u) {
		c.carryOut(p, u)
	}
}

// prepare decides about a unit, and makes what the queue is told. It reports false if nothing is left of it. What the decision
// means for the consumer is done here, so that it doesn't claim again what it gives back.
func (c *consumer) prepare(u *unit) bool {
	if c.dropLost(u); len(u.deliveries) == 0 {
		return false
	}
	c.decide(u)
	outbox, err := u.seal()
	if err != nil {
		u.redecide(c, finding{end: atSeal}, err)
		outbox = nil
	}
	u.published, u.replies = len(outbox), u.answers()
	u.receipts = make([]Receipt, len(u.deliveries))
	counts := u.counts(outbox)
	for i, d := range u.deliveries {
		c.follow(d, u.decisions[i])
		u.receipts[i] = c.receipt(d, u.decisions[i], counts[i]+repliesTo(d.Message.ID, u.replies))
	}
	u.events = c.eventsOf(u, u.receipts)
	u.outbox = with(outbox, u.events)
	u.settlements = u.toQueue()
	return true
}

// carryOut commits a unit that is prepared, and does what follows from the queue's answer.
func (c *consumer) carryOut(p phases, u *unit) {
	err := c.commit(p, u)
	if err != nil {
		drop(u.events)
	}
	refused, isRefusal := refusedBy(err)
	switch {
	case err == nil:
		c.settled(u)
	case isRefusal && len(u.events) > 0: // perhaps because of them
		c.allTold(u.events, err)
		u.mute = true
		c.settle(p, u)
	case errors.Is(err, substrate.ErrLeaseLost):
		c.settleApart(p, u)
	case errors.Is(err, substrate.ErrStaleFence):
		u.passOverStale(err)
		c.settle(p, u)
	case errors.Is(err, substrate.ErrConflict):
		c.conflicted(p, u, err)
	case isRefusal && (u.published > 0 || u.commitsValues()):
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
	if !slices.ContainsFunc(u.deliveries, func(d *delivery) bool { return d.lease.lost() || len(d.older) > 0 }) {
		return
	}
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

// settled notes what the queue has taken.
func (c *consumer) settled(u *unit) {
	for _, r := range u.replies {
		c.inquiries.deliver(r)
	}
	c.allTold(u.events, nil)
	for i, d := range u.deliveries {
		c.watch(d, u.decisions[i])
	}
	if !u.holds() {
		c.condition.progressed(u.published+u.sent(), c.Concurrency) // after what may hold the consumer
	}
	for i, d := range u.deliveries {
		if u.decisions[i].handled() {
			c.newest.handled(d)
		}
		c.report(d, u.receipts[i])
		for _, older := range d.older {
			r := u.receipts[i].ofOlder(older, u.decisions[i])
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

// counts returns how many messages of an outbox are counted to each delivery.
func (u *unit) counts(outbox []substrate.Message) []int {
	n := make([]int, len(u.deliveries))
	to := u.countedTo()
	for i := range outbox {
		n[to(&outbox[i])]++
	}
	return n
}

// countedTo returns a function that returns to which delivery a message of the outbox is counted: to that which caused it, and to
// the first one of a unit if that is none of them.
func (u *unit) countedTo() func(*substrate.Message) int {
	if len(u.deliveries) == 1 {
		return func(*substrate.Message) int { return 0 }
	}
	byID := make(map[string]int, len(u.deliveries))
	for i, d := range u.deliveries {
		byID[d.Message.ID] = i
	}
	return func(m *substrate.Message) int { return byID[m.Parent] }
}

// toQueue returns what the queue is told of a unit.
func (u *unit) toQueue() []substrate.Settlement {
	all := make([]substrate.Settlement, 0, len(u.deliveries))
	for i, d := range u.deliveries {
		dec := u.decisions[i]
		s := substrate.Settlement{Lease: d.Lease, Verdict: dec.verdict, Delay: dec.delay}
		if dec.charges() || dec.noted {
			s.Reason = dec.reason
		}
		if dec.verdict == substrate.Bury {
			s.Receipt, s.Unrun = u.receipts[i].encode(), dec.unrun
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

// commit settles a unit that is prepared. It tries for as long as the storage fails, the leases hold and the host lets it; it
// doesn't insist on an outbox that is refused.
func (c *consumer) commit(p phases, u *unit) error {
	for {
		err := c.settleIn(p, u, u.settlements, u.outbox)
		if err == nil {
			c.storageWorked(settling)
			return nil
		}
		_, refused := refusedBy(err)
		if final(err) || errors.Is(err, substrate.ErrStaleFence) || errors.Is(err, substrate.ErrConflict) ||
			(refused && (len(u.outbox) > 0 || u.commitsValues())) {
			return err
		}
		c.storageFailed(p.settle, settling, err)
		switch {
		case u.deliveries[0].lease.lost():
			return errors.Join(substrate.ErrLeaseLost, err)
		case p.settle.Err() != nil:
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
