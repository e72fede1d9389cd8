package messaging

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"

	"github.com/tetratelabs/wazero/api"

	"github.com/longshore/longshore/limits"
)

// defaultClient is the client name that every guest may connect to.
const defaultClient = "default"

// clientConnect is client.connect: func(name: string) -> result<client, error>.
//
//	name ptr, name len, ret | result<own<client>, error>
func clientConnect(ctx context.Context, c *Call, stack []uint64) {
	name := c.guest.text(arg(stack, 0), arg(stack, 1))
	granted := func(client string) bool { return client == string(name) } // a comparison, which doesn't copy
	if !granted(defaultClient) && !slices.ContainsFunc(c.o.Clients, granted) {
		c.returnError(ctx, arg(stack, 2), clientResultShape, &GuestError{
			Case: ErrorPermissionDenied, Text: "this consumer isn't granted a client of that name; \"default\" always is",
		})
		return
	}
	b := make([]byte, clientResultShape.size)
	binary.LittleEndian.PutUint32(b[clientResultShape.payload:], c.handles.add(&client{}))
	c.guest.store(arg(stack, 2), clientResultShape, b)
}

// clientDisconnect is client.disconnect: func() -> result<_, error>.
func clientDisconnect(ctx context.Context, c *Call, stack []uint64) {
	lookup[*client](&c.handles, arg(stack, 0)).disconnected = true
	c.returnError(ctx, arg(stack, 1), unitResultShape, nil)
}

// clientDrop drops an own<client>.
func clientDrop(_ context.Context, c *Call, stack []uint64) {
	lookup[*client](&c.handles, arg(stack, 0))
	c.handles.remove(arg(stack, 0))
}

// messageNew is the constructor of message: (data: list<u8>) -> own<message>.
func messageNew(_ context.Context, c *Call, stack []uint64) {
	data := c.guest.view(arg(stack, 0), arg(stack, 1))
	m := c.spareMessage()
	c.hold(m, int64(len(data)))
	m.Data = bytes.Clone(data)
	stack[0] = api.EncodeU32(c.newMessage(m))
}

// messageTopic is message.topic: func() -> option<topic>.
func messageTopic(ctx context.Context, c *Call, stack []uint64) {
	c.returnOptionText(ctx, arg(stack, 1), c.message(stack).Topic)
}

// messageTopicB is message.topic of draft B: func() -> topic. It is "" where there is none.
func messageTopicB(ctx context.Context, c *Call, stack []uint64) {
	m := c.message(stack)
	b := make([]byte, textShape.size)
	c.guest.lowerText(ctx, b, m.Topic)
	c.guest.store(arg(stack, 1), textShape, b)
}

// messageContentType is message.content-type: func() -> option<string>.
func messageContentType(ctx context.Context, c *Call, stack []uint64) {
	c.returnOptionText(ctx, arg(stack, 1), c.message(stack).ContentType)
}

// messageSetContentType is message.set-content-type: func(content-type: string). The empty one unsets it.
func messageSetContentType(_ context.Context, c *Call, stack []uint64) {
	m := c.message(stack)
	c.hold(m, int64(arg(stack, 2))-int64(len(m.ContentType)))
	m.ContentType = string(c.guest.text(arg(stack, 1), arg(stack, 2)))
}

// messageData is message.data: func() -> list<u8>.
func messageData(ctx context.Context, c *Call, stack []uint64) {
	m := c.message(stack)
	b := make([]byte, textShape.size)
	c.guest.lowerBytes(ctx, b, m.Data)
	c.guest.store(arg(stack, 1), textShape, b)
}

// messageSetData is message.set-data: func(data: list<u8>).
func messageSetData(_ context.Context, c *Call, stack []uint64) {
	m := c.message(stack)
	data := c.guest.view(arg(stack, 1), arg(stack, 2))
	c.hold(m, int64(len(data)-len(m.Data)))
	m.Data = bytes.Clone(data)
}

// messageMetadata is message.metadata: func() -> option<metadata>.
func messageMetadata(ctx context.Context, c *Call, stack []uint64) {
	m := c.message(stack)
	b := make([]byte, optionListShape.size)
	if m.Metadata != nil {
		b[0] = 1
		c.guest.lowerPairs(ctx, b[optionListShape.payload:], m.Metadata)
	}
	c.guest.store(arg(stack, 1), optionListShape, b)
}

