package dispatcher

import (
	"context"
	"errors"
	"time"

	"github.com/longshore/longshore/substrate"
)

// errLost is the cause of a lease's context after the lease was lost.
var errLost = errors.New("the lease is lost")

// lease keeps a claimed message its holder's, from the claim until letGo. Half-way through it is extended, again and
// again. It counts as lost once the queue says so, or when its time is over by our own clock and it couldn't be extended.
type lease struct {
	// ctx is done once the lease is lost.
	ctx    context.Context
	cancel context.CancelCauseFunc
	onLost func(cause error) // called when it is

	queue    Queue
	lease    substrate.Lease
	duration time.Duration

	half  *time.Timer   // starts the goroutine that extends
	ended chan struct{} // closed when that goroutine has ended
}

// holdLease starts to look after a lease that was granted for d, not before since. If it is lost, onLost is called.
func holdLease(ctx context.Context, q Queue, l substrate.Lease, d time.Duration, since time.Time, onLost func(cause error)) *lease {
	h := &lease{queue: q, lease: l, duration: d, onLost: onLost, ended: make(chan struct{})}
	h.ctx, h.cancel = context.WithCancelCause(ctx)
	h.half = time.AfterFunc(time.Until(since.Add(d/2)), func() { //nolint:contextcheck // its context is the lease's own
		defer close(h.ended)
		h.keep(since.Add(d))
	})
	return h
}

// lose notes that the lease is lost.
func (h *lease) lose() {
	h.cancel(errLost)
	h.onLost(errLost)
}

// lost reports whether the message belongs, or may belong, to another holder.
func (h *lease) lost() bool {
	return errors.Is(context.Cause(h.ctx), errLost)
}

// letGo ends the extending, and waits for it. The lease itself is left as it is.
func (h *lease) letGo() {
	if h.half.Stop() {
		close(h.ended)
	}
	h.cancel(nil)
	<-h.ended
}

// keep extends the lease at half of its time until ctx is done or the lease is lost.
func (h *lease) keep(expires time.Time) {
	for {
		renewed, err := h.extend(expires)
		if err != nil {
			h.lose()
			return
		}
		expires = renewed
		if !sleep(h.ctx, time.Until(expires)-h.duration/2) {
			return
		}
	}
}

// extend tries until it succeeds, the queue says that the lease is lost, or it expires. It returns the new end.
func (h *lease) extend(expires time.Time) (time.Time, error) {
	ctx, cancel := context.WithDeadline(h.ctx, expires)
	defer cancel()
	for failures := 0; ; failures++ {
		asked := time.Now()
		_, err := h.queue.Extend(ctx, h.lease, h.duration)
		if err == nil {
			return asked.Add(h.duration), nil
		}
		if final(err) || !sleep(ctx, storageBackoff(failures)) {
			return time.Time{}, err
		}
	}
}

// sleep waits for d, and reports false if ctx was done before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
