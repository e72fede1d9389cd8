package dispatcher

import (
	"fmt"
	"time"

	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

// run is one call of the guest, on one or more deliveries.
type run struct {
	deliveries []*delivery
	outbox     *outbox
	values     *view // nil if there are none
	outcome    runtime.Outcome
	published  []messaging.Outgoing // by a call that ended well
	paused     time.Duration        // while others ran
	refused    int                  // requests, because this is a rehearsal
}

// newRun makes a run that was not made yet.
func (c *consumer) newRun(deliveries []*delivery) *run {
	parents := make([]substrate.Message, len(deliveries))
	for i, d := range deliveries {
		parents[i] = d.Message
	}
	r := &run{deliveries: deliveries, outbox: &outbox{
		queue: c.queue, context: c.context, principal: c.principal, grants: c.Publish, parents: parents,
	}, values: c.newView()}
	if c.rehearses {
		r.outbox.queue = c.foresee(r.outbox)
	}
	for _, d := range deliveries {
		d.run = r
	}
	return r
}

// call runs the guest on deliveries, for at most d.
func (c *consumer) call(p phases, j *job, deliveries []*delivery, d time.Duration) *run {
	r := c.newRun(deliveries)
	messages := make([]messaging.Message, len(deliveries))
	for i, one := range deliveries {
		messages[i] = forGuest(one.Message)
		messages[i].Info = infoFor(one.Delivery, c.MaxAttempts)
		messages[i].Info.Claims = claimsFor(one.who)
	}
	bounds := c.Limits
	bounds.CallDuration = d
	a := &asker{consumer: c, phases: p, job: j, run: r}
	options := messaging.CallOptions{
		Message:  messages[0],
		More:     messages[1:],
		Limits:   bounds,
		Clients:  c.Clients,
		Config:   c.Config,
		Admit:    r.outbox.admit,
		Withdraw: r.outbox.withdraw,
		Pause:    a.pause,
		Request:  a.request,
		Reply: func(to, m messaging.Message) (messaging.Admission, *messaging.PublishError) {
			return c.reply(r, to, m)
		},
		Draining: func() bool { return p.claim.Err() != nil },
		Log:      func(stream string, line []byte) { c.guestWrote(deliveries[0], stream, line) },
	}
	if c.Immediate {
		options.Publish = a.publishNow
	}
	if r.values != nil {
		options.Store = r.values
	}
	a.call = messaging.NewCall(options)
	r.outcome = c.runGuest(j, a.call)
	r.paused = a.call.Paused()
	j.turn.spent(r.outcome.FuelUsed)
	if r.outcome.Class == runtime.OK {
		r.published = a.call.Outbox()
	}
	c.logTexts(r)
	return r
}

// logTexts puts what the guest said of its failure, or of messages, into its tenant's log.
func (c *consumer) logTexts(r *run) {
	if r.outcome.GuestText != "" {
		c.guestWrote(r.deliveries[0], "error", []byte(r.outcome.GuestText))
	}
	for i, a := range r.outcome.Answers {
		if a.Text != "" && i < len(r.deliveries) {
			c.guestWrote(r.deliveries[i], "reject", []byte(a.Text))
		}
	}
}

// runGuest makes the call. A panic on its way fails this call alone.
func (c *consumer) runGuest(j *job, call *messaging.Call) (out runtime.Outcome) {
	defer func() {
		if err := c.recovered(j.deliveries[0], recover()); err != nil {
			out = runtime.Outcome{Class: runtime.HostPanic, Err: err}
		}
	}()
	return c.Guest.Invoke(j.ctx, call)
}

// conclude says of each delivery of a run what it came to.
func (c *consumer) conclude(r *run) {
	var refused *refusedOutbox
	if o := r.outbox.refused; o != nil && gaveUp(r.outcome.Class) {
		o.before = c.condition.outboxRefused(o.topic)
		refused = o
	}
	for i, d := range r.deliveries {
		f := finding{end: atGuest, outcome: r.outcome, refused: refused, skips: skipsOf(d.PreviousReason)}
		if n := len(f.outcome.Answers); n > i {
			f.outcome.Answers = f.outcome.Answers[i : i+1 : i+1]
		} else if n > 0 {
			f.outcome.Answers = []messaging.Answer{answerOf(r.outcome, i)}
		}
		if r.outcome.Class == runtime.BadABI {
			f.badABI = c.condition.brokeABI(d.Message.ID)
		}
		d.cause = r.outcome.Err
		d.comesTo(f)
	}
}

// seal signs what the run published and may be committed beside the acknowledgement of some of its messages, whose ids are
// given: what one of them caused, and, if all are acknowledged, what has no cause.
func (r *run) seal(acked map[string]bool) ([]substrate.Message, error) {
	commits := make([]messaging.Outgoing, 0, len(r.published))
	for _, p := range r.published {
		if _, is := p.Token.(*reply); is {
			continue
		}
		cause := causeOf(p)
		if (cause == "" && len(acked) == len(r.deliveries)) || acked[cause] {
			commits = append(commits, p)
		}
	}
	if len(commits) == 0 {
		return nil, nil
	}
	sealed, err := r.outbox.seal(commits)
	if err != nil {
		return nil, fmt.Errorf("seal the outbox: %w", err)
	}
	return sealed, nil
}

// shares reports whether a run of several messages published something that belongs to all of them, or wrote values.
func (r *run) shares() bool {
	if len(r.deliveries) > 1 && r.values.wrote() {
		return true
	}
	for _, p := range r.published {
		if len(r.deliveries) > 1 && causeOf(p) == "" {
			return true
		}
	}
	return false
}

// causeOf returns the id of the message because of which another was published, "" for all of the call.
func causeOf(p messaging.Outgoing) string {
	if r, is := p.Token.(*reply); is {
		return r.request
	}
	if p.Message.Options == nil {
		return ""
	}
	return p.Message.Options.Cause
}
