package dispatcher

import (
	"errors"
	"fmt"
	"hash/fnv"

	"github.com/longshore/longshore/substrate"
)

// Canary is another version of a consumer, which gets a share of its messages. Which those are depends on their ordering keys, or on
// their ids where they have none, so that all attempts of a message are on one version. A canary that pauses gets no more.
type Canary struct {
	Percent int // of the messages, 1 to 99
	// Consumer is the version. Its name, tenant, topic, lane, concurrency, attempts, lease and batch are those of the consumer
	// that it belongs to, which claims for both.
	Consumer Consumer
}

// CanaryStatus is what a canary is doing now.
type CanaryStatus struct {
	Percent  int
	Module   string // hex SHA-256
	Version  string
	State    State
	Reason   string
	InFlight int
}

// faults lists what is wrong with the canary of a consumer. Defaults are filled in.
func (k *Canary) faults(c Consumer) (faults []error) {
	if k == nil {
		return nil
	}
	own := k.Consumer
	if k.Percent < 1 || k.Percent > 99 {
		faults = append(faults, fmt.Errorf("canary of %d%%: want 1 to 99", k.Percent))
	}
	if own.Canary != nil {
		faults = append(faults, errors.New("a canary has a canary: want one at a time"))
	}
	if own.name() != c.name() || own.Topic != c.Topic || own.Lane != c.Lane {
		faults = append(faults, errors.New("a canary takes from another lane, or has another name: want the same"))
	}
	if own.Concurrency != c.Concurrency || own.MaxAttempts != c.MaxAttempts || own.Lease != c.Lease || own.Batch != c.Batch {
		faults = append(faults, errors.New("a canary has another concurrency, max attempts, lease or batch: want the same, since one claims for both"))
	}
	own.Canary = nil
	for _, fault := range own.faults() {
		faults = append(faults, fmt.Errorf("canary: %w", fault))
	}
	return faults
}

// addCanary makes the consumer of a canary, which claims nothing itself.
func (c *consumer) addCanary() {
	if c.Canary == nil {
		return
	}
	c.canary = newConsumer(c.Canary.Consumer, c.shared, c.guests)
	c.canary.isCanary = true
	c.shareWithCanary()
}

// shareWithCanary gives the canary what belongs to the lane.
func (c *consumer) shareWithCanary() {
	if c.canary == nil {
		return
	}
	c.canary.slots = c.slots
	if c.canary.newest != nil && c.newest != nil {
		c.canary.newest = c.newest
	}
}

// guestsOf returns the guests of a consumer.
func (c *consumer) guestsOf() []Guest {
	if c.canary == nil {
		return []Guest{c.Guest}
	}
	return []Guest{c.Guest, c.canary.Guest}
}

// assignment is what of a claim is handled together, and by which version.
type assignment struct {
	to         *consumer
	deliveries []substrate.Delivery
}

// assign splits what was claimed at once by version, and then into what is handled together. Without batches the order stays.
func (c *consumer) assign(claimed []substrate.Delivery) (out []assignment) {
	if c.canary == nil {
		return c.assignTo(c, claimed)
	}
	if c.Batch.Max <= 1 {
		for _, d := range claimed {
			out = append(out, assignment{c.versionFor(d.Message), []substrate.Delivery{d}})
		}
		return out
	}
	var own, canarys []substrate.Delivery
	for _, d := range claimed {
		if c.versionFor(d.Message) == c {
			own = append(own, d)
		} else {
			canarys = append(canarys, d)
		}
	}
	return append(c.assignTo(c, own), c.assignTo(c.canary, canarys)...)
}

func (c *consumer) assignTo(to *consumer, claimed []substrate.Delivery) (out []assignment) {
	for _, together := range c.together(claimed) {
		out = append(out, assignment{to, together})
	}
	return out
}

// versionFor returns the version that handles a message.
func (c *consumer) versionFor(m substrate.Message) *consumer {
	if canaryTakes(m, c.Canary.Percent) && c.canary.condition.status().State != StatePaused {
		return c.canary
	}
	return c
}

// canaryTakes reports whether a message is among those of a hundred that a canary takes.
func canaryTakes(m substrate.Message, percent int) bool {
	h := fnv.New64a()
	key := m.Options.OrderingKey
	if key == "" {
		key = m.ID
	}
	_, _ = h.Write([]byte(key)) // a hash takes everything
	sum := h.Sum64()
	return (sum^sum>>32)%100 < uint64(percent)
}

// canaryStatus returns what the canary is doing; nil if there is none.
func (c *consumer) canaryStatus() *CanaryStatus {
	if c.canary == nil {
		return nil
	}
	s := c.canary.status()
	return &CanaryStatus{Percent: c.Canary.Percent, Module: s.Module, Version: s.Version, State: s.State, Reason: s.Reason, InFlight: s.InFlight}
}

// beginCanary lets the canary take messages.
func (c *consumer) beginCanary() {
	if c.canary != nil {
		c.canary.condition.begin(func() {}) // it claims nothing that would have to stop
	}
}

// resumeCanary lets a paused canary go on, and reports whether it was paused.
func (c *consumer) resumeCanary() bool {
	if c.canary == nil || !c.canary.resume() {
		return false
	}
	c.beginCanary()
	return true
}
