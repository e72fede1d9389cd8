package dispatcher

import (
	"context"
	"errors"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

// publishNow stores what a guest publishes before the guest goes on. Whatever becomes of the call, it is not undone; a call that
// is repeated publishes it again. The call's time goes on meanwhile, and a wait that lasts longer than that ends the call.
//
//	admitted ─► seal ─► leave the worker ─► publish, if the leases are held ─► come back
func (a *asker) publishNow(ctx context.Context, out []messaging.Outgoing) ([]messaging.Published, *messaging.PublishError) {
	if a.rehearses {
		return a.showNow(out)
	}
	var receipts []substrate.Receipt
	err := a.asideWhile(ctx, func() (err error) {
		inTime, cancel := context.WithDeadline(ctx, a.call.Deadline())
		defer cancel()
		receipts, err = a.publish(inTime, out)
		return err
	})
	if err != nil {
		a.run.outbox.noteFailure(out[0].Topic, err)
		return nil, refusalFor(err)
	}
	published := make([]messaging.Published, len(out))
	for i, r := range receipts {
		published[i] = messaging.Published{ID: r.ID, Duplicate: r.Duplicate}
		if m, is := out[i].Token.(*substrate.Message); is && !r.Duplicate {
			a.run.delivery(m.Parent).sent++
		}
	}
	return published, nil
}

// asideWhile does what takes the disk, without the worker unless too many do: each guest keeps its instance meanwhile.
func (a *asker) asideWhile(ctx context.Context, do func() error) error {
	if !a.job.turn.mayPublishAside() {
		return do()
	}
	defer a.workers.publishedAside()
	return a.away(ctx, a.phases.run, do)
}

// mayPublishAside reports whether the guest of a turn may leave its worker while it publishes. Then publishedAside is to follow.
// One that runs alone stays, so that nothing runs beside it.
func (t *turn) mayPublishAside() bool {
	w := t.workers
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.alone || w.publishing >= limits.PublishingGuests {
		return false
	}
	w.publishing++
	return true
}

func (w *workers) publishedAside() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.publishing--
}

// publish stores messages, if those that the call handles are still its own.
func (a *asker) publish(ctx context.Context, out []messaging.Outgoing) ([]substrate.Receipt, error) {
	sealed, err := a.run.outbox.seal(out)
	if err != nil {
		return nil, err
	}
	held := make([]substrate.Lease, len(a.run.deliveries))
	for i, d := range a.run.deliveries {
		held[i] = d.Lease
	}
	receipts, err := a.queue.PublishHeld(ctx, held, sealed...)
	if errors.Is(err, substrate.ErrLeaseLost) {
		a.job.lose(errLost)
	}
	return receipts, err
}
