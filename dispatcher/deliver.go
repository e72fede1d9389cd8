package dispatcher

import (
	"context"
	"errors"
	"math/rand/v2"

	"go.uber.org/zap"

	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

// delivery is one claimed message on its way to a settlement. One goroutine owns it.
type delivery struct {
	substrate.Delivery
	lease  *lease
	turn   *turn
	outbox *outbox

	who   *signedctx.Verified // published it; nil if that isn't known
	fence substrate.Fence     // that the lane accepted; no key if there is none

	call    *messaging.Call     // of the guest; nil if there was none
	outcome runtime.Outcome     // of that call
	sealed  []substrate.Message // what is committed with an acknowledgement
	cause   error               // of a verdict that is not an ack, for the log
}

// deliver takes one claimed message through its steps.
func (c *consumer) deliver(p phases, d *delivery) {
	defer d.end()
	f, goesOn := c.verify(d)
	if goesOn {
		f, goesOn = c.screen(d)
	}
	if goesOn {
		f = c.invoke(p, d)
	}
	d.turn.done() // what follows needs no worker
	f = c.seal(d, f)
	if d.lease.lost() {
		c.discard(d, ReasonLeaseLost)
		return
	}
	c.settle(p, d, decide(f, d.Attempt, c.policy, chance()))
}

// chance returns a random number in [0, 1).
func chance() float64 {
	return rand.Float64() //nolint:gosec // it only spreads retries
}

// end gives back what the delivery holds. The lease is left as it is: it was settled, or it is lost.
func (d *delivery) end() {
	d.turn.done()
	d.outbox.release()
	d.lease.letGo()
}

// verify checks that the message is the one that its publisher's context was sealed to, and reports whether the guest
// may see it.
func (c *consumer) verify(d *delivery) (finding, bool) {
	b := Binding(d.Message)
	b.Tenant, b.Topic = c.Tenant, c.Topic
	who, err := c.context.Verify(d.Message.Envelope, b)
	if err == nil {
		d.who = &who
		return c.checkAge(d, who)
	}
	class := signedctx.ClassMalformed
	if refusal, ok := errors.AsType[*signedctx.Refusal](err); ok {
		class = refusal.Class
	}
	if class == signedctx.ClassMissing && c.ContextOptional {
		return finding{}, true
	}
	d.cause = err
	return finding{end: atContext, refusal: class}, false
}

// invoke waits for a worker and runs the guest on it, until the guest returns, breaks a limit, loses its lease, or the
// host stops it.
func (c *consumer) invoke(p phases, d *delivery) finding {
	if err := d.turn.wait(p.claim, d.lease.ctx); err != nil {
		return finding{end: notStarted}
	}
	if f, goesOn := c.begin(d); !goesOn {
		return f
	}
	ended, err := c.queue.Start(d.Lease)
	if err != nil {
		return c.storageFault(d, err)
	}
	c.storageWorked(starting)
	defer ended()
	d.call = messaging.NewCall(messaging.CallOptions{
		Message: forGuest(d.Message),
		Limits:  c.Limits,
		Clients: c.Clients,
		Admit:   d.outbox.admit,
		Log:     func(stream string, line []byte) { c.guestWrote(d, stream, line) },
	})
	d.outcome = c.runGuest(p, d)
	d.turn.spent(d.outcome.FuelUsed)
	d.cause = d.outcome.Err
	if d.outcome.GuestText != "" {
		c.guestWrote(d, "error", []byte(d.outcome.GuestText))
	}
	f := finding{end: atGuest, outcome: d.outcome}
	if d.outcome.Class == runtime.BadABI {
		f.badABI = c.condition.brokeABI(d.Message.ID)
	}
	if r := d.outbox.refused; r != nil && gaveUp(d.outcome.Class) {
		r.before = c.condition.outboxRefused(r.topic)
		f.refused = r
	}
	return f
}

// runGuest makes the call. A panic on its way fails this delivery alone.
func (c *consumer) runGuest(p phases, d *delivery) (out runtime.Outcome) {
	ctx, cancel := context.WithCancelCause(d.lease.ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.run, func() { cancel(context.Cause(p.run)) })()
	defer func() {
		if err := c.recovered(d, recover()); err != nil {
			out = runtime.Outcome{Class: runtime.HostPanic, Err: err}
		}
	}()
	return c.Guest.Invoke(ctx, d.call)
}

// seal signs what the guest published, if it succeeded.
func (c *consumer) seal(d *delivery, f finding) finding {
	if f.end != atGuest || f.outcome.Class != runtime.OK {
		return f
	}
	if d.sealed, d.cause = d.outbox.seal(d.call.Outbox()); d.cause != nil {
		f.end = atSeal
	}
	return f
}

// settle carries a decision out: for the consumer first, so that it doesn't claim again what it gives back, and then for
// the message.
func (c *consumer) settle(p phases, d *delivery, dec decision) {
	c.follow(d, dec)
	receipt := c.receipt(d, dec)
	err := c.commit(p, d, dec, receipt)
	refused, isRefusal := refusedBy(err)
	switch {
	case err == nil:
		c.report(d, receipt)
	case errors.Is(err, substrate.ErrLeaseLost) || d.lease.lost():
		c.discard(d, ReasonLeaseLost)
	case errors.Is(err, substrate.ErrStaleFence):
		d.fence, d.sealed, d.cause = substrate.Fence{}, nil, err
		c.settle(p, d, decide(finding{end: atFence}, d.Attempt, c.policy, chance()))
	case isRefusal && len(d.sealed) > 0:
		d.sealed, d.cause = nil, err
		refused.before = c.condition.outboxRefused(refused.topic)
		c.settle(p, d, decide(finding{end: atCommit, refused: refused}, d.Attempt, c.policy, chance()))
	default:
		d.cause = err
		c.discard(d, ReasonStorageError)
	}
}

// follow applies what a decision means for the consumer.
func (c *consumer) follow(d *delivery, dec decision) {
	switch dec.then {
	case goOn:
	case hold:
		if c.condition.hold(dec.delay, dec.reason) {
			c.log.Warn("consumer claims nothing for a while", zap.String("reason", dec.reason), zap.Duration("for", dec.delay))
		}
	case pause:
		c.pause(dec.reason, d.cause)
	}
}

// final reports whether the queue will never take a call about this lease.
func final(err error) bool {
	return errors.Is(err, substrate.ErrLeaseLost) || errors.Is(err, substrate.ErrClosed)
}

// commit settles the message, with the outbox if it is acknowledged. It tries for as long as the storage fails, the lease
// holds and the host lets it; it doesn't insist on an outbox that is refused.
func (c *consumer) commit(p phases, d *delivery, dec decision, r Receipt) error {
	s := substrate.Settlement{Lease: d.Lease, Verdict: dec.verdict, Delay: dec.delay}
	if dec.charges() {
		s.Reason = dec.reason
	}
	if dec.verdict == substrate.Ack {
		s.Fence = d.fence
	}
	if dec.verdict == substrate.Bury {
		s.Receipt = r.encode()
	}
	for {
		err := c.queue.Settle(p.settle, []substrate.Settlement{s}, d.sealed)
		if err == nil {
			c.storageWorked(settling)
			if dec.then != hold {
				c.condition.progressed(len(d.sealed), c.Concurrency)
			}
			return nil
		}
		_, refused := refusedBy(err)
		if final(err) || errors.Is(err, substrate.ErrStaleFence) || (refused && len(d.sealed) > 0) {
			return err
		}
		c.storageFailed(d.lease.ctx, settling, err)
		if d.lease.ctx.Err() != nil {
			return err
		}
	}
}
