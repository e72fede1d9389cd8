package messaging

import (
	"fmt"

	"github.com/longshore/longshore/limits"
)

// topic returns the memory of a topic's name. One that is too long is refused without a look at it.
func (c *Call) topic(ptr, n uint32) ([]byte, *PublishError) {
	if n > limits.TopicBytes {
		return nil, &PublishError{Case: Invalid, Text: fmt.Sprintf("the topic has %d bytes, the limit is %d", n, limits.TopicBytes)}
	}
	return c.guest.text(ptr, n), nil
}

// admit checks m against the bounds of the call and asks the host; then it joins the outbox.
func (c *Call) admit(from *client, topic []byte, m Message) (id string, refused *PublishError) {
	if from.disconnected {
		return "", &PublishError{Case: Unavailable, Text: "the client is disconnected"}
	}
	m.Topic = ""
	if err := checkMessage(m); err != nil {
		return "", err
	}
	bytes := int64(len(topic)) + int64(len(m.ContentType)) + int64(len(m.Data)) + pairsBytes(m.Metadata)
	if err := c.checkOutbox(1, bytes); err != nil {
		return "", err
	}
	if c.o.Admit == nil {
		return "", &PublishError{Case: Unauthorized, Text: "this call may not publish"}
	}
	admission, err := c.o.Admit(string(topic), m)
	if err != nil {
		return "", err
	}
	c.outbox = append(c.outbox, Outgoing{ID: admission.ID, Topic: string(topic), Message: m, Token: admission.Token})
	c.outboxBytes += bytes
	return admission.ID, nil
}

// checkOutbox says whether so many more messages and bytes fit.
func (c *Call) checkOutbox(messages int, bytes int64) *PublishError {
	n := int64(len(c.outbox) + messages)
	if n > c.o.Limits.OutboxMessages {
		return over(QuotaExceeded, limits.NameOutboxMessages, c.o.Limits.OutboxMessages, n)
	}
	if b := c.outboxBytes + bytes; b > c.o.Limits.OutboxBytes {
		return over(QuotaExceeded, limits.NameOutboxBytes, c.o.Limits.OutboxBytes, b)
	}
	return nil
}

// checkMessage checks what a topic's policy doesn't: content type and metadata.
func checkMessage(m Message) *PublishError {
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
