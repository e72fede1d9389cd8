package messaging

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/longshore/longshore/limits"
)

// topic returns the memory of a topic's name. One that is too long is refused without a look at it.
func (c *Call) topic(ptr, n uint32) ([]byte, *PublishError) {
	if n > limits.TopicBytes {
		return nil, &PublishError{Case: Invalid, Text: fmt.Sprintf("the topic has %d bytes, the limit is %d", n, limits.TopicBytes)}
	}
	return c.guest.text(ptr, n), nil
}

// post admits m, and publishes it if the host does that at once.
func (c *Call) post(ctx context.Context, from *client, topic []byte, m *Message) (Published, *PublishError) {
	before := len(c.outbox)
	id, refused := c.admit(from, topic, m)
	if refused != nil || c.o.Publish == nil {
		return Published{ID: id}, refused
	}
	published, refused := c.publishNow(ctx, before)
	if refused != nil {
		return Published{}, refused
	}
	return published[0], nil
}

// publishNow publishes what joined the outbox after its first n messages, of which there is some, or takes all of that back.
func (c *Call) publishNow(ctx context.Context, n int) ([]Published, *PublishError) {
	published, refused := c.o.Publish(ctx, c.outbox[n:])
	if refused != nil {
		c.withdraw(n)
	}
	c.sent += len(c.outbox) - n
	clear(c.outbox[n:])
	c.outbox = c.outbox[:n]
	c.mustGoOn(ctx)
	return published, refused
}

// admit checks m against the bounds of the call and asks the host; then it joins the outbox.
func (c *Call) admit(from *client, topic []byte, m *Message) (id string, refused *PublishError) {
	if from.disconnected {
		return "", disconnected()
	}
	if string(topic) != c.lastTopic { // a comparison, which doesn't copy
		c.lastTopic = string(topic)
	}
	return c.accept(c.lastTopic, m, c.ask)
}

// ask asks the host for a message that isn't a reply.
func (c *Call) ask(topic string, m Message) (Admission, *PublishError) {
	if c.o.Admit == nil {
		return Admission{}, &PublishError{Case: Unauthorized, Text: "this call may not publish"}
	}
	return c.o.Admit(topic, m)
}

// accept puts m, which is the callee's, into the outbox if it is within the bounds of the call and ask admits it.
func (c *Call) accept(topic string, m *Message, ask func(topic string, m Message) (Admission, *PublishError)) (id string, refused *PublishError) {
	forPublish(m)
	if err := checkMessage(m); err != nil {
		return "", err
	}
	bytes := outboxBytes(topic, m)
	if err := c.checkOutbox(1, bytes); err != nil {
		return "", err
	}
	admission, err := ask(topic, *m)
	if err != nil {
		return "", err
	}
	c.outbox = append(c.outbox, Outgoing{ID: admission.ID, Topic: topic, Message: *m, Token: admission.Token})
	c.outboxBytes += bytes
	return admission.ID, nil
}

// withdraw takes the outbox back to its first n messages.
func (c *Call) withdraw(n int) {
	for _, o := range c.outbox[n:] {
		c.outboxBytes -= outboxBytes(o.Topic, &o.Message)
		if c.o.Withdraw != nil {
			c.o.Withdraw(o.Token)
		}
	}
	clear(c.outbox[n:])
	c.outbox = c.outbox[:n]
}

// outboxBytes is what a message counts for in the outbox.
func outboxBytes(topic string, m *Message) int64 {
	n := int64(len(topic)) + int64(len(m.ContentType)) + int64(len(m.Data)) + pairsBytes(m.Metadata)
	if o := m.Options; o != nil {
		n += int64(len(o.IdempotencyKey)) + int64(len(o.OrderingKey)) + int64(len(o.Target))
		for _, f := range o.RequiredFeatures {
			n += int64(len(f))
		}
		if o.Fence != nil {
			n += int64(len(o.Fence.Key))
		}
	}
	return n
}

// forPublish makes m what leaves the guest: what only a delivered message has is gone, and so is metadata by which the
// host tells of itself.
func forPublish(m *Message) {
	m.Topic, m.Info = "", nil
	if slices.ContainsFunc(m.Metadata, isHostContext) {
		m.Metadata = slices.DeleteFunc(slices.Clone(m.Metadata), isHostContext)
	}
}

// isHostContext says whether metadata names what the host alone says: W3C trace context.
func isHostContext(p Pair) bool {
	return strings.EqualFold(p.Key, "traceparent") || strings.EqualFold(p.Key, "tracestate")
}

func disconnected() *PublishError {
	return &PublishError{Case: Unavailable, Text: "the client is disconnected"}
}

// checkOutbox says whether so many more messages and bytes fit.
func (c *Call) checkOutbox(messages int, bytes int64) *PublishError {
	n := int64(len(c.outbox) + c.sent + messages)
	if n > c.o.Limits.OutboxMessages {
		return over(QuotaExceeded, limits.NameOutboxMessages, c.o.Limits.OutboxMessages, n)
	}
	if b := c.outboxBytes + bytes; b > c.o.Limits.OutboxBytes {
		return over(QuotaExceeded, limits.NameOutboxBytes, c.o.Limits.OutboxBytes, b)
	}
	return nil
}

// checkMessage checks what a topic's policy doesn't: content type and metadata.
func checkMessage(m *Message) *PublishError {
	if n := int64(len(m.ContentType)); n > limits.KeyBytes {
		return over(TooLarge, "content type bytes", limits.KeyBytes, n)
	}
	if n := int64(len(m.Metadata)); n > limits.MetadataPairs {
		return over(TooLarge, limits.NameMetadataPairs, limits.MetadataPairs, n)
	}
	if n := pairsBytes(m.Metadata); n > limits.MetadataBytes {
		return over(TooLarge, limits.NameMetadataBytes, limits.MetadataBytes, n)
	}
	for _, p := range m.Metadata {
		if n := int64(len(p.Key)); n > limits.KeyBytes {
			return over(TooLarge, "metadata key bytes", limits.KeyBytes, n)
		}
	}
	return nil
}

func over(c PublishCase, name limits.Name, limit, actual int64) *PublishError {
	return &PublishError{
		Case: c, Limit: uint64(max(limit, 0)), Actual: uint64(max(actual, 0)),
		Text: (&limits.Error{Name: name, Limit: limit, Actual: actual}).Error(),
	}
}
