package messaging

import (
	"context"
	"encoding/binary"

	"github.com/tetratelabs/wazero/api"
)

// wasmcloud:messaging of 0.2.0 has no resources: a broker-message is a record, and a reply is a publish to the subject
// that the message names.

var (
	brokerSubjectAt = brokerMessageShape.at("subject")
	brokerBodyAt    = brokerMessageShape.at("body")
	brokerReplyAt   = brokerMessageShape.at("reply-to")
)

// brokerPublish is consumer's publish: func(msg: broker-message) -> result<_, string>.
//
//	subject ptr, len, body ptr, len, some u8, reply-to ptr, len, ret | result<_, string>
func brokerPublish(ctx context.Context, c *Call, stack []uint64) {
	asksForReply := checkFlatCase(2, arg(stack, 4)) == 1
	subject, refused := c.topic(arg(stack, 0), arg(stack, 1))
	if asksForReply {
		refused = &PublishError{Case: Invalid, Text: "a message can't name its own reply-to; use request"}
	}
	if refused == nil {
		m := Message{Data: c.copyBody(arg(stack, 2), arg(stack, 3))}
		if to := c.o.Message; to.Info != nil && to.Info.ReplyTo != "" && to.Info.ReplyTo == string(subject) {
			refused = c.reply(to, m)
		} else {
			_, refused = c.post(ctx, &client{}, subject, &m)
		}
	}
	b := make([]byte, textErrorShape.size)
	if refused != nil {
		b[0] = 1
		c.guest.lowerText(ctx, b[textErrorShape.payload:], refused.Error())
	}
	c.guest.store(arg(stack, 7), textErrorShape, b)
}

// brokerRequest is consumer's request: func(subject: string, body: list<u8>, timeout-ms: u32)
// -> result<broker-message, string>.
//
//	subject ptr, len, body ptr, len, timeout-ms, ret | result<broker-message, string>
func brokerRequest(ctx context.Context, c *Call, stack []uint64) {
	subject, refused := c.topic(arg(stack, 0), arg(stack, 1))
	var replies []Message
	if refused == nil {
		m := Message{Data: c.copyBody(arg(stack, 2), arg(stack, 3))}
		options := requestOptions{timeoutMillis: arg(stack, 4), timeoutSet: true}
		replies, refused = c.request(ctx, &client{}, string(subject), m, options)
	}
	b := make([]byte, brokerResultShape.size)
	v := b[brokerResultShape.payload:]
	if refused != nil {
		b[0] = 1
		c.guest.lowerText(ctx, v, refused.Error())
	} else {
		c.guest.lowerText(ctx, v[brokerSubjectAt:], replies[0].Topic)
		c.guest.lowerBytes(ctx, v[brokerBodyAt:], replies[0].Data)
	}
	c.guest.store(arg(stack, 5), brokerResultShape, b)
}

// copyBody copies what is published at once, which counts as held until the call ends.
func (c *Call) copyBody(ptr, n uint32) []byte {
	data := c.guest.view(ptr, n)
	c.hold(&message{}, int64(len(data)))
	return append([]byte(nil), data...)
}

// lowerBrokerMessage puts the call's message into the parameters of handle-message, flattened.
func (c *Call) lowerBrokerMessage(ctx context.Context, params []uint64) {
	m := c.o.Message
	b := make([]byte, brokerMessageShape.size)
	c.guest.lowerText(ctx, b[brokerSubjectAt:], m.Topic)
	c.guest.lowerBytes(ctx, b[brokerBodyAt:], m.Data)
	some := b[brokerReplyAt:]
	if m.Info != nil && m.Info.ReplyTo != "" {
		some[0] = 1
		c.guest.lowerText(ctx, some[optionTextShape.payload:], m.Info.ReplyTo)
	}
	for i, at := range []uint32{
		brokerSubjectAt, brokerSubjectAt + 4, brokerBodyAt, brokerBodyAt + 4, brokerReplyAt,
		brokerReplyAt + optionTextShape.payload, brokerReplyAt + optionTextShape.payload + 4,
	} {
		params[i] = api.EncodeU32(binary.LittleEndian.Uint32(b[at:]))
	}
}

// liftBrokerResult reads the result<_, string> at ptr.
func (c *Call) liftBrokerResult(ptr uint32) ([]Answer, *GuestError, error) {
	b := c.guest.value(ptr, textErrorShape)
	if checkCase(textErrorShape, b[0]) == 0 {
		return []Answer{{}}, nil, nil
	}
	var texts int64
	text, err := c.liftResultText(b[textErrorShape.payload:], &texts)
	if err != nil {
		return nil, nil, err
	}
	return nil, &GuestError{Case: ErrorOther, Text: text}, nil
}
