package dispatcher

import (
	"errors"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate"
)

// raiseFence asks the lane to accept the message's fence token, just before the guest runs, so that the mark rises in the
// order in which messages are handled. A fence counts under a verified context only: whoever can't be named is granted
// nothing, and must not be able to shut others out. Its finding counts if the token was not accepted.
func (c *consumer) raiseFence(d *delivery) (f finding, goesOn bool) {
	fence := d.Message.Options.Fence
	if fence.Key == "" || d.who == nil {
		return finding{}, true
	}
	err := c.queue.RaiseFence(d.lease.of.ctx, d.Lease, fence)
	d.cause = err
	var full *limits.Error
	switch {
	case err == nil:
		d.fence = fence
		return finding{}, true
	case errors.Is(err, substrate.ErrStaleFence):
		return finding{end: atFence}, false
	case errors.As(err, &full):
		return finding{end: atFenceLimit}, false
	case errors.Is(err, substrate.ErrLeaseLost):
		d.lease.lose()
		return finding{end: notStarted}, false
	}
	return c.storageFault(d, err), false
}
