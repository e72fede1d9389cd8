package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/longshore/longshore/substrate"
)

// ErrNoRehearsal says that the queue can't be looked at without changing it.
var ErrNoRehearsal = errors.New("dispatcher: the queue is no RehearsalQueue: nothing can be rehearsed on it")

// Rehearsal runs messages on a version of a consumer that is to come, and on the one that runs, and keeps nothing of what comes
// of it: the queue is read and never written, and nobody is charged. A message takes the steps of a delivery up to the decision,
// in turns for the same workers, one at a time. Make one with Dispatcher.NewRehearsal, and close it. It is for one goroutine.
type Rehearsal struct {
	dispatcher *Dispatcher
	stop       context.Context // done once the dispatcher stops
	now, next  *consumer       // now is nil if there is nothing to compare with
}

// NewRehearsal begins a rehearsal of a consumer. It is compared with the consumer of its name that takes from the same topic, if
// one runs; if that has a canary, with the version beside it. Run waits until the rehearsal is closed.
//
// The guest of next is closed with the rehearsal, unless a consumer has it too; after an error it is still the caller's. Errors
// are faults of next, ErrNoRehearsal, and ErrStopped if the dispatcher doesn't run.
func (d *Dispatcher) NewRehearsal(next Consumer) (*Rehearsal, error) {
	queue, can := d.options.Queue.(RehearsalQueue)
	if !can {
		return nil, ErrNoRehearsal
	}
	o := d.options
	o.Consumers = []Consumer{next}
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	next = o.Consumers[0]
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.phases == nil {
		return nil, ErrStopped
	}
	r := &Rehearsal{dispatcher: d, stop: d.phases.claim, next: d.rehearsing(next, queue)}
	for _, c := range d.consumers {
		if c.name() == next.name() && c.Topic == next.Topic {
			r.now = d.rehearsing(c.Consumer, queue)
		}
	}
	for _, c := range r.versions() {
		d.ending[c] = struct{}{} // so that its guest stays for as long as this does
	}
	d.running.Add(1)
	return r, nil
}

// rehearsing makes the consumer of a rehearsal: as it would be, but for what others would notice.
func (d *Dispatcher) rehearsing(c Consumer, queue RehearsalQueue) *consumer {
	c.Canary, c.Events = nil, Events{}
	s := d.shared
	s.queue, s.log, s.observer = &unwritten{of: queue, marks: map[string]uint64{}}, d.shared.log.Named("rehearsal"), silent{}
	s.inquiries, s.audience = newInquiries(), &audience{}
	s.hooks = nil
	for _, h := range d.shared.hooks {
		s.hooks = append(s.hooks, Hook{Before: h.Before})
	}
	made := newConsumer(c, s, newGuestLog(zap.NewNop(), c.Tenant, Caps{}))
	made.rehearses = true
	return made
}

// versions returns the versions that messages are run on.
func (r *Rehearsal) versions() []*consumer {
	if r.now == nil {
		return []*consumer{r.next}
	}
	return []*consumer{r.now, r.next}
}

// Next returns the version that is rehearsed, with its defaults.
func (r *Rehearsal) Next() Consumer { return r.next.Consumer }

// Now returns the version that it is compared with, and whether there is one.
func (r *Rehearsal) Now() (Consumer, bool) {
	if r.now == nil {
		return Consumer{}, false
	}
	return r.now.Consumer, true
}

// Run runs messages on both versions and returns what would become of each, in their order; now is nil if there is nothing to
// compare with. What is given at once is split into calls as what is claimed at once is. Leases say only where messages are;
// attempts count from 1. The error is the cause of ctx, or ErrStopped; then nothing is known.
func (r *Rehearsal) Run(ctx context.Context, messages []substrate.Delivery) (now, next []Rehearsed, err error) {
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	unwatch := context.AfterFunc(r.stop, func() { cut(ErrStopped) }) //nolint:contextcheck // it watches the dispatcher's
	defer unwatch()
	p := phases{stop: ctx, claim: ctx, run: ctx, settle: ctx}
	if r.now != nil {
		if now, err = r.now.rehearse(p, messages); err != nil {
			return nil, nil, err
		}
	}
	if next, err = r.next.rehearse(p, messages); err != nil {
		return nil, nil, err
	}
	return now, next, nil
}

// Close ends the rehearsal. It may be called more than once.
func (r *Rehearsal) Close(ctx context.Context) {
	if r.dispatcher == nil {
		return
	}
	d := r.dispatcher
	r.dispatcher = nil
	defer d.running.Done()
	for _, c := range r.versions() {
		d.ended(context.WithoutCancel(ctx), c)
	}
}

// rehearse runs messages and returns what would become of each.
func (c *consumer) rehearse(p phases, messages []substrate.Delivery) ([]Rehearsed, error) {
	messages = slices.Clone(messages)
	for i := range messages {
		messages[i].Lease.Token = uint64(i) + 1 // by which it is found again
	}
	found := make([]Rehearsed, len(messages))
	for _, together := range c.together(messages) {
		j := c.newShift(p).newJob(together, time.Now())
		c.handle(p, j)
		j.turn.done()
		if p.run.Err() == nil {
			for _, u := range j.appendUnits(nil) {
				c.judge(u, found)
			}
		}
		j.end()
		if p.run.Err() != nil {
			return nil, fmt.Errorf("rehearse consumer %s: %w", c.Name, context.Cause(p.run))
		}
	}
	return found, nil
}
