package dispatcher

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/longshore/longshore/limits"
)

// A guest has its worker until it ends, which may be a second later. So that its tenant's neighbours don't wait for that, it
// leaves its worker at a safe point once it ran for limits.PauseAfter, if another tenant waits that is owed more. It comes back
// when its tenant's turn comes again.

// pause lets others run if they are owed it, and returns for how long. If the guest can't go on after that, it is stopped.
func (a *asker) pause(ctx context.Context) time.Duration {
	t := a.job.turn
	if t.workers.waiters.Load() == 0 || !t.workers.pauses(t) {
		return 0
	}
	defer t.workers.goesOn()
	began := time.Now()
	a.notePause("guest is paused")
	_ = a.away(ctx, a.phases.run, func() error { return nil })
	a.notePause("guest goes on")
	return max(time.Since(began), 1)
}

// notePause logs what becomes of the guest of each message that the call handles.
func (a *asker) notePause(what string) {
	for _, d := range a.run.deliveries {
		a.log.Debug(what, zap.String("message", d.Message.ID), zap.Int("attempt", d.Attempt))
	}
}

// pauses reports whether a turn is to be paused: whether a tenant waits that comes before the one whose turn it is. Then
// goesOn is to follow.
func (w *workers) pauses(t *turn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.state != turnGranted || t.alone || w.alone != nil || w.free > 0 || w.paused >= limits.PausedGuests {
		return false
	}
	now := time.Now()
	if now.Sub(t.began) < limits.PauseAfter {
		return false
	}
	i := w.owedMost()
	if i < 0 || w.waiting[i] == t.tenant || !w.rank(w.waiting[i], now).before(w.rank(t.tenant, now)) {
		return false
	}
	w.paused++
	return true
}

func (w *workers) goesOn() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.paused--
}
