package dispatcher

import (
	"context"
	"slices"
	"time"

	"github.com/longshore/longshore/limits"
)

// A guest has its worker until it ends, which may be a second later. So that its tenant's neighbours don't wait for that, it
// is paused at a safe point once it ran for limits.PauseAfter, if another tenant waits that is owed more. It goes on when its
// tenant's turn comes again, before all others of its tenant, so that no tenant has more paused guests than there are workers.

// pause lets others run if they are owed it, and returns for how long. After ctx is done it returns at once, without a worker:
// the guest has to end. It is called on the goroutine that performs the turn.
func (t *turn) pause(ctx context.Context) time.Duration {
	w := t.workers
	if w.waiters.Load() == 0 {
		return 0
	}
	if !w.pauses(t) {
		return 0
	}
	began := time.Now()
	select {
	case <-t.resumed:
	case <-ctx.Done():
		t.done()
	}
	return max(time.Since(began), 1)
}

// pauses pauses a turn, if somebody is owed more.
func (w *workers) pauses(t *turn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.owesOthers(t) {
		return false
	}
	w.free++
	w.running--
	w.account(t)
	w.join(t.tenant)
	t.tenant.paused = append(t.tenant.paused, t)
	t.state, t.resumed = turnPaused, make(chan struct{})
	w.paused++
	w.grant()
	w.launch()
	return true
}

// owesOthers reports whether a tenant waits that comes before the one whose turn runs.
func (w *workers) owesOthers(t *turn) bool {
	if t.state != turnGranted || t.alone || w.alone != nil || w.free > 0 || len(w.waiting) == 0 || w.paused >= limits.PausedGuests {
		return false
	}
	now := time.Now()
	if now.Sub(t.began) < limits.PauseAfter {
		return false
	}
	next := w.waiting[w.owedMost()]
	return next != t.tenant && w.rank(next, now).before(w.rank(t.tenant, now))
}

// takePaused takes a paused turn out of the queue.
func (w *workers) takePaused(t *turn) {
	t.tenant.paused = slices.DeleteFunc(t.tenant.paused, func(other *turn) bool { return other == t })
	w.paused--
	w.leave(t.tenant)
}

// anyPaused returns a paused turn; there must be one.
func (w *workers) anyPaused() *turn {
	i := slices.IndexFunc(w.waiting, func(tt *tenantTurns) bool { return len(tt.paused) > 0 })
	return w.waiting[i].paused[0]
}
