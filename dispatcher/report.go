package dispatcher

import (
	"errors"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/longshore/longshore/substrate"
)

// receipt says what a delivery did and cost, and what was decided.
func (c *consumer) receipt(d *delivery, dec decision, published int) Receipt {
	r := c.blank(d.Message.ID, d.attempts(dec))
	r.Verdict, r.Reason, r.Delay = dec.verdict.String(), dec.reason, dec.delay
	r.Published = d.sent
	if dec.handled() {
		r.Published += published
	}
	if d.run == nil {
		return r
	}
	r.Module, r.Version, r.Canary = c.Guest.Digest(), c.Version, c.isCanary
	o, n := d.run.outcome, len(d.run.deliveries)
	r.Fuel, r.Wall, r.HostCalls = o.FuelUsed/int64(n), o.Wall/time.Duration(n), o.HostCalls/int64(n)
	r.PeakMemoryBytes = o.PeakMemoryBytes
	if n > 1 {
		r.Batch = n
	}
	return r
}

// attempts returns how many attempts of the message count once that was decided.
func (d *delivery) attempts(dec decision) int {
	if dec.unrun {
		return d.Attempt - 1
	}
	return d.Attempt
}

func (c *consumer) blank(message string, attempt int) Receipt {
	return Receipt{
		Consumer: c.Name, Tenant: c.Tenant, Topic: c.Topic, Lane: c.Lane,
		Message: message, Attempt: attempt, At: time.Now(),
	}
}

// ofOlder returns the receipt of a message that shares the end of a newer one, whose receipt r is.
func (r Receipt) ofOlder(d *delivery, dec decision) Receipt {
	r.Message, r.Attempt, r.Published, r.Fuel, r.Wall, r.HostCalls = d.Message.ID, d.attempts(dec), 0, 0, 0, 0
	return r
}

// discard reports a delivery that couldn't be settled: the message is another holder's, or will be.
func (c *consumer) discard(d *delivery, reason string) {
	r := c.receipt(d, decision{reason: reason}, 0)
	r.Verdict = VerdictDiscard
	c.report(d, r)
}

// reportBuried reports a message that a claim buried because its attempts were used up.
func (c *consumer) reportBuried(dead substrate.DeadLetter) {
	c.publishReceipt(c.buriedReceipt(dead), nil)
}

func (c *consumer) buriedReceipt(dead substrate.DeadLetter) Receipt {
	r := c.blank(dead.ID, dead.Attempts)
	r.Verdict, r.Reason = substrate.Bury.String(), sanitize(dead.Reason)
	return r
}

// reportQuarantined reports a message that a claim found not to check. Nobody is given it any more.
func (c *consumer) reportQuarantined(e substrate.QuarantineEntry) {
	r := c.blank(e.ID, 0)
	r.Verdict, r.Reason = VerdictQuarantine, sanitize(e.Reason)
	c.publishReceipt(r, errors.New(e.Error))
}

// reportSkipped reports a message that does not check and could not be quarantined.
func (c *consumer) reportSkipped(e substrate.QuarantineEntry) {
	c.log.Error("a message does not check, and the disk is too full to quarantine it: it is skipped until the host starts again",
		zap.String("message", e.ID), zap.String("reason", sanitize(e.Reason)), zap.String("error", sanitize(e.Error)))
}

// report tells the log and the observer how a delivery ended.
func (c *consumer) report(d *delivery, r Receipt) {
	c.publishReceipt(r, d.cause)
	c.tellHooks(d, r)
}

// publishReceipt writes the one line of an outcome.
func (c *consumer) publishReceipt(r Receipt, cause error) {
	c.observer.OnDelivery(r)
	level := zapcore.InfoLevel
	if r.Verdict != substrate.Ack.String() && r.Verdict != substrate.Release.String() {
		level = zapcore.WarnLevel
	}
	line := c.log.Check(level, "delivery")
	if line == nil {
		return
	}
	fields := []zap.Field{
		zap.String("message", r.Message), zap.Int("attempt", r.Attempt),
		zap.String("verdict", r.Verdict), zap.String("reason", r.Reason),
		zap.Int64("fuel", r.Fuel), zap.Duration("wall", r.Wall), zap.Int("published", r.Published),
	}
	if r.Delay > 0 {
		fields = append(fields, zap.Duration("delay", r.Delay))
	}
	if cause != nil {
		fields = append(fields, zap.Error(cause))
	}
	line.Write(fields...)
}

// guestWrote puts a line of the guest into its tenant's log.
func (c *consumer) guestWrote(d *delivery, stream string, line []byte) {
	c.guests.write(stream, line, []zap.Field{
		zap.String("consumer", c.Name), zap.String("topic", c.Topic), zap.String("message", d.Message.ID),
		zap.Int("attempt", d.Attempt),
	})
}
