package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/longshore/longshore/substrate"
)

// The queue buries messages by itself: in a claim those whose attempts are used up or that expired, and at any time those that
// expire. Events of these are published after the fact.

// errMessageGone is in the chain of an error because of which nothing can be told of a dead letter.
var errMessageGone = errors.New("the dead letter can't be read")

// tellDeaths publishes the deaths of messages of the consumer's lane that the queue buried.
func (c *consumer) tellDeaths(ctx context.Context, letters []substrate.DeadLetter) {
	if c.Events.Death == "" {
		return
	}
	var events []event
	for i := range letters {
		of, err := c.deathOf(ctx, letters[i])
		if err != nil {
			c.told(EventDeath, err)
			continue
		}
		if e, ok := c.event(EventDeath, of); ok {
			events = append(events, e)
		}
	}
	c.publishEvents(ctx, events)
}

// deathOf returns what is known of a dead letter that the queue made.
func (c *consumer) deathOf(ctx context.Context, dead substrate.DeadLetter) (matter, error) {
	m, err := c.queue.DeadMessage(ctx, dead)
	if err != nil {
		return matter{}, fmt.Errorf("%w: %w", errMessageGone, err)
	}
	of := matter{message: &m, receipt: c.buriedReceipt(dead)}
	if who, err := c.context.Verify(m.Envelope, Binding(m)); err == nil {
		of.who = &who
	}
	return of, nil
}

// tellQuarantined publishes that the lanes of the consumer's topic lost messages whose records don't check: of each lane, one
// consumer does.
func (c *consumer) tellQuarantined(ctx context.Context, entries []substrate.QuarantineEntry) {
	if len(entries) == 0 {
		return
	}
	all := c.others()
	if c.mayHoldEvents(all) {
		return // what it was that can't be read isn't known
	}
	told := map[string]bool{}
	for _, other := range all {
		if other.Tenant == c.Tenant && other.Topic == c.Topic && other.Events.Death != "" && !told[other.Lane] {
			told[other.Lane] = true
			other.tellLost(ctx, entries)
		}
	}
}

// mayHoldEvents reports whether one of the consumers has the consumer's topic told of something.
func (c *consumer) mayHoldEvents(all []*consumer) bool {
	for _, other := range all {
		for _, k := range EventKinds() {
			if other.Tenant == c.Tenant && other.Events.topic(k) == c.Topic {
				return true
			}
		}
	}
	return false
}

// tellLost publishes the deaths of messages of the consumer's lane of which little is known.
func (c *consumer) tellLost(ctx context.Context, entries []substrate.QuarantineEntry) {
	var events []event
	for _, e := range entries {
		if !slices.Contains(e.Lanes, c.Lane) {
			continue
		}
		if made, ok := c.event(EventDeath, matter{message: &substrate.Message{}, receipt: c.quarantinedReceipt(e)}); ok {
			events = append(events, made)
		}
	}
	c.publishEvents(ctx, events)
}

// tellExpired publishes the deaths of messages that expired, until the dispatcher stops.
func (d *Dispatcher) tellExpired(p *phases) {
	for {
		select {
		case letters := <-d.options.Expired:
			d.tellDeaths(p.settle, letters)
		case <-p.claim.Done():
			select { // what was there before the stop
			case letters := <-d.options.Expired:
				d.tellDeaths(p.settle, letters)
			default:
				return
			}
		}
	}
}

// tellDeaths hands dead letters to the consumers of their lanes. Of consumers that share a lane, one tells.
func (d *Dispatcher) tellDeaths(ctx context.Context, letters []substrate.DeadLetter) {
	type lane struct{ tenant, topic, name string }
	byLane := map[lane][]substrate.DeadLetter{}
	for _, l := range letters {
		in := lane{l.Tenant, l.Topic, l.Lane}
		byLane[in] = append(byLane[in], l)
	}
	for _, c := range d.current() {
		if c.Events.Death != "" {
			in := lane{c.Tenant, c.Topic, c.Lane}
			c.tellDeaths(ctx, byLane[in])
			delete(byLane, in)
		}
	}
}
