package dispatcher

import (
	"context"
	"time"
)

// A consumer is held while what it publishes is refused: claiming more would only run guests whose work can't be kept.

// outboxRefused counts a refusal of what a guest published to a topic ("" if that isn't known), and returns how many there
// were in a row before. Those that ran at the same time count as one.
func (c *condition) outboxRefused(topic string) (before int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Now().Before(c.holdUntil) {
		return max(0, c.refusals-1)
	}
	c.blocked = topic
	c.refusals++
	return c.refusals - 1
}

// progressed notes a settlement with which something was published, or nothing: the consumer may have more in flight.
func (c *condition) progressed(published, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if published > 0 {
		c.refusals = 0
	}
	if c.window == 0 || time.Now().Before(c.holdUntil) { // what was begun before the hold says nothing
		return
	}
	if c.window *= 2; c.window >= most {
		c.window = 0
	}
	c.touch()
}

// hold keeps the consumer from claiming for d, and from having more than one message in flight when it goes on. It reports
// whether it wasn't held before.
func (c *condition) hold(d time.Duration, reason string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if until := time.Now().Add(d); until.After(c.holdUntil) {
		c.holdUntil = until
	}
	c.window = 1
	return c.enter(StateHolding, reason)
}

// held returns how long the consumer is still held, and which topic has to take a message then.
func (c *condition) held() (left time.Duration, blocked string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(0, time.Until(c.holdUntil)), c.blocked
}

// letGo ends a hold.
func (c *condition) letGo() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blocked = ""
	if c.now.State == StateHolding {
		c.enter(StateRunning, "")
	}
}

// waitWindow waits until there is room for a message in the window, and returns for how many, at most most.
func (c *condition) waitWindow(ctx context.Context, most int) (n int, ok bool) {
	ok = c.await(ctx, func() bool {
		n = most
		if c.window > 0 {
			n = min(most, c.window-c.now.InFlight)
		}
		return n > 0
	})
	return n, ok
}

// mayClaim waits for as long as the consumer is held, and returns how many messages may be claimed then, at most most. It
// reports false if ctx was done before.
func (c *consumer) mayClaim(ctx context.Context, most int) (n int, ok bool) {
	for {
		left, blocked := c.condition.held()
		switch {
		case left > 0:
			if !sleep(ctx, left) {
				return 0, false
			}
		case blocked != "" && c.stillRefuses(blocked):
		default:
			c.condition.letGo()
			if n, ok = c.condition.waitWindow(ctx, most); !ok {
				return 0, false
			}
			if left, blocked = c.condition.held(); left == 0 && blocked == "" { // still not, after what ended meanwhile
				return n, true
			}
		}
	}
}

// stillRefuses asks whether a topic would take a message now. If not, the consumer is held for a little longer.
func (c *consumer) stillRefuses(topic string) bool {
	r, err := c.queue.Reserve(c.Tenant, topic, 0)
	if err == nil {
		r.Release()
		return false
	}
	refused, isRefusal := refusedBy(err)
	if !isRefusal || refused.forever {
		return false
	}
	refused.before = c.condition.outboxRefused(topic)
	c.condition.hold(refused.wait(), ReasonOutboxRefused+": "+refused.why.String())
	return true
}
