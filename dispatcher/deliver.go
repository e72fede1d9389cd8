package dispatcher

import (
	"context"
	"errors"
	"fmt"
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

	claims  *messaging.Claims   // who published it, verified; nil if it has no context
	call    *messaging.Call     // of the guest; nil if there was none
	outcome runtime.Outcome     // of that call
	sealed  []substrate.Message // what is committed with an acknowledgement
	cause   error               // of a verdict that is not an ack, for the log
}

// deliver takes one claimed message through its steps.
func (c *consumer) deliver(p phases, d *delivery) {
	defer d.end()
	f, genuine := c.verify(d)
	if genuine {
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
	verified, err := c.context.Verify(d.Message.Envelope, b)
	if err == nil {
		d.claims = claimsFor(&verified)
		return finding{}, true
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
	ended, err := c.queue.Start(d.Lease)
	if err != nil {
		d.cause = err
		return finding{end: notStarted}
	}
	defer ended()
	message := forGuest(d.Message)
	message.Info = infoFor(d.Delivery, c.MaxAttempts)
	message.Info.Claims = d.claims
	d.call = messaging.NewCall(messaging.CallOptions{
		Message:  message,
		Limits:   c.Limits,
		Clients:  c.Clients,
		Config:   c.Config,
		Admit:    d.outbox.admit,
		Withdraw: d.outbox.withdraw,
		Draining: func() bool { return p.claim.Err() != nil },
		Log:      func(stream string, line []byte) { c.guestWrote(d, stream, line) },
	})
	d.outcome = c.runGuest(p, d)
	d.cause = d.outcome.Err
	if d.outcome.GuestText != "" {
		c.guestWrote(d, "error", []byte(d.outcome.GuestText))
	}
	for _, a := range d.outcome.Answers {
		if a.Text != "" {
			c.guestWrote(d, "reject", []byte(a.Text))
		}
	}
	f := finding{end: atGuest, outcome: d.outcome}
	if d.outcome.Class == runtime.BadABI {
		f.badABI = c.condition.brokeABI(d.Message.ID)
	}
	return f
}

// runGuest makes the call. A panic on its way fails this delivery alone.
func (c *consumer) runGuest(p phases, d *delivery) (out runtime.Outcome) {
	ctx, cancel := context.WithCancelCause(d.lease.ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.run, func() { cancel(context.Cause(p.run)) })()
	defer func() {
		if v := recover(); v != nil {
			out = runtime.Outcome{Class: runtime.HostPanic, Err: fmt.Errorf("panic: %.200q", fmt.Sprint(v))}
			c.log.Error("the host panicked in a guest call", zap.String("message", d.Message.ID), zap.Error(out.Err), zap.Stack("stack"))
		}
	}()
	return c.Guest.Invoke(ctx, d.call)
}

// seal signs what the guest published, if it succeeded and acknowledges the message.
func (c *consumer) seal(d *delivery, f finding) finding {
	if f.end != atGuest || f.outcome.Class != runtime.OK || !acknowledged(f.outcome) {
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
	case isRefusal && len(d.sealed) > 0:
		d.sealed, d.cause = nil, err
		refused.before = c.condition.outboxRefused()
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
			c.log.Warn("consumer waits: what it publishes was refused", zap.String("reason", dec.reason), zap.Duration("for", dec.delay))
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
	if dec.verdict == substrate.Bury {
		s.Receipt = r.encode()
	}
	for {
		err := c.queue.Settle(p.settle, []substrate.Settlement{s}, d.sealed)
		if err == nil {
			c.storageWorked()
			c.condition.settled(len(d.sealed))
			return nil
		}
		_, refused := refusedBy(err)
		if final(err) || (refused && len(d.sealed) > 0) {
			return err
		}
		c.storageFailed(d.lease.ctx, "settling", err)
		if d.lease.ctx.Err() != nil {
			return err
		}
	}
}
