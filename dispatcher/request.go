package dispatcher

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

// asker makes the requests of one call, and what it publishes at once. Like that, it is not safe for concurrent use.
type asker struct {
	*consumer
	phases phases
	job    *job
	run    *run
	call   *messaging.Call
}

// request publishes a message at once, and waits for the replies to it without a worker. What it publishes is not undone if
// the call fails.
//
//	admit ─► open an inquiry ─► seal ─► leave the worker ─► publish ─► wait ─► close the inquiry ─► come back
func (a *asker) request(ctx context.Context, r messaging.Request) ([]messaging.Message, *messaging.PublishError) {
	if a.rehearses {
		a.run.refused++
		return nil, &messaging.PublishError{Case: messaging.Unavailable, Text: "a rehearsal sends no requests"}
	}
	until := endOfWait(time.Now(), r.Deadline, a.call.Deadline())
	if !time.Now().Before(until) {
		return nil, &messaging.PublishError{Case: messaging.Timeout}
	}
	m, refused := a.admit(r)
	if refused != nil {
		return nil, refused
	}
	defer a.run.outbox.withdraw(m)
	in, err := a.inquiries.open(a.Tenant, m.ID, r.Replies, a.workers.mayLeave(a.Tenant))
	if err != nil {
		a.run.outbox.noteNoRoom()
		return nil, refusalFor(err)
	}
	m.Options.ReplyTo, m.Options.Deadline = in.address, until
	var replies []messaging.Message
	err = a.away(ctx, a.phases.stop, func() error {
		if _, err := a.publish(ctx, []messaging.Outgoing{{ID: m.ID, Topic: m.Topic, Token: m}}); err != nil {
			in.forget()
			return err
		}
		a.wait(ctx, in, until)
		replies = in.close()
		return nil
	})
	if err != nil {
		a.run.outbox.noteFailure(r.Topic, err)
		return nil, refusalFor(err)
	}
	return replies, nil
}

// endOfWait returns when a request that was made now stops waiting: when it asks for that, but early enough for the call to
// go on with what came.
func endOfWait(now, asked, call time.Time) time.Time {
	if latest := call.Add(-min(call.Sub(now)/10, limits.RequestMargin)); asked.After(latest) {
		return latest
	}
	return asked
}

// admit asks for a request as for any message, and that its reply is allowed, and that somebody is there to give it.
func (a *asker) admit(r messaging.Request) (*substrate.Message, *messaging.PublishError) {
	o := a.run.outbox
	admission, refused := o.admit(r.Topic, r.Message)
	if refused != nil {
		return nil, refused
	}
	m, _ := admission.Token.(*substrate.Message)
	if err := limits.Check(limits.NameHops, int64(m.Hops)+1, limits.Hops); err != nil {
		o.withdraw(m)
		return nil, refusalFor(err)
	}
	if !a.audience.has(a.Tenant, r.Topic) {
		o.withdraw(m)
		return nil, &messaging.PublishError{Case: messaging.Unavailable, Text: fmt.Sprintf("topic %q has no consumer", r.Topic)}
	}
	return m, nil
}

// wait waits for the replies, until the time is over or the guest is to stop.
func (a *asker) wait(ctx context.Context, in *inquiry, until time.Time) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-in.enough:
	case <-timer.C:
	case <-ctx.Done():
	case <-a.phases.stop.Done():
	}
}

// away does what takes others to go on, without a worker and without being charged if the host is killed meanwhile. If the
// guest can't go on after that, because stop is done or the lease is lost, the guest is stopped.
func (a *asker) away(ctx, stop context.Context, do func() error) error {
	a.job.ended()
	a.job.turn.leave()
	err := do()
	if stopped := a.job.turn.comeBack(stop, ctx); stopped != nil {
		a.job.lose(errStopping)
		return err
	}
	ended, fault := a.queue.Start(a.job.begun...)
	if fault != nil {
		a.job.lose(fmt.Errorf("the queue can't note that the guest goes on: %w", fault))
		return err
	}
	a.job.ended = ended
	return err
}

// audience knows which topics have a consumer. It is safe for concurrent use.
type audience struct {
	mu     sync.RWMutex
	topics map[substrate.TopicName]bool
}

// set says which consumers there are.
func (a *audience) set(consumers []Consumer) {
	topics := make(map[substrate.TopicName]bool, len(consumers))
	for _, c := range consumers {
		topics[substrate.TopicName{Tenant: c.Tenant, Topic: c.Topic}] = true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.topics = topics
}

// has reports whether a topic has a consumer.
func (a *audience) has(tenant, topic string) bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.topics[substrate.TopicName{Tenant: tenant, Topic: topic}]
}

// Requests returns what became of the requests of guests.
func (d *Dispatcher) Requests() RequestStats { return d.shared.inquiries.count() }
