package messaging

import (
	"context"
	"encoding/binary"
	"slices"
	"strings"
)

// publish is publisher's publish: func(client: borrow<client>, topic: topic, message: borrow<message>,
// options: option<publish-options>) -> result<receipt, publish-error>. It has too many flat parameters, so that they
// come through memory.
//
//	args ptr, ret | result<receipt, publish-error>
func publish(ctx context.Context, c *Call, stack []uint64) {
	b := c.guest.value(arg(stack, 0), publishArgsShape)
	from := lookup[*client](&c.handles, binary.LittleEndian.Uint32(b[argsClientAt:]))
	topic, m, refused := c.liftOne(ctx, b[argsTopicAt:], b[argsMessageAt:], b[argsOptionsAt:])
	var r Published
	if refused == nil {
		r, refused = c.post(ctx, from, topic, &m)
	}
	out := make([]byte, receiptResultShape.size)
	c.lowerReceiptResult(ctx, out, r, refused)
	c.guest.store(arg(stack, 1), receiptResultShape, out)
}

// publishBatch is publisher's publish-batch: func(client: borrow<client>, batch: list<outgoing>)
// -> result<list<result<receipt, publish-error>>, publish-error>. The outer error means that nothing was accepted.
//
//	client, list ptr, list len, ret | result<list<…>, publish-error>
func publishBatch(ctx context.Context, c *Call, stack []uint64) {
	from := lookup[*client](&c.handles, arg(stack, 0))
	batch := c.guest.list(arg(stack, 1), arg(stack, 2), outgoingShape)
	n := len(batch) / int(outgoingShape.size)
	if refused := c.checkOutbox(n, 0); refused != nil {
		c.returnBatch(ctx, arg(stack, 3), refused, nil)
		return
	}
	receipts, refusals := make([]Published, n), make([]*PublishError, n)
	c.outbox = slices.Grow(c.outbox, n)
	before := len(c.outbox)
	for i := range n {
		receipts[i].ID, refusals[i] = c.admitOutgoing(ctx, from, batch, i)
	}
	c.publishAdmitted(ctx, before, receipts, refusals)
	c.returnBatch(ctx, arg(stack, 3), nil, func(at []byte) {
		size := int(receiptResultShape.size)
		ptr := c.guest.alloc(ctx, n, receiptResultShape)
		buf := make([]byte, size)
		for i := range n {
			clear(buf)
			c.lowerReceiptResult(ctx, buf, receipts[i], refusals[i])
			copy(c.guest.list(ptr, uint32(n), receiptResultShape)[i*size:], buf) // a view that no allocation has moved
		}
		putList(at, ptr, n)
	})
}

// publishAtomic is publisher's publish-atomic: func(client: borrow<client>, batch: list<outgoing>)
// -> result<list<receipt>, publish-error>. The first refusal takes back what was accepted before it.
//
//	client, list ptr, list len, ret | result<list<receipt>, publish-error>
func publishAtomic(ctx context.Context, c *Call, stack []uint64) {
	from := lookup[*client](&c.handles, arg(stack, 0))
	batch := c.guest.list(arg(stack, 1), arg(stack, 2), outgoingShape)
	n := len(batch) / int(outgoingShape.size)
	refused := c.checkOutbox(n, 0)
	before := len(c.outbox)
	receipts := make([]Published, n)
	for i := 0; i < n && refused == nil; i++ {
		receipts[i].ID, refused = c.admitOutgoing(ctx, from, batch, i)
	}
	if refused != nil {
		c.withdraw(before)
	} else if c.o.Publish != nil && n > 0 {
		receipts, refused = c.publishNow(ctx, before)
	}
	if refused != nil {
		c.returnBatch(ctx, arg(stack, 3), refused, nil)
		return
	}
	c.returnBatch(ctx, arg(stack, 3), nil, func(at []byte) {
		size := int(receiptShape.size)
		buf := make([]byte, n*size)
		ptr := c.guest.alloc(ctx, n, receiptShape)
		for i := range n {
			c.lowerReceipt(ctx, buf[i*size:], receipts[i])
		}
		copy(c.guest.list(ptr, uint32(n), receiptShape), buf)
		putList(at, ptr, n)
	})
}

