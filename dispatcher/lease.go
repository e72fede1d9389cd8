package dispatcher

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore/longshore/substrate"
)

// errLost is the cause of a job's context after one of its leases was lost.
var errLost = errors.New("the lease is lost")

// leases keep messages that were claimed at once their holder's, from the claim until each is let go. Half-way through a lease
// is extended, again and again. It counts as lost once the queue says so, or when its time is over by our own clock and it
// couldn't be extended. Leases are added before the first is let go. It is safe for concurrent use.
type leases struct {
	ctx      context.Context
	cancel   context.CancelFunc
	queue    Queue
	duration time.Duration

	mu    sync.Mutex
	all   []*lease
	held  int           // that are not let go
	half  *time.Timer   // starts the goroutine that extends; nil before the first
	ended chan struct{} // closed when that goroutine has ended
}

// lease is one of leases.
type lease struct {
	of      *leases
	lease   substrate.Lease
	state   atomic.Uint32
	onLost  func(cause error) // called once it is lost, unless it was let go before
	expires time.Time         // by our own clock; only who extends it knows
}

// The states of a lease.
const (
	leaseHeld uint32 = iota
	leaseLost
	leaseLetGo
)

// newLeases looks after leases that are granted for d, until ctx is done at most.
func newLeases(ctx context.Context, q Queue, d time.Duration) *leases {
	k := &leases{queue: q, duration: d, ended: make(chan struct{})}
	k.ctx, k.cancel = context.WithCancel(ctx)
	return k
}

// add starts to look after a lease that was granted not before since, and makes l that. If it is lost, onLost is called.
func (k *leases) add(l *lease, granted substrate.Lease, since time.Time, onLost func(cause error)) {
	l.of, l.lease, l.onLost, l.expires = k, granted, onLost, since.Add(k.duration)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all = append(k.all, l)
	k.held++
	if k.half == nil {
		k.half = time.AfterFunc(time.Until(since.Add(k.duration/2)), k.keep)
	}
}

// lose notes that the lease is lost.
func (l *lease) lose() {
	if l.state.CompareAndSwap(leaseHeld, leaseLost) {
		l.onLost(errLost)
	}
}

// lost reports whether the message belongs, or may belong, to another holder.
func (l *lease) lost() bool { return l.state.Load() == leaseLost }

// letGo ends the extending of a lease, once. After the last one nothing is extended any more. The lease itself is left as it is.
func (l *lease) letGo() {
	l.state.CompareAndSwap(leaseHeld, leaseLetGo)
	k := l.of
	k.mu.Lock()
	k.held--
	last := k.held == 0
	k.mu.Unlock()
	if !last {
		return
	}
	if k.half.Stop() {
		close(k.ended)
	}
	k.cancel()
	<-k.ended
}

// keep extends the leases at half of their time until none is held, or ctx is done.
func (k *leases) keep() {
	defer close(k.ended)
	for failures := 0; ; {
		next, failed := k.extendDue()
		wait := time.Until(next)
		if failed {
			wait = min(wait, storageBackoff(failures))
			failures++
		} else {
			failures = 0
		}
		if next.IsZero() || !sleep(k.ctx, wait) {
			return
		}
	}
}

// extendDue extends those leases half of whose time is over. It returns when there is more to do at the latest, zero if no lease
// is held, and whether one couldn't be extended that may be soon.
func (k *leases) extendDue() (next time.Time, failed bool) {
	for _, l := range k.stillHeld() {
		until := l.half()
		if !until.After(time.Now()) {
			if l.extend() {
				until = l.half()
			} else {
				until, failed = l.expires, true
			}
		}
		if l.state.Load() == leaseHeld && (next.IsZero() || until.Before(next)) {
			next = until
		}
	}
	return next, failed
}

// half returns when half of the lease's time is over.
func (l *lease) half() time.Time { return l.expires.Add(-l.of.duration / 2) }

func (k *leases) stillHeld() (held []*lease) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, l := range k.all {
		if l.state.Load() == leaseHeld {
			held = append(held, l)
		}
	}
	return held
}

// extend extends a lease, or notes that it is lost. It reports false if neither is known.
func (l *lease) extend() bool {
	asked := time.Now()
	if !asked.Before(l.expires) {
		l.lose()
		return true
	}
	ctx, cancel := context.WithDeadline(l.of.ctx, l.expires)
	defer cancel()
	_, err := l.of.queue.Extend(ctx, l.lease, l.of.duration)
	switch {
	case err == nil:
		l.expires = asked.Add(l.of.duration)
	case final(err):
		l.lose()
	default:
		return false
	}
	return true
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
