package dispatcher

import (
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/longshore/longshore/limits"
)

// Breaker says when a consumer that keeps failing holds itself, so that an outage of what it needs doesn't bury its backlog.
// The zero value never does.
type Breaker struct {
	Percent int           // of the messages handled in the window that fail, from which on it holds; 0 is never, at most 100
	Window  time.Duration // in which they are counted; 0 is limits.BreakerWindow
	Calls   int           // messages that have to be handled in the window before it says anything; 0 is limits.BreakerCalls
}

func (b Breaker) withDefaults() Breaker {
	if b.Window == 0 {
		b.Window = limits.BreakerWindow
	}
	if b.Calls == 0 {
		b.Calls = limits.BreakerCalls
	}
	return b
}

// faults lists what is wrong with b. Defaults are filled in.
func (b Breaker) faults() (faults []error) {
	if b.Percent < 0 || b.Percent > 100 {
		faults = append(faults, fmt.Errorf("breaker at %d%%: want 0 to 100", b.Percent))
	}
	if b.Window < 0 || b.Calls < 1 {
		faults = append(faults, fmt.Errorf("breaker over %d messages in %s: want at least 1, in more than 0", b.Calls, b.Window))
	}
	return faults
}

// circuit counts what a consumer handled. It is safe for concurrent use.
//
//	closed ── too many fail ──► open: held ── time is over ──► one message is tried
//	   ▲                          ▲                              │        │
//	   │                          └── it fails: twice as long ───┘        │
//	   └────────────────────────────── it is handled ─────────────────────┘
type circuit struct {
	Breaker
	mu          sync.Mutex
	now, before tally     // of this half of the window, and of the one before
	since       time.Time // when this half began
	trips       int       // in a row; 0 is closed
	until       time.Time // it is open; what ends earlier was begun before, and says nothing
}

// tally counts messages.
type tally struct{ handled, failed int }

// record counts a message, and returns for how long the consumer is to hold because of it; 0 if it needn't.
func (c *circuit) record(failed bool) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	switch {
	case c.Percent == 0 || now.Before(c.until):
		return 0
	case c.trips > 0 && !failed:
		c.trips, c.now, c.before, c.since = 0, tally{}, tally{}, now
		return 0
	case c.trips > 0:
		return c.trip(now)
	}
	c.turn(now)
	c.now.handled++
	if failed {
		c.now.failed++
	}
	handled, lost := c.now.handled+c.before.handled, c.now.failed+c.before.failed
	if failed && handled >= c.Calls && lost*100 >= handled*c.Percent {
		return c.trip(now)
	}
	return 0
}

// turn begins another half of the window, if it is time.
func (c *circuit) turn(now time.Time) {
	switch half, passed := c.Window/2, now.Sub(c.since); {
	case passed >= 2*half:
		c.now, c.before, c.since = tally{}, tally{}, now
	case passed >= half:
		c.now, c.before, c.since = tally{}, c.now, now
	}
}

// trip opens the circuit, each time in a row for twice as long.
func (c *circuit) trip(now time.Time) time.Duration {
	d := limits.BreakerHoldMin
	for range c.trips {
		d = min(2*d, limits.BreakerHoldMax)
	}
	c.trips++
	c.until = now.Add(d)
	return d
}

// watch counts what a settled delivery says of the consumer, and holds it if too many fail.
func (c *consumer) watch(d *delivery, dec decision) {
	failed := d.finding.end == atGuest && dec.charges() && dec.reason != ReasonRejected
	if !failed && !dec.handled() {
		return
	}
	left := c.circuit.record(failed)
	if left == 0 {
		return
	}
	if c.condition.hold(left, ReasonCircuitOpen) {
		c.log.Error("consumer holds: too many of its messages fail; it tries one of them then",
			zap.String("reason", dec.reason), zap.Duration("for", left))
	}
}