// publishAdmitted publishes what was admitted of a batch after the first messages of the outbox, if the host does that at once,
// and puts what became of it where the batch has its results.
func (c *Call) publishAdmitted(ctx context.Context, before int, receipts []Published, refusals []*PublishError) {
	if c.o.Publish == nil || len(c.outbox) == before {
		return
	}
	published, refused := c.publishNow(ctx, before)
	next := 0
	for i := range receipts {
		switch {
		case refusals[i] != nil:
		case refused != nil:
			refusals[i] = refused
		default:
			receipts[i] = published[next]
			next++
		}
	}
}

// admitOutgoing admits element i of a list<outgoing>.
func (c *Call) admitOutgoing(ctx context.Context, from *client, batch []byte, i int) (id string, refused *PublishError) {
	b := batch[i*int(outgoingShape.size):]
	topic, m, refused := c.liftOne(ctx, b[outgoingTopicAt:], b[outgoingMessageAt:], b[outgoingOptionsAt:])
	if refused != nil {
		return "", refused
	}
	return c.admit(from, topic, &m)
}

// liftOne reads one message's parts. The views are used before the guest runs again, and so is the topic that it returns.
func (c *Call) liftOne(ctx context.Context, topicAt, messageAt, optionsAt []byte) (topic []byte, m Message, refused *PublishError) {
	c.step(ctx)
	m = lookup[*message](&c.handles, binary.LittleEndian.Uint32(messageAt)).Message
	if topic, refused = c.topic(getList(topicAt)); refused != nil {
		return nil, m, refused
	}
	m.Options = nil
	if checkCase(optionPublishOptionsShape, optionsAt[0]) == 1 {
		m.Options, refused = c.liftOptions(optionsAt[optionPublishOptionsShape.payload:])
	}
	return topic, m, refused
}

// returnBatch writes a result whose error is a publish-error and whose value, written by ok, is a list.
func (c *Call) returnBatch(ctx context.Context, ret uint32, refused *PublishError, ok func(at []byte)) {
	out := make([]byte, batchResultShape.size)
	if refused != nil {
		out[0] = 1
		c.lowerPublishError(ctx, out[batchResultShape.payload:], refused)
	} else {
		ok(out[batchResultShape.payload:])
	}
	c.guest.store(ret, batchResultShape, out)
}

// lowerReceiptResult writes a result<receipt, publish-error> to at.
func (c *Call) lowerReceiptResult(ctx context.Context, at []byte, r Published, refused *PublishError) {
	v := at[receiptResultShape.payload:]
	if refused != nil {
		at[0] = 1
		c.lowerPublishError(ctx, v, refused)
		return
	}
	c.lowerReceipt(ctx, v, r)
}

// lowerReceipt writes a receipt to at. It is that of a duplicate only of what is published at once: of what is in the outbox,
// that shows when it is committed.
func (c *Call) lowerReceipt(ctx context.Context, at []byte, r Published) {
	c.guest.lowerText(ctx, at[receiptIDAt:], r.ID)
	if r.Duplicate {
		at[receiptDuplicateAt] = 1
	}
	c.guest.lowerPairs(ctx, at[receiptExtensionsAt:], nil)
}

// lowerPublishError writes a publish-error to at.
func (c *Call) lowerPublishError(ctx context.Context, at []byte, e *PublishError) {
	at[0] = byte(e.Case)
	v := at[publishErrorShape.payload:]
	switch e.Case {
	case DepthExceeded, RateExceeded, TooLarge, QuotaExceeded, HopLimit, StorageFull:
		binary.LittleEndian.PutUint64(v[limitLimitAt:], e.Limit)
		binary.LittleEndian.PutUint64(v[limitActualAt:], e.Actual)
		if e.RetryAfter != nil {
			putOptionU64(v[limitRetryAfterAt:], uint64(max(e.RetryAfter.Milliseconds(), 0)))
		}
		c.guest.lowerPairs(ctx, v[limitExtensionsAt:], nil)
	case Unauthorized, Invalid, Unavailable, Other:
		c.guest.lowerText(ctx, v, strings.ToValidUTF8(e.Text, "�"))
	case Timeout:
	}
}
