package dispatcher

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
)

// delivery is one claimed message on its way to a settlement. The goroutine of its job owns it.
type delivery struct {
	substrate.Delivery
	lease *lease

	who   *signedctx.Verified // published it; nil if that isn't known
	fence substrate.Fence     // that the lane accepted; no key if there is none
	older []*delivery         // of the same key, which are not handed over: what becomes of this one becomes of them

	pickedUp bool    // the attempt was told of
	over     bool    // there is a finding
	finding  finding // what it came to
	run      *run    // the last call that it was handed to; nil if there was none
	cause    error   // of a verdict that is not an ack, for the log
	sent     int     // messages that were published at once because of it

	shown []substrate.Message // that would have been, in a rehearsal
}

// comesTo ends the way of a delivery before its settlement.
func (d *delivery) comesTo(f finding) { d.finding, d.over = f, true }

// job is what is handled together: one message, or a batch that was claimed at once. The goroutine of its shift owns it, and
// in between a worker.
type job struct {
	shift      *shift // that it is part of; nil if it is run by itself
	deliveries []*delivery
	turn       *turn
	reruns     int               // of the deliveries, because of conflicts
	leases     []*lease          // of the deliveries, and of those that are older
	size       room              // that it takes
	runs       []*run            // calls whose outcome counts
	telling    sync.WaitGroup    // that deliveries were picked up
	begun      []substrate.Lease // of what the guest runs on
	ended      func()            // notes that it doesn't any more
	// ctx is done once one of the leases is lost, or what runs is to be stopped.
	ctx  context.Context
	lose context.CancelCauseFunc
}

// newJob takes charge of claimed messages, whose leases didn't begin before since, as part of a shift. It must be ended. It
// takes its place in the queue for a worker here.
func (s *shift) newJob(claimed []substrate.Delivery, since time.Time) *job {
	c := s.consumer
	j := &job{
		shift: s, turn: c.workers.enqueue(c.Tenant, c.Name, claimed[0].Suspect),
		leases: make([]*lease, len(claimed)), deliveries: make([]*delivery, len(claimed)),
	}
	j.ctx, j.lose = context.WithCancelCause(s.phases.run)
	all := make([]struct {
		delivery
		lease
	}, len(claimed))
	lost := j.lost
	for i := range claimed {
		d, l := &all[i].delivery, &all[i].lease
		d.Delivery, d.lease = claimed[i], l
		j.leases[i], j.deliveries[i] = l, d
		s.leases.add(l, d.Lease, since, lost)
	}
	return j
}

// open returns the deliveries that still go on.
func (j *job) open() (open []*delivery) {
	for _, d := range j.deliveries {
		if !d.over {
			open = append(open, d)
		}
	}
	return open
}

// goesOn reports whether any delivery still goes on.
func (j *job) goesOn() bool {
	return slices.ContainsFunc(j.deliveries, func(d *delivery) bool { return !d.over })
}

// each takes the deliveries that still go on through a step, which says of each whether it goes on.
func (j *job) each(step func(*delivery) (f finding, goesOn bool)) {
	for _, d := range j.deliveries {
		if d.over {
			continue
		}
		if f, goesOn := step(d); !goesOn {
			d.comesTo(f)
		}
	}
}

// all ends the way of those that still go on.
func (j *job) all(f finding) {
	for _, d := range j.deliveries {
		if !d.over {
			d.comesTo(f)
		}
	}
}

// screenAll takes a job through the steps before its turn.
func (c *consumer) screenAll(j *job) {
	j.each(c.verify)
	j.each(c.screen)
	c.coalesce(j)
}

// handle takes a job through all steps before its settlement, and waits for that.
func (c *consumer) handle(p phases, j *job) {
	c.screenAll(j)
	if j.goesOn() {
		c.onWorker(p, j, j.do)
	}
}

// settleAll settles what jobs have come to.
func (c *consumer) settleAll(p phases, jobs []*job) {
	units := make([]*unit, 0, len(jobs))
	for _, j := range jobs {
		j.turn.done() // what follows needs no worker
		j.telling.Wait()
		units = j.appendUnits(units)
	}
	c.settleTogether(p, units)
}

// endAll ends jobs that were settled.
func (c *consumer) endAll(jobs []*job) {
	var size room
	for _, j := range jobs {
		j.end()
		size = size.plus(j.size)
	}
	c.condition.inFlight(-size.messages)
	c.slots.give(size)
	c.hostSlots.give(size)
}

// chance returns a random number in [0, 1).
func chance() float64 {
	return rand.Float64() //nolint:gosec // it only spreads retries
}

// end gives back what the job holds. The leases are left as they are: they were settled, or are lost.
func (j *job) end() {
	j.turn.done()
	j.releaseRuns()
	for _, l := range j.leases {
		l.letGo()
	}
	j.lose(nil)
}

// verify checks that the message is the one that its publisher's context was sealed to. The guest may not see it otherwise.
func (c *consumer) verify(d *delivery) (f finding, goesOn bool) {
	b := Binding(d.Message)
	b.Tenant, b.Topic = c.Tenant, c.Topic
	who, err := c.context.Verify(d.Message.Envelope, b)
	if err == nil {
		d.who = &who
		return c.checkAge(d, who)
	}
	class := signedctx.ClassMalformed
	if refusal, ok := errors.AsType[*signedctx.Refusal](err); ok {
		class = refusal.Class
	}
	if class == signedctx.ClassMissing && c.ContextOptional {
		return finding{}, true
	}
	d.cause = err
	return finding{end: atContext, refusal: class}, false
}

// onWorker has a worker do something with a job, and waits for it.
func (c *consumer) onWorker(p phases, j *job, do func()) {
	if err := j.turn.perform(p.claim, j.ctx, do); err != nil {
		j.all(finding{end: notStarted})
	}
}

// invoke runs the guest on what still goes on, until it returns, breaks a limit, loses a lease, or the host stops it.
func (c *consumer) invoke(p phases, j *job) {
	open := j.open()
	if len(open) == 0 {
		return
	}
	j.begun = make([]substrate.Lease, len(open))
	for i, d := range open {
		j.begun[i] = d.Lease
	}
	var err error
	if j.ended, err = c.queue.Start(j.begun...); err != nil {
		f := c.storageFault(open[0], err)
		j.all(f)
		return
	}
	c.storageWorked(starting)
	defer func() { j.ended() }() // the last one: see asker
	c.tellPickups(j, open)
	c.divide(p, j, open)
}

// follow applies what a decision means for the consumer.
func (c *consumer) follow(d *delivery, dec decision) {
	switch dec.then {
	case goOn:
	case hold:
		if c.condition.hold(dec.delay, dec.reason) {
			c.log.Warn("consumer claims nothing for a while", zap.String("reason", dec.reason), zap.Duration("for", dec.delay))
		}
	case pause:
		c.pause(dec.reason, d.cause)
	}
}

// final reports whether the queue will never take a call about this lease.
func final(err error) bool {
	return errors.Is(err, substrate.ErrLeaseLost) || errors.Is(err, substrate.ErrClosed)
}
