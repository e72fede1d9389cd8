package dispatcher

import (
	"fmt"
	"slices"
	"strings"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

// admitter is what an outbox needs of a Queue.
type admitter interface {
	MintID() string
	Reserve(tenant, topic string, payloadBytes int) (*substrate.Reservation, error)
}

// outbox admits what a guest publishes during one call, and turns it into messages of the queue once the call succeeded.
// It serves one call and, like that, is not safe for concurrent use.
type outbox struct {
	queue     admitter
	context   *signedctx.Context
	principal signedctx.Principal
	grants    []string
	parents   []substrate.Message // that the call handles

	admitted []*substrate.Message // that hold room, committed or not
	refused  *refusedOutbox       // the first message that was not admitted, and may be later
}

// admit asks for one message: is the topic granted and well named, is the chain of parents short enough, and do the size
// and the topic's policy allow it? The guest sees the answer at once. An admitted message has its id, and room reserved
// in its topic until release or a commit.
func (o *outbox) admit(topic string, m messaging.Message) (messaging.Admission, *messaging.PublishError) {
	if err := substrate.ValidTopic(topic); err != nil {
		return messaging.Admission{}, refusalFor(err)
	}
	if !granted(o.grants, topic) {
		text := fmt.Sprintf("topic %q is not granted to this consumer", topic)
		return messaging.Admission{}, &messaging.PublishError{Case: messaging.Unauthorized, Text: text}
	}
	if m.Options != nil && m.Options.Fence != nil {
		return messaging.Admission{}, &messaging.PublishError{Case: messaging.Unauthorized, Text: "a consumer isn't granted fences"}
	}
	out := forQueue(o.principal.Tenant, topic, m, o.parentOf(m))
	if out.Options.IdempotencyKey != "" {
		out.Options.Principal = o.principal.Subject
	}
	if err := limits.Check(limits.NameHops, int64(out.Hops), limits.Hops); err != nil {
		return messaging.Admission{}, refusalFor(err)
	}
	r, err := o.queue.Reserve(out.Tenant, topic, len(out.Payload))
	if err != nil {
		o.noteRefusal(topic, err)
		return messaging.Admission{}, refusalFor(err)
	}
	out.ID, out.Reservation = o.queue.MintID(), r
	o.admitted = append(o.admitted, &out)
	return messaging.Admission{ID: out.ID, Token: &out}, nil
}

// noteRefusal remembers that the queue had no room, which says nothing about the message: the consumer can wait for it.
func (o *outbox) noteRefusal(topic string, err error) {
	r, isRefusal := refusedBy(err)
	if o.refused == nil && isRefusal && !r.forever {
		r.topic = topic
		o.refused = r
	}
}

// noteFailure remembers that a message was not stored, unless it never will be.
func (o *outbox) noteFailure(topic string, err error) {
	if _, isRefusal := refusedBy(err); isRefusal {
		o.noteRefusal(topic, err)
	} else if o.refused == nil {
		o.refused = &refusedOutbox{why: messaging.Unavailable}
	}
}

// noteNoRoom remembers that too many of others are in the way.
func (o *outbox) noteNoRoom() {
	if o.refused == nil {
		o.refused = &refusedOutbox{why: messaging.QuotaExceeded}
	}
}

// parentOf returns the message that a published one has as its parent: that which the guest names as the cause, or the first
// of the call. Its chain counts as the longest of all that may have led there.
func (o *outbox) parentOf(m messaging.Message) (parent substrate.Message) {
	parent = o.parents[0]
	for _, p := range o.parents {
		if m.Options != nil && m.Options.Cause == p.ID {
			return p
		}
		parent.Hops = max(parent.Hops, p.Hops)
	}
	return parent
}

// withdraw gives back what admit gave for the message of that token, which won't be published.
func (o *outbox) withdraw(token any) {
	i := slices.IndexFunc(o.admitted, func(m *substrate.Message) bool { return any(m) == token })
	if i < 0 {
		return
	}
	if r := o.admitted[i].Reservation; r != nil {
		r.Release()
	}
	o.admitted = slices.Delete(o.admitted, i, i+1)
}

// seal binds the messages that the call published to the consumer's own principal, and returns them, in order, ready to
// be committed.
func (o *outbox) seal(published []messaging.Outgoing) ([]substrate.Message, error) {
	sealed := make([]substrate.Message, 0, len(published))
	for _, p := range published {
		m, ok := p.Token.(*substrate.Message)
		if !ok {
			return nil, fmt.Errorf("sealing message %s to topic %s: it was not admitted", p.ID, p.Topic)
		}
		envelope, err := o.context.Seal(o.principal, Binding(*m))
		if err != nil {
			return nil, fmt.Errorf("sealing message %s to topic %s: %w", m.ID, m.Topic, err)
		}
		m.Envelope = envelope
		sealed = append(sealed, *m)
	}
	return sealed, nil
}

// release gives back the room of what was admitted and not committed. Room that a commit consumed is left alone.
func (o *outbox) release() {
	for _, m := range o.admitted {
		if m.Reservation != nil {
			m.Reservation.Release()
		}
	}
	o.admitted = nil
}

// granted reports whether one of the grants covers the topic: by its name, by a prefix that ends in "/*", or by "*".
func granted(grants []string, topic string) bool {
	for _, g := range grants {
		if g == "*" || g == topic {
			return true
		}
		if prefix, ok := strings.CutSuffix(g, "*"); ok && strings.HasSuffix(prefix, "/") && strings.HasPrefix(topic, prefix) {
			return true
		}
	}
	return false
}
