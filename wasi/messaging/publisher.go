package messaging

import (
	"context"
	"encoding/binary"
	"fmt"
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
	c.lowerReceipt(ctx, out, id, refused)
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
	out := make([]byte, batchResultShape.size)
	if refused := c.checkOutbox(n, 0); refused != nil {
		out[0] = 1
		c.lowerPublishError(ctx, out[batchResultShape.payload:], refused)
		c.guest.store(arg(stack, 3), batchResultShape, out)
		return
	}
	ids, refusals := make([]string, n), make([]*PublishError, n)
	for i := range n {
		b := batch[i*int(outgoingShape.size):]
		ids[i], refusals[i] = c.publishOne(ctx, from, b[outgoingTopicAt:], b[outgoingMessageAt:], b[outgoingOptionsAt:])
	}
	c.lowerReceipts(ctx, out[batchResultShape.payload:], ids, refusals)
	c.guest.store(arg(stack, 3), batchResultShape, out)
}

// publishOne reads one message's parts and admits it. The views are used before the guest runs again.
func (c *Call) publishOne(ctx context.Context, from *client, topicAt, messageAt, optionsAt []byte) (id string, refused *PublishError) {
	c.mustGoOn(ctx)
	m := lookup[*message](&c.handles, binary.LittleEndian.Uint32(messageAt))
	topic, refused := c.topic(getList(topicAt))
	if refused != nil {
		return "", refused
	}
	if checkCase(optionPublishOptionsShape, optionsAt[0]) == 1 {
		if refused := refuseOptions(optionsAt[optionPublishOptionsShape.payload:]); refused != nil {
			return "", refused
		}
	}
	return c.admit(from, topic, m.Message)
}

// refuseOptions refuses publish-options that ask for anything but the default: an option that isn't honoured is never
// ignored.
func refuseOptions(b []byte) *PublishError {
	for _, f := range publishOptionsShape.fields {
		if !isDefault(f.shape, b[f.offset:]) {
			return &PublishError{Case: Invalid, Text: fmt.Sprintf("publish option %q is not supported by this host", f.name)}
		}
	}
	return nil
}

// isDefault says whether a value of shape s is zero, none, or empty.
func isDefault(s shape, b []byte) bool {
	switch s.kind {
	case list:
		_, n := getList(b)
		return n == 0
	case variant:
		return checkCase(s, b[0]) == 0
	case scalar, record:
	}
	for _, v := range b[:s.size] {
		if v != 0 {
			return false
		}
	}
	return true
}

// lowerReceipts writes a list<result<receipt, publish-error>> to at.
func (c *Call) lowerReceipts(ctx context.Context, at []byte, ids []string, refusals []*PublishError) {
	size := int(receiptResultShape.size)
	buf := make([]byte, len(ids)*size)
	ptr := c.guest.alloc(ctx, len(ids), receiptResultShape)
	for i := range ids {
		c.lowerReceipt(ctx, buf[i*size:], ids[i], refusals[i])
	}
	copy(c.guest.list(ptr, uint32(len(ids)), receiptResultShape), buf)
	putList(at, ptr, len(ids))
}

// lowerReceipt writes a result<receipt, publish-error> to at.
func (c *Call) lowerReceipt(ctx context.Context, at []byte, id string, refused *PublishError) {
	v := at[receiptResultShape.payload:]
	if refused != nil {
		at[0] = 1
		c.lowerPublishError(ctx, v, refused)
		return
	}
	c.guest.lowerText(ctx, v[receiptIDAt:], id)
	c.guest.lowerPairs(ctx, v[receiptExtensionsAt:], nil)
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
			v[limitRetryAfterAt] = 1
			ms := uint64(max(e.RetryAfter.Milliseconds(), 0))
			binary.LittleEndian.PutUint64(v[limitRetryAfterAt+optionMillisPayloadAt:], ms)
		}
		c.guest.lowerPairs(ctx, v[limitExtensionsAt:], nil)
	case Unauthorized, Invalid, Unavailable, Other:
		c.guest.lowerText(ctx, v, strings.ToValidUTF8(e.Text, "�"))
	case Timeout:
	}
}
