package dispatcher

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"

	"go.uber.org/zap"
)

// ErrStopped says that the dispatcher has stopped, or is stopping.
var ErrStopped = errors.New("dispatcher: stopped")

// Swap replaces the consumers by others. A consumer that is given again with everything as it was, its Guest included,
// goes on untouched. One whose name is there and that differs in anything is replaced by its new version, one that isn't
// given is removed, and one that wasn't there is added.
//
// When Swap returns nil, nothing more is claimed for a version that was replaced or removed: what it had claimed and not
// begun is released, uncharged, and what its guest was handed it finishes. Until then the new version counts those messages
// to its concurrency, if it takes from the same lane. A new version begins unpaused. After an error the consumers are those
// that they were; faults are those of New.
//
// A guest that no consumer has any more is closed once its last call has ended, see ClosingGuest, and must not be given
// again. After an error the new guests are still the caller's. Run waits for everything that a swap began.
//
// Swaps wait for each other, at most until ctx is done. One before Run says with which consumers that begins; one after it
// is ErrStopped.
func (d *Dispatcher) Swap(ctx context.Context, consumers []Consumer) error {
	o := d.options
	o.Consumers = consumers
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return err
	}
	select {
	case d.swapping <- struct{}{}:
		defer func() { <-d.swapping }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	gone, running, err := d.retireAllBut(o.Consumers)
	if err != nil {
		return err
	}
	if running {
		for _, c := range gone {
			<-c.noClaims
		}
	}
	//nolint:contextcheck // consumers outlive the swap: their contexts are those of Run
	if err := d.install(o.Consumers); err != nil || running {
		return err
	}
	for _, c := range gone {
		d.free(context.WithoutCancel(ctx), c)
	}
	return nil
}

// retireAllBut ends the claiming of the consumers that are not in the plan as they are, and returns them.
func (d *Dispatcher) retireAllBut(plan []Consumer) (gone []*consumer, running bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return nil, false, ErrStopped
	}
	running = d.phases != nil
	for _, c := range d.consumers {
		if c.isIn(plan) {
			continue
		}
		if running {
			c.retire()
		}
		d.ending[c] = struct{}{}
		gone = append(gone, c)
	}
	return gone, running, nil
}

// install makes a plan the current one, and starts what it adds if the dispatcher runs.
func (d *Dispatcher) install(plan []Consumer) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return ErrStopped
	}
	for _, c := range d.replace(plan) {
		if d.phases != nil {
			d.start(c)
		}
	}
	return nil
}

// replace makes a plan the current one, and returns the consumers that it adds. Those that are in it as they are stay.
func (d *Dispatcher) replace(plan []Consumer) (added []*consumer) {
	before := make(map[consumerName]*consumer, len(d.consumers))
	for _, c := range d.consumers {
		before[c.name()] = c
	}
	logs := make(map[string]*guestLog)
	next := make([]*consumer, len(plan))
	for i, entry := range plan {
		if logs[entry.Tenant] == nil {
			logs[entry.Tenant] = cmp.Or(d.logs[entry.Tenant], newGuestLog(d.shared.log, entry.Tenant, d.options.Caps[entry.Tenant]))
		}
		earlier := before[entry.name()]
		if earlier != nil && earlier.is(entry) {
			next[i] = earlier
			continue
		}
		next[i] = newConsumer(entry, d.shared, logs[entry.Tenant])
		if earlier != nil {
			next[i].succeed(earlier)
		}
		added = append(added, next[i])
	}
	d.consumers, d.logs = next, logs
	d.shared.audience.set(plan)
	return added
}

// isIn reports whether a plan has the consumer as it is.
func (c *consumer) isIn(plan []Consumer) bool {
	for _, entry := range plan {
		if entry.name() == c.name() {
			return c.is(entry)
		}
	}
	return false
}

// is reports whether an entry says what the consumer already is.
func (c *consumer) is(entry Consumer) bool {
	own := c.Consumer
	if (own.Canary == nil) != (entry.Canary == nil) || !sameGuest(own.Guest, entry.Guest) {
		return false
	}
	if k := own.Canary; k != nil {
		if k.Percent != entry.Canary.Percent || !c.canary.is(entry.Canary.Consumer) {
			return false
		}
	}
	own.Guest, own.Canary, entry.Guest, entry.Canary = nil, nil, nil, nil
	return reflect.DeepEqual(own, entry)
}

// sameGuest reports whether a and b are the same. Guests that can't be compared are not.
func sameGuest(a, b Guest) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// succeed takes over from the version before what belongs to their lane: the room for what is in flight, so that both
// together don't have more than one may, and what is known of the keys that were handled.
func (c *consumer) succeed(earlier *consumer) {
	if c.Tenant != earlier.Tenant || c.Topic != earlier.Topic || c.Lane != earlier.Lane {
		return
	}
	c.slots = earlier.slots
	c.slots.give(room{messages: c.Concurrency - earlier.Concurrency})
	if c.newest != nil && earlier.newest != nil {
		c.newest = earlier.newest
	}
	c.shareWithCanary()
}

// ended is called when the last delivery of a consumer has ended.
func (d *Dispatcher) ended(ctx context.Context, c *consumer) {
	d.swapping <- struct{}{} // a swap that retired it may be about to hand its guest on
	defer func() { <-d.swapping }()
	d.free(ctx, c)
}

// free gives back what only a consumer had that a swap retired.
func (d *Dispatcher) free(ctx context.Context, c *consumer) {
	for _, unused := range d.forget(c) {
		if g, closes := unused.(ClosingGuest); closes {
			if err := g.Close(ctx); err != nil {
				c.log.Error("a module that is not used any more was not freed", zap.String("module", g.Digest()), zap.Error(err))
			}
		}
	}
}

// forget takes a retired consumer out, and returns those of its guests that are left without a consumer.
func (d *Dispatcher) forget(c *consumer) (unused []Guest) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, retired := d.ending[c]; !retired {
		return nil
	}
	delete(d.ending, c)
	others := slices.AppendSeq(slices.Clone(d.consumers), maps.Keys(d.ending))
	if !slices.ContainsFunc(others, func(other *consumer) bool { return other.name() == c.name() }) {
		d.shared.workers.forget(c.Tenant, c.Name)
	}
	for _, g := range c.guestsOf() {
		has := func(other *consumer) bool {
			return slices.ContainsFunc(other.guestsOf(), func(of Guest) bool { return sameGuest(of, g) })
		}
		if !slices.ContainsFunc(others, has) {
			unused = append(unused, g)
		}
	}
	return unused
}
