package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
)

// Events are the topics, of a consumer's own tenant, that are told what becomes of its messages: each event is a message of its
// own. "" is none. Nothing that is told of a message that is an event itself, so that events never make events. One that
// can't be published fails nothing but itself: Observer.OnEvent says so.
type Events struct {
	// Pickup is told of each attempt, once nothing is left that could keep the guest from running. It is published beside the
	// guest, and is there before the attempt is settled. A crash may come first.
	Pickup string
	// Success is told of each message that the guest handled, in the commit of the acknowledgement.
	Success string
	// Death is told of each message that became a dead letter: in the same commit if the dispatcher buried it, and after that if
	// the queue did, so that a crash may come between.
	Death string
}

// EventKind says what an event tells of.
type EventKind string

// Kinds of events.
const (
	EventPickup  EventKind = "pickup"
	EventSuccess EventKind = "success"
	EventDeath   EventKind = "death"
)

// EventKinds returns all kinds.
func EventKinds() []EventKind { return []EventKind{EventPickup, EventSuccess, EventDeath} }

// EventOutcome says what became of an event.
type EventOutcome struct {
	Tenant   string
	Consumer string
	Kind     EventKind
	Failure  string // one of EventFailures; "" if it was published
}

// Why an event is not published, beside the cases of a refused publish ("depth-exceeded" and so on).
const (
	EventMessageGone = "message-gone" // the dead letter is no more, or can't be read
	EventSealFailed  = ReasonSealFailed
	EventBusy        = "busy" // more died at once than could be told of
)

// eventClaim is in the signed context of an event. Its value is the kind.
const eventClaim = "event"

// topic returns where events of a kind go.
func (e Events) topic(k EventKind) string {
	switch k {
	case EventPickup:
		return e.Pickup
	case EventSuccess:
		return e.Success
	case EventDeath:
		return e.Death
	}
	return ""
}

// faults lists what is wrong with the events of a consumer.
func (e Events) faults(c Consumer) (faults []error) {
	for _, k := range EventKinds() {
		topic := e.topic(k)
		if topic == "" {
			continue
		}
		if err := substrate.ValidTopic(topic); err != nil {
			faults = append(faults, fmt.Errorf("events: %s: %w", k, err))
		}
		if topic == c.Topic {
			faults = append(faults, fmt.Errorf("events: %s: %q is the topic that it consumes: want another", k, topic))
		}
	}
	return faults
}

// isEvent reports whether a message is an event. Who publishes it says so: nobody but the host has the subject of a consumer,
// and no guest has a say in the claims that come with it.
func isEvent(who *signedctx.Verified) bool {
	if who == nil || !strings.HasPrefix(who.Subject, subjectPrefix) {
		return false
	}
	for _, claim := range who.Claims {
		if claim.Key == eventClaim {
			return true
		}
	}
	return false
}

// event is an event that is ready to be published. It holds room in its topic until then, or until it is dropped.
type event struct {
	kind    EventKind
	message substrate.Message
}

// matter is what an event tells of.
type matter struct {
	message *substrate.Message
	who     *signedctx.Verified // published the message; nil if that isn't known
	receipt Receipt
}

// event makes an event, if one is wanted and can be.
func (c *consumer) event(k EventKind, of matter) (made event, ok bool) {
	topic := c.Events.topic(k)
	if topic == "" || isEvent(of.who) {
		return event{}, false
	}
	m, err := c.eventMessage(k, topic, of)
	if err != nil {
		c.told(k, err)
		return event{}, false
	}
	return event{kind: k, message: m}, true
}

// errSealing is in the chain of an error because of which an event has no signed context.
var errSealing = errors.New("sealing an event")

