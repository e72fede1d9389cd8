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
	id, refused := c.publishOne(ctx, from, b[argsTopicAt:], b[argsMessageAt:], b[argsOptionsAt:])
	out := make([]byte, receiptResultShape.size)
	c.lowerReceiptResult(ctx, out, id, refused)
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
	ids, refusals := make([]string, n), make([]*PublishError, n)
	c.outbox = slices.Grow(c.outbox, n)
	for i := range n {
		ids[i], refusals[i] = c.publishOutgoing(ctx, from, batch, i)
	}
	c.returnBatch(ctx, arg(stack, 3), nil, func(at []byte) {
		size := int(receiptResultShape.size)
		ptr := c.guest.alloc(ctx, n, receiptResultShape)
		buf := make([]byte, size)
		for i := range n {
			clear(buf)
			c.lowerReceiptResult(ctx, buf, ids[i], refusals[i])
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
	ids := make([]string, n)
	for i := 0; i < n && refused == nil; i++ {
		ids[i], refused = c.publishOutgoing(ctx, from, batch, i)
	}
	if refused != nil {
		c.withdraw(before)
		c.returnBatch(ctx, arg(stack, 3), refused, nil)
		return
	}
	c.returnBatch(ctx, arg(stack, 3), nil, func(at []byte) {
		size := int(receiptShape.size)
		buf := make([]byte, n*size)
		ptr := c.guest.alloc(ctx, n, receiptShape)
		for i := range n {
			c.lowerReceipt(ctx, buf[i*size:], ids[i])
		}
		copy(c.guest.list(ptr, uint32(n), receiptShape), buf)
		putList(at, ptr, n)
	})
}

// publishOutgoing publishes element i of a list<outgoing>.
func (c *Call) publishOutgoing(ctx context.Context, from *client, batch []byte, i int) (id string, refused *PublishError) {
	b := batch[i*int(outgoingShape.size):]
	return c.publishOne(ctx, from, b[outgoingTopicAt:], b[outgoingMessageAt:], b[outgoingOptionsAt:])
}

// publishOne reads one message's parts and admits it. The views are used before the guest runs again.
func (c *Call) publishOne(ctx context.Context, from *client, topicAt, messageAt, optionsAt []byte) (id string, refused *PublishError) {
	c.step(ctx)
	borrowed := lookup[*message](&c.handles, binary.LittleEndian.Uint32(messageAt)).Message
	topic, refused := c.topic(getList(topicAt))
	if refused != nil {
		return "", refused
	}
	borrowed.Options = nil
	if checkCase(optionPublishOptionsShape, optionsAt[0]) == 1 {
		borrowed.Options, refused = c.liftOptions(optionsAt[optionPublishOptionsShape.payload:])
		if refused != nil {
			return "", refused
		}
	}
	return c.admit(from, topic, &borrowed)
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
func (c *Call) lowerReceiptResult(ctx context.Context, at []byte, id string, refused *PublishError) {
	v := at[receiptResultShape.payload:]
	if refused != nil {
		at[0] = 1
		c.lowerPublishError(ctx, v, refused)
		return
	}
	c.lowerReceipt(ctx, v, id)
}

// lowerReceipt writes a receipt to at. It is never that of a duplicate: which message is one shows only when they are
// committed.
func (c *Call) lowerReceipt(ctx context.Context, at []byte, id string) {
	c.guest.lowerText(ctx, at[receiptIDAt:], id)
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
