package messaging

import (
	"context"
	"time"
)

// ClockGrain is what the clocks of guests tick in.
const ClockGrain = time.Millisecond

// monotonicZero is where the monotonic clock starts. Guests compare its values with earlier ones of their snapshot, so
// that it must be the same for all calls.
var monotonicZero = time.Now()

// MonotonicNow returns what the monotonic clock of guests says.
func MonotonicNow() time.Duration { return time.Since(monotonicZero).Truncate(ClockGrain) }

// WallNow returns what the wall clock of guests says.
func WallNow() time.Time { return time.Now().Truncate(ClockGrain) }

// Sleep waits for d on behalf of the guest. It panics with a typed error if the call must end before.
func (c *Call) Sleep(ctx context.Context, d time.Duration) {
	if d > 0 {
		t := time.NewTimer(min(d, time.Until(c.deadline)))
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
	c.mustGoOn(ctx)
}
