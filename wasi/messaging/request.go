package messaging

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/longshore/longshore/limits"
)

// requestOptions is the resource request-options. Zero fields are unset.
type requestOptions struct {
	timeoutMillis uint32
	timeoutSet    bool
	replies       uint32
}

// requestOptionsNew is the constructor of request-options.
func requestOptionsNew(_ context.Context, c *Call, stack []uint64) {
	stack[0] = api.EncodeU32(c.handles.add(&requestOptions{}))
}

// requestOptionsSetTimeout is request-options.set-timeout-ms: func(timeout-ms: u32).
func requestOptionsSetTimeout(_ context.Context, c *Call, stack []uint64) {
	o := lookup[*requestOptions](&c.handles, arg(stack, 0))
	o.timeoutMillis, o.timeoutSet = arg(stack, 1), true
}

// requestOptionsSetReplies is request-options.set-expected-replies: func(expected-replies: u32).
func requestOptionsSetReplies(_ context.Context, c *Call, stack []uint64) {
	lookup[*requestOptions](&c.handles, arg(stack, 0)).replies = arg(stack, 1)
}

// requestOptionsDrop drops an own<request-options>.
func requestOptionsDrop(_ context.Context, c *Call, stack []uint64) {
	c.takeRequestOptions(arg(stack, 0))
}

func (c *Call) takeRequestOptions(h uint32) *requestOptions {
	o := lookup[*requestOptions](&c.handles, h)
	c.handles.remove(h)
	return o
}

// request is request-reply's request: func(c: borrow<client>, topic: topic, message: borrow<message>,
// options: option<request-options>) -> result<list<message>, error>.
//
//	client, topic ptr, topic len, message, some u8, options, ret | result<list<own<message>>, error>
func request(ctx context.Context, c *Call, stack []uint64) {
	from := lookup[*client](&c.handles, arg(stack, 0))
	m := lookup[*message](&c.handles, arg(stack, 3))
	options := c.optionRequestOptions(arg(stack, 4), arg(stack, 5))
	topic, refused := c.topic(arg(stack, 1), arg(stack, 2))
	var replies []Message
	if refused == nil {
		replies, refused = c.request(ctx, from, string(topic), m.Message, options)
	}
	c.returnMessages(ctx, arg(stack, 6), replies, refused)
}

// requestWithoutTopic is draft B's request: func(c: borrow<client>, message: borrow<message>,
// options: option<request-options>). The message's own topic is meant, which only a delivered one has.
//
//	client, message, some u8, options, ret | result<list<own<message>>, error>
func requestWithoutTopic(ctx context.Context, c *Call, stack []uint64) {
	from := lookup[*client](&c.handles, arg(stack, 0))
	m := lookup[*message](&c.handles, arg(stack, 1))
	options := c.optionRequestOptions(arg(stack, 2), arg(stack, 3))
	if m.Topic == "" {
		refused := &PublishError{Case: Invalid, Text: "the message has no topic, and this draft of request takes none"}
		c.returnMessages(ctx, arg(stack, 4), nil, refused)
		return
	}
	replies, refused := c.request(ctx, from, m.Topic, m.Message, options)
	c.returnMessages(ctx, arg(stack, 4), replies, refused)
}

// optionRequestOptions takes an option<request-options>, flattened, from the guest's table.
func (c *Call) optionRequestOptions(some, h uint32) requestOptions {
	if checkFlatCase(2, some) == 0 {
		return requestOptions{}
	}
	return *c.takeRequestOptions(h)
}

// request checks a request as a publish, and waits for its replies.
func (c *Call) request(ctx context.Context, from *client, topic string, m Message, o requestOptions) ([]Message, *PublishError) {
	if from.disconnected {
		return nil, disconnected()
	}
	forPublish(&m)
	m.Options = nil
	if err := checkMessage(&m); err != nil {
		return nil, err
	}
	r := Request{Topic: topic, Message: m, Deadline: c.deadline, Replies: max(int(min(o.replies, limits.RequestReplies+1)), 1)}
	if r.Replies > limits.RequestReplies {
		return nil, over(QuotaExceeded, "expected replies", limits.RequestReplies, int64(o.replies))
	}
	if o.timeoutSet {
		if at := time.Now().Add(time.Duration(o.timeoutMillis) * time.Millisecond); at.Before(r.Deadline) {
			r.Deadline = at
		}
	}
	if c.o.Request == nil {
		return nil, &PublishError{Case: Unavailable, Text: "this host takes no requests"}
	}
	bytes := outboxBytes(topic, &m)
	if err := c.checkOutbox(1, bytes); err != nil {
		return nil, err
	}
	c.sent++
	c.outboxBytes += bytes
	replies, refused := c.o.Request(ctx, r)
	c.mustGoOn(ctx)
	if refused == nil && len(replies) == 0 {
		refused = &PublishError{Case: Timeout}
	}
	return replies[:min(len(replies), r.Replies)], refused
}

// reply is request-reply's reply: func(reply-to: borrow<message>, message: message) -> result<_, error>.
//
//	reply-to, message, ret | result<_, error>
func reply(ctx context.Context, c *Call, stack []uint64) {
	to := lookup[*message](&c.handles, arg(stack, 0))
	m := c.takeMessage(arg(stack, 1))
	refused := c.reply(to.Message, m)
	c.returnError(ctx, arg(stack, 2), unitResultShape, refused.forSend())
}

// reply puts a reply to one of the call's messages into the outbox.
func (c *Call) reply(to, m Message) *PublishError {
	switch {
	case to.Info == nil || to.Info.ReplyTo == "":
		return &PublishError{Case: Invalid, Text: "the message asks for no reply"}
	case c.o.Reply == nil:
		return &PublishError{Case: Unavailable, Text: "this host takes no replies"}
	}
	m.Options = nil
	_, refused := c.accept(to.Info.ReplyTo, &m, func(_ string, m Message) (Admission, *PublishError) { return c.o.Reply(to, m) })
	return refused
}

// returnMessages writes a result<list<own<message>>, error> to ret.
func (c *Call) returnMessages(ctx context.Context, ret uint32, replies []Message, refused *PublishError) {
	if refused != nil {
		c.returnError(ctx, ret, messagesResultShape, refused.forSend())
		return
	}
	list := make([]byte, len(replies)*int(handleShape.size))
	for i, r := range replies {
		m := c.spareMessage()
		c.hold(m, heldBytes(r))
		m.Message = r
		m.Options = nil
		binary.LittleEndian.PutUint32(list[i*int(handleShape.size):], c.newMessage(m))
	}
	b := make([]byte, messagesResultShape.size)
	ptr := c.guest.alloc(ctx, len(replies), handleShape)
	copy(c.guest.list(ptr, uint32(len(replies)), handleShape), list)
	putList(b[messagesResultShape.payload:], ptr, len(replies))
	c.guest.store(ret, messagesResultShape, b)
}
