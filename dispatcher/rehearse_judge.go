package dispatcher

import (
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

// Rehearsed is what would become of a message.
type Rehearsed struct {
	Receipt Receipt // that the delivery would leave
	Handled bool    // it would be acknowledged because the guest handled it
	Pauses  bool    // the consumer would pause itself
	Cause   error   // of a verdict that is not an ack, safe to print; may be nil

	// Outputs are what would be published at once, and with the acknowledgement, in order, and Values what would be written. What
	// messages of one call share is with the first of them. They share the guest's payloads.
	Outputs []substrate.Message
	Replies []messaging.Message
	Values  []substrate.ValueWrite
	Refused int    // requests that the guest asked for, which a rehearsal refuses
	Text    string // of the error that the guest returned, or of its rejection: untrusted
}

// judge decides about a unit, and puts what would become of each message into the place of its token.
func (c *consumer) judge(u *unit, found []Rehearsed) {
	c.decide(u)
	outbox, err := u.seal()
	if err != nil {
		u.redecide(c, finding{end: atSeal}, err)
		outbox = nil
	}
	replies, counts, countedTo := u.answers(), u.counts(outbox), u.countedTo()
	for i, d := range u.deliveries {
		dec := u.decisions[i]
		r := Rehearsed{
			Receipt: c.receipt(d, dec, counts[i]+repliesTo(d.Message.ID, replies)),
			Handled: dec.handled(), Pauses: dec.then == pause, Cause: d.cause, Text: textOf(d), Outputs: d.shown,
		}
		for at := range outbox {
			if countedTo(&outbox[at]) == i {
				r.Outputs = append(r.Outputs, outbox[at])
			}
		}
		for _, one := range replies {
			if one.request == d.Message.ID {
				r.Replies = append(r.Replies, one.message)
			}
		}
		if u.run != nil && d == u.deliveries[0] {
			r.Refused = u.run.refused
			if u.commitsValues() {
				r.Values = u.run.values.changes().Writes
			}
		}
		*placeOf(d, found) = r
		for _, older := range d.older {
			*placeOf(older, found) = r.ofOlder(older, dec)
		}
	}
}

// placeOf returns where the result of a delivery belongs.
func placeOf(d *delivery, found []Rehearsed) *Rehearsed { return &found[d.Lease.Token-1] }

// ofOlder returns what becomes of a message that shares the end of a newer one.
func (r Rehearsed) ofOlder(d *delivery, dec decision) Rehearsed {
	own := Rehearsed{Receipt: r.Receipt.ofOlder(d, dec), Pauses: r.Pauses, Cause: r.Cause}
	if r.Handled {
		own.Receipt.Reason = ReasonStale
	}
	return own
}

// textOf returns what the guest said of its failure, or of the message that it didn't acknowledge.
func textOf(d *delivery) string {
	if d.run == nil {
		return ""
	}
	o := d.run.outcome
	for i, of := range d.run.deliveries {
		if of == d && i < len(o.Answers) {
			return o.Answers[i].Text
		}
	}
	return o.GuestText
}

// showNow takes what a guest would publish at once, whatever becomes of its call.
func (a *asker) showNow(out []messaging.Outgoing) ([]messaging.Published, *messaging.PublishError) {
	sealed, err := a.run.outbox.seal(out)
	if err != nil {
		a.run.outbox.noteFailure(out[0].Topic, err)
		return nil, refusalFor(err)
	}
	published := make([]messaging.Published, len(out))
	for i, m := range sealed {
		published[i].ID = m.ID
		d := a.run.delivery(m.Parent)
		d.sent++
		d.shown = append(d.shown, m)
	}
	return published, nil
}
