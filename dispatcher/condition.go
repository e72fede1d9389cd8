package dispatcher

import (
	"context"
	"sync"
	"time"

	"github.com/longshore/longshore/limits"
)

// condition is a consumer's state, with the counts that move it. It is safe for concurrent use.
//
//	idle ──► running ◄──► holding, unhealthy
//	            ▲             │
//	            ▼             ▼
//	          paused ◄────────┘      and from each of them to stopped
//
// What is held goes on by itself, carefully: at first one message at a time, and twice as many after each that went well.
type condition struct {
	mu           sync.Mutex
	now          ConsumerStatus // without what the consumer is
	stopClaiming func()         // called when it is paused
	changed      chan struct{}  // closed and replaced when a claim may be allowed that was not

	holdUntil time.Time
	blocked   string // topic that has to take a message before the consumer goes on; "" is none
	refusals  int    // outboxes refused, in a row
	window    int    // messages in flight at most, after a hold; 0 is no bound

	storageErrors [operations]int     // in a row, of each
	badABI        map[string]struct{} // messages that the guest broke the ABI on; at most limits.BadABIMessages of them
}

func newCondition() *condition {
	return &condition{
		now:          ConsumerStatus{State: StateIdle, Since: time.Now()},
		stopClaiming: func() {},
		changed:      make(chan struct{}),
		badABI:       make(map[string]struct{}),
	}
}

func (c *condition) status() ConsumerStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// begin starts the consumer, or starts it again after a pause. stopClaiming is called when it is paused.
func (c *condition) begin(stopClaiming func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopClaiming = stopClaiming
	c.enter(StateRunning, "")
}

// pause stops the consumer for a reason, and reports whether it wasn't paused before.
func (c *condition) pause(reason string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := c.enter(StatePaused, reason)
	c.stopClaiming()
	return changed
}

// resume ends a pause and forgets what led to it. It reports whether the consumer was paused.
func (c *condition) resume() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now.State != StatePaused {
		return false
	}
	c.now.State = StateIdle // from which it may be started
	clear(c.badABI)
	c.holdUntil, c.blocked, c.refusals, c.window = time.Time{}, "", 0, 0
	c.touch()
	return true
}

// waitResumed returns when the consumer isn't paused any more, or ctx is done.
func (c *condition) waitResumed(ctx context.Context) {
	c.await(ctx, func() bool { return c.now.State != StatePaused })
}

// end marks the consumer as stopped, for good.
func (c *condition) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.enter(StateStopped, "")
}

// enter moves to a state, and reports whether that changed anything. What is paused isn't moved but to stopped, and what
// is unhealthy isn't just holding.
func (c *condition) enter(s State, reason string) bool {
	switch {
	case c.now.State == s || c.now.State == StateStopped,
		c.now.State == StatePaused && s != StateStopped,
		c.now.State == StateUnhealthy && s == StateHolding:
		return false
	}
	c.now.State, c.now.Reason, c.now.Since = s, reason, time.Now()
	return true
}

// touch wakes those that wait for a change.
func (c *condition) touch() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// await returns true once is holds, which is asked under the lock, or false if ctx was done before.
func (c *condition) await(ctx context.Context, is func() bool) bool {
	for {
		c.mu.Lock()
		holds, changed := is(), c.changed
		c.mu.Unlock()
		if holds || ctx.Err() != nil {
			return ctx.Err() == nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// operation is what a consumer asks of the queue. That one works says nothing about the others.
type operation uint8

const (
	claiming operation = iota // and waiting for messages
	starting
	settling
	operations
)

func (o operation) String() string {
	return [operations]string{"claiming messages", "starting a guest", "settling a message"}[o]
}

// storageFailed counts an error of the storage. It returns how many there were in a row before, and whether this one
// made the consumer unhealthy.
func (c *condition) storageFailed(o operation) (before int, unhealthy bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.storageErrors[o]++
	unhealthy = c.storageErrors[o] >= limits.StorageErrorsInARow && c.enter(StateUnhealthy, ReasonStorageError)
	return c.storageErrors[o] - 1, unhealthy
}

// storageWorked ends a row of errors, and reports whether the consumer was unhealthy and isn't any more.
func (c *condition) storageWorked(o operation) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.storageErrors[o] = 0
	for _, n := range c.storageErrors {
		if n >= limits.StorageErrorsInARow {
			return false
		}
	}
	return c.now.State == StateUnhealthy && c.enter(StateRunning, "")
}

// brokeABI notes that the guest broke the ABI on a message, and returns on how many different messages it did.
func (c *condition) brokeABI(message string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.badABI) < limits.BadABIMessages {
		c.badABI[message] = struct{}{}
	}
	return len(c.badABI)
}

// inFlight counts deliveries that began (above 0) or ended (below 0).
func (c *condition) inFlight(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now.InFlight += n
	c.touch()
}