// messageAddMetadata is message.add-metadata: func(key: string, value: string). It replaces the value of a key that
// is there.
func messageAddMetadata(_ context.Context, c *Call, stack []uint64) {
	m := c.message(stack)
	c.hold(m, int64(arg(stack, 2))+int64(arg(stack, 4))+pairOverheadBytes)
	key := c.guest.text(arg(stack, 1), arg(stack, 2))
	value := c.guest.text(arg(stack, 3), arg(stack, 4))
	kept := c.without(m, string(key))
	checkPairs(len(kept) + 1)
	m.Metadata = append(kept, Pair{Key: string(key), Value: string(value)})
}

// messageSetMetadata is message.set-metadata: func(meta: metadata).
func messageSetMetadata(ctx context.Context, c *Call, stack []uint64) {
	m := c.message(stack)
	b := c.guest.list(arg(stack, 1), arg(stack, 2), pairShape)
	n := len(b) / int(pairShape.size)
	checkPairs(n)
	c.hold(m, -pairsBytes(m.Metadata)-pairOverheadBytes*int64(len(m.Metadata)))
	pairs := make([]Pair, n)
	for i := range pairs {
		c.step(ctx)
		pair := b[i*int(pairShape.size):]
		key, keyBytes := getList(pair[pairKeyAt:])
		value, valueBytes := getList(pair[pairValueAt:])
		c.hold(m, int64(keyBytes)+int64(valueBytes)+pairOverheadBytes)
		pairs[i] = Pair{Key: string(c.guest.text(key, keyBytes)), Value: string(c.guest.text(value, valueBytes))}
	}
	m.Metadata = pairs
}

// messageRemoveMetadata is message.remove-metadata: func(key: string).
func messageRemoveMetadata(_ context.Context, c *Call, stack []uint64) {
	m := c.message(stack)
	key := c.guest.text(arg(stack, 1), arg(stack, 2))
	if m.Metadata != nil {
		m.Metadata = c.without(m, string(key))
	}
}

// messageDrop drops an own<message>.
func messageDrop(_ context.Context, c *Call, stack []uint64) { c.takeMessage(arg(stack, 0)) }

// message returns the message that the first parameter borrows.
func (c *Call) message(stack []uint64) *message {
	return lookup[*message](&c.handles, arg(stack, 0))
}

// without returns m's metadata without key, as a new slice, and stops counting what it leaves out.
func (c *Call) without(m *message, key string) []Pair {
	kept := make([]Pair, 0, len(m.Metadata)+1)
	for _, p := range m.Metadata {
		if p.Key == key {
			c.hold(m, -int64(len(p.Key)+len(p.Value)+pairOverheadBytes))
			continue
		}
		kept = append(kept, p)
	}
	return kept
}

// maxHeldPairs bounds the metadata of a message that a guest works on. What it publishes is bounded by
// limits.MetadataPairs, with an error that the guest sees; this one is for floods.
const maxHeldPairs = 64 * limits.MetadataPairs

func checkPairs(n int) {
	if err := limits.Check(limits.NameMetadataPairs, int64(n), maxHeldPairs); err != nil {
		panic(err)
	}
}

// returnOptionText writes an option<string> to ret: none for "".
func (c *Call) returnOptionText(ctx context.Context, ret uint32, s string) {
	b := make([]byte, optionTextShape.size)
	if s != "" {
		b[0] = 1
		c.guest.lowerText(ctx, b[optionTextShape.payload:], s)
	}
	c.guest.store(ret, optionTextShape, b)
}

// returnError writes a result of shape s whose error is wasi:messaging's to ret: ok without a value if e is nil.
func (c *Call) returnError(ctx context.Context, ret uint32, s shape, e *GuestError) {
	b := make([]byte, s.size)
	if e != nil {
		b[0] = 1
		v := b[s.payload:]
		v[0] = byte(e.Case)
		if e.Case != ErrorTimeout {
			c.guest.lowerText(ctx, v[errorShape.payload:], e.Text)
		}
	}
	c.guest.store(ret, s, b)
}