// eventMessage makes the message of an event, a child of the one that it tells of, in the name of the consumer.
func (c *consumer) eventMessage(k EventKind, topic string, of matter) (substrate.Message, error) {
	m := substrate.Message{
		ID: c.queue.MintID(), Tenant: c.Tenant, Topic: topic, ContentType: eventContentType,
		Parent: of.message.ID, Hops: of.message.Hops + 1,
	}
	if err := limits.Check(limits.NameHops, int64(m.Hops), limits.Hops); err != nil {
		return substrate.Message{}, err
	}
	m.Payload = cloudEvent(k, m.ID, of.receipt)
	var err error
	if m.Reservation, err = c.queue.Reserve(m.Tenant, topic, len(m.Payload)); err != nil {
		return substrate.Message{}, err
	}
	who := c.principal
	who.Claims = []signedctx.Claim{{Key: eventClaim, Value: string(k)}}
	if m.Envelope, err = c.context.Seal(who, Binding(m)); err != nil {
		m.Reservation.Release()
		return substrate.Message{}, fmt.Errorf("%w: %w", errSealing, err)
	}
	return m, nil
}

// told says that an event was published, or why not.
func (c *consumer) told(k EventKind, err error) {
	outcome := EventOutcome{Tenant: c.Tenant, Consumer: c.Name, Kind: k}
	if err != nil {
		outcome.Failure = eventFailure(err)
		c.log.Debug("event is not published", zap.String("event", string(k)), zap.String("failure", outcome.Failure), zap.Error(err))
	}
	c.observer.OnEvent(outcome)
}

func eventFailure(err error) string {
	switch {
	case errors.Is(err, errSealing):
		return EventSealFailed
	case errors.Is(err, errMessageGone):
		return EventMessageGone
	}
	return refusalFor(err).Case.String()
}

// allTold says that events were published, or why not.
func (c *consumer) allTold(events []event, err error) {
	for _, e := range events {
		c.told(e.kind, err)
	}
}

// drop gives back the room of events that are not published.
func drop(events []event) {
	for _, e := range events {
		e.message.Reservation.Release()
	}
}

// with returns the messages of an outbox and of events.
func with(outbox []substrate.Message, events []event) []substrate.Message {
	for _, e := range events {
		outbox = append(outbox, e.message)
	}
	return outbox
}

// publishEvents publishes events by themselves.
func (c *consumer) publishEvents(ctx context.Context, events []event) {
	if len(events) == 0 {
		return
	}
	_, err := c.queue.Publish(ctx, with(nil, events)...)
	if err != nil {
		drop(events)
	}
	c.allTold(events, err)
}

// tellPickups publishes that guests are about to run on deliveries, beside the job, which waits for it before it settles. Each
// attempt is told of once.
func (c *consumer) tellPickups(j *job, deliveries []*delivery) {
	if c.Events.Pickup == "" {
		return
	}
	var events []event
	for _, d := range deliveries {
		if d.pickedUp {
			continue
		}
		d.pickedUp = true
		r := c.blank(d.Message.ID, d.Attempt)
		r.Module, r.Version = c.Guest.Digest(), c.Version
		if e, ok := c.event(EventPickup, matter{message: &d.Message, who: d.who, receipt: r}); ok {
			events = append(events, e)
		}
	}
	if len(events) > 0 {
		j.telling.Go(func() { c.publishEvents(j.ctx, events) })
	}
}

// eventsOf makes the events that are committed with a unit.
func (c *consumer) eventsOf(u *unit, receipts []Receipt) (events []event) {
	if u.mute {
		return nil
	}
	for i, d := range u.deliveries {
		var kind EventKind
		of := []matter{{message: &d.Message, who: d.who, receipt: receipts[i]}}
		switch {
		case u.decisions[i].handled():
			kind = EventSuccess
		case u.decisions[i].verdict == substrate.Bury:
			kind = EventDeath
			for _, o := range d.older {
				of = append(of, matter{message: &o.Message, who: o.who, receipt: receipts[i].ofOlder(o, u.decisions[i])})
			}
		default:
			continue
		}
		for _, m := range of {
			if e, ok := c.event(kind, m); ok {
				events = append(events, e)
			}
		}
	}
	return events
}
