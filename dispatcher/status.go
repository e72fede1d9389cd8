package dispatcher

import (
	"context"
	"sync"
	"time"

	"github.com/longshore/longshore/limits"
)

// State says what a consumer is doing.
type State string

// States of a consumer.
const (
	StateIdle      State = "idle"      // not started yet
	StateRunning   State = "running"   // claiming and handling
	StateHolding   State = "holding"   // not claiming for a moment, because what it publishes was refused
	StateUnhealthy State = "unhealthy" // the storage failed limits.StorageErrorsInARow times in a row; still trying
	StatePaused    State = "paused"    // stopped for Reason until an operator has seen to it
	StateStopped   State = "stopped"   // the dispatcher was stopped
)

// ConsumerStatus is what a consumer is doing now.
type ConsumerStatus struct {
	Name     string
	Tenant   string
	Topic    string
	Lane     string
	Module   string // hex SHA-256
	State    State
	Reason   string    // why it is holding, unhealthy or paused; a reason as messages have them, or ""
	Since    time.Time // when it entered the state
	InFlight int       // messages claimed and not yet settled
}

// condition is a consumer's state, with the counts that move it. It is safe for concurrent use.
//
//	idle ──► running ◄──► holding, unhealthy
//	            │             │
//	            └─────────────┴──► paused ──► stopped
type condition struct {
	mu            sync.Mutex
	now           ConsumerStatus // without what the consumer is
	stopClaiming  func()         // called when it is paused
	holdUntil     time.Time
	refusals      int                 // outboxes refused at commit, in a row
	storageErrors int                 // in a row
	badABI        map[string]struct{} // messages that the guest broke the ABI on; at most limits.BadABIMessages of them
}

func newCondition() *condition {
	return &condition{
		now:          ConsumerStatus{State: StateIdle, Since: time.Now()},
		stopClaiming: func() {},
		badABI:       make(map[string]struct{}),
	}
}

func (c *condition) status() ConsumerStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// begin starts the consumer. stopClaiming is called when it is paused.
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

// end marks the consumer as stopped, for good.
func (c *condition) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.enter(StateStopped, "")
}

// enter moves to a state, and reports whether that changed anything. From paused there is only the way to stopped.
func (c *condition) enter(s State, reason string) bool {
	if c.now.State == s || c.now.State == StateStopped || (c.now.State == StatePaused && s != StateStopped) {
		return false
	}
	c.now.State, c.now.Reason, c.now.Since = s, reason, time.Now()
	return true
}

// storageFailed counts an error of the storage. It returns how many there were in a row before, and whether this one
// made the consumer unhealthy.
func (c *condition) storageFailed() (before int, unhealthy bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.storageErrors++
	unhealthy = c.storageErrors >= limits.StorageErrorsInARow && c.enter(StateUnhealthy, ReasonStorageError)
	return c.storageErrors - 1, unhealthy
}

// storageWorked ends a row of errors, and reports whether the consumer was unhealthy.
func (c *condition) storageWorked() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.storageErrors = 0
	return c.now.State == StateUnhealthy && c.enter(StateRunning, "")
}

// outboxRefused counts a refusal at commit, and returns how many there were in a row before.
func (c *condition) outboxRefused() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refusals++
	return c.refusals - 1
}

// settled ends a row of refusals if something was published.
func (c *condition) settled(published int) {
	if published == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refusals = 0
}

// hold keeps the consumer from claiming for d, and reports whether it wasn't held before.
func (c *condition) hold(d time.Duration, reason string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holdUntil = time.Now().Add(d)
	return c.enter(StateHolding, reason)
}

// waitHeld returns when the consumer isn't held any more, and reports false if ctx was done before.
func (c *condition) waitHeld(ctx context.Context) bool {
	for ctx.Err() == nil {
		left := c.held()
		if left == 0 {
			return true
		}
		sleep(ctx, left)
	}
	return false
}

// held returns how long the consumer is still held. At 0 it is running again.
func (c *condition) held() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := max(0, time.Until(c.holdUntil))
	if left == 0 && c.now.State == StateHolding {
		c.enter(StateRunning, "")
	}
	return left
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

// inFlight counts a delivery that began (1) or ended (-1).
func (c *condition) inFlight(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now.InFlight += n
}
