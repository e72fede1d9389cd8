package messaging

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

// request makes a request of draft C with optional options (0 = none) and returns the result's memory.
func (p *puppet) request(client uint32, topic string, message, options uint32) uint32 {
	ptr, n := p.text(topic)
	ret, some := p.bump(4, 16), uint32(0)
	if options != 0 {
		some = 1
	}
	p.call(importRequestReply, "request", client, ptr, n, message, some, options, ret)
	return ret
}

func (p *puppet) requestOptions(timeout, replies uint32) uint32 {
	o := p.call(importRequestReply, "[constructor]request-options")
	p.call(importRequestReply, "[method]request-options.set-timeout-ms", o, timeout)
	p.call(importRequestReply, "[method]request-options.set-expected-replies", o, replies)
	return o
}

func TestRequest(t *testing.T) {
	t.Run("RepliesBecomeMessagesOfTheGuest", func(t *testing.T) {
		p := newPuppet(t)
		p.handle = func(m uint32) uint32 {
			ret := p.request(p.connect(), "prices", m, p.requestOptions(1500, 2))
			require.Zero(t, p.word(ret))
			list, n := p.word(ret+4), p.word(ret+8)
			require.EqualValues(t, 2, n, "no more than it asked for")
			data := p.bump(4, 8)
			p.types("[method]message.data", p.word(list+4), data)
			require.Equal(t, "second", p.list(data))
			p.types("[resource-drop]message", p.word(list))
			p.types("[resource-drop]message", m) // it was borrowed
			return p.ok()
		}
		c := testCall(func(o *CallOptions) {
			o.Message.Metadata = []Pair{{"traceparent", "x"}, {"a", "b"}}
			o.Message.Info = &Info{ID: "m-1"}
			o.Request = func(_ context.Context, r Request) ([]Message, *PublishError) {
				require.Equal(t, "prices", r.Topic)
				require.Equal(t, Message{Data: []byte("data"), Metadata: []Pair{{"a", "b"}}}, r.Message)
				require.Equal(t, 2, r.Replies)
				require.WithinDuration(t, time.Now().Add(1500*time.Millisecond), r.Deadline, time.Second)
				return []Message{{Data: []byte("first")}, {Data: []byte("second")}, {Data: []byte("third")}}, nil
			}
		})
		_, err := p.run(c)
		require.NoError(t, err)
		require.Empty(t, c.Outbox(), "a request doesn't wait for the acknowledgement")
	})
	t.Run("ItNeverWaitsPastTheCall", func(t *testing.T) {
		p := newPuppet(t)
		var c *Call
		p.handle = func(m uint32) uint32 {
			p.request(p.connect(), "prices", m, 0)
			p.request(p.connect(), "prices", m, p.requestOptions(^uint32(0), 0))
			return p.ok()
		}
		c = testCall(func(o *CallOptions) {
			o.Request = func(_ context.Context, r Request) ([]Message, *PublishError) {
				require.Equal(t, c.Deadline(), r.Deadline)
				require.Equal(t, 1, r.Replies)
				return []Message{{}}, nil
			}
		})
		_, err := p.run(c)
		require.NoError(t, err)
	})
	refusals := map[string]struct {
		replies uint32
		answer  func() ([]Message, *PublishError)
		want    ErrorCase
	}{
		"NoReplyIsATimeout":    {1, func() ([]Message, *PublishError) { return nil, nil }, ErrorTimeout},
		"ARefusalIsToldToIt":   {1, func() ([]Message, *PublishError) { return nil, &PublishError{Case: Unauthorized} }, ErrorPermissionDenied},
		"TooManyReplies":       {limits.RequestReplies + 1, nil, ErrorOther},
		"VeryManyReplies":      {^uint32(0), nil, ErrorOther},
		"AHostWithoutRequests": {1, nil, ErrorConnection},
	}
	for name, r := range refusals {
		t.Run(name, func(t *testing.T) {
			p := newPuppet(t)
			p.handle = func(m uint32) uint32 {
				ret := p.request(p.connect(), "prices", m, p.requestOptions(10, r.replies))
				require.EqualValues(t, 1, p.word(ret))
				require.EqualValues(t, r.want, p.word(ret+4)&0xff)
				return p.ok()
			}
			_, err := p.run(testCall(func(o *CallOptions) {
				if r.answer != nil {
					o.Request = func(context.Context, Request) ([]Message, *PublishError) { return r.answer() }
				}
			}))
			require.NoError(t, err)
		})
	}
	t.Run("TheyCountForTheOutbox", func(t *testing.T) {
		p := newPuppet(t)
		asked := 0
		p.handle = func(m uint32) uint32 {
			client := p.connect()
			for range 3 {
				require.Zero(t, p.word(p.request(client, "prices", m, 0)))
			}
			ret := p.request(client, "prices", m, 0)
			require.EqualValues(t, ErrorOther, p.word(ret+4)&0xff)
			require.Contains(t, p.list(ret+8), "outbox messages: 4 is over the limit of 3")
			return p.ok()
		}
		_, err := p.run(testCall(func(o *CallOptions) {
			o.Limits.OutboxMessages = 3
			o.Request = func(context.Context, Request) ([]Message, *PublishError) {
				asked++
				return []Message{{}}, nil
			}
		}))
		require.NoError(t, err)
		require.Equal(t, 3, asked)
	})
	t.Run("TheMostRepliesAreTaken", func(t *testing.T) {
		p := newPuppet(t)
		p.handle = func(m uint32) uint32 {
			ret := p.request(p.connect(), "prices", m, p.requestOptions(10, limits.RequestReplies))
			require.EqualValues(t, limits.RequestReplies, p.word(ret+8))
			return p.ok()
		}
		_, err := p.run(testCall(func(o *CallOptions) {
			o.Request = func(_ context.Context, r Request) ([]Message, *PublishError) { return make([]Message, r.Replies), nil }
		}))
		require.NoError(t, err)
	})
	t.Run("RepliesCountAsHeld", func(t *testing.T) {
		p := newPuppet(t)
		p.handle = func(m uint32) uint32 { return p.request(p.connect(), "prices", m, 0) }
		_, err := p.run(testCall(func(o *CallOptions) {
			o.Request = func(context.Context, Request) ([]Message, *PublishError) {
				return []Message{{Data: make([]byte, limits.HeldBytes+1)}}, nil
			}
		}))
		require.ErrorIs(t, err, &limits.Error{Name: limits.NameHeldBytes})
	})
	t.Run("OptionsAreTheHostsOnceGiven", func(t *testing.T) {
		p := newPuppet(t)
		p.handle = func(m uint32) uint32 {
			client, o := p.connect(), p.requestOptions(1, 1)
			p.request(client, "a", m, o)
			p.request(client, "a", m, o)
			return p.ok()
		}
		_, err := p.run(testCall(nil))
		var abi *ABIError
		require.ErrorAs(t, err, &abi)
		require.Contains(t, abi.Problem, "is not a request-options of this call")
	})
}

func TestReply(t *testing.T) {
	p := newPuppet(t)
	p.handle = func(m uint32) uint32 {
		ret := p.bump(4, 16)
		p.call(importRequestReply, "reply", m, p.newMessage("answer"), ret)
		require.Zero(t, p.word(ret))
		own := p.newMessage("of the guest")
		p.call(importRequestReply, "reply", own, p.newMessage("x"), ret)
		require.EqualValues(t, 1, p.word(ret))
		require.Contains(t, p.list(ret+8), "asks for no reply")
		return p.ok()
	}
	c := testCall(func(o *CallOptions) {
		o.Message.Info = &Info{ID: "m-1", ReplyTo: "inbox-7"}
		o.Reply = func(to, m Message) (Admission, *PublishError) {
			require.Equal(t, "m-1", to.Info.ID)
			return Admission{ID: "reply-1", Token: "r"}, nil
		}
	})
	_, err := p.run(c)
	require.NoError(t, err)
	require.Equal(t, []Outgoing{{ID: "reply-1", Topic: "inbox-7", Message: Message{Data: []byte("answer")}, Token: "r"}}, c.Outbox())
}

func TestDraftB(t *testing.T) {
	p := newPuppetAs(t, role{draft: DraftB})
	p.handle = func(m uint32) uint32 {
		ret := p.words(0, 0, 0xabababab)
		p.types("[method]message.topic", m, ret)
		require.Equal(t, "in", p.list(ret))
		require.EqualValues(t, 0xabababab, p.word(ret+8), "a plain string has 8 bytes: what follows is the guest's")
		p.types("[method]message.topic", p.newMessage(""), ret)
		require.Zero(t, p.word(ret+4))
		result := p.bump(4, 16)
		p.call(importRequestReply, "request", p.connect(), m, 0, 0, result)
		require.Zero(t, p.word(result))
		p.call(importRequestReply, "request", p.connect(), p.newMessage(""), 0, 0, result)
		require.Contains(t, p.list(result+8), "has no topic")
		return p.ok()
	}
	_, err := p.run(testCall(func(o *CallOptions) {
		o.Request = func(_ context.Context, r Request) ([]Message, *PublishError) {
			return []Message{{}}, map[bool]*PublishError{false: {Case: Other, Text: r.Topic}}[r.Topic == "in"]
		}
	}))
	require.NoError(t, err)
}

func TestWasmcloud(t *testing.T) {
	consumer := "wasmcloud:messaging/consumer@0.2.0"
	p := newPuppetAs(t, as(t, "wasmcloud:messaging/handler@0.2.0"))
	p.handleAll = func(a []uint64) uint32 {
		require.Equal(t, "in", p.read(uint32(a[0]), uint32(a[1])))
		require.Equal(t, "data", p.read(uint32(a[2]), uint32(a[3])))
		require.EqualValues(t, 1, a[4])
		require.Equal(t, "inbox-7", p.read(uint32(a[5]), uint32(a[6])))
		publish := func(subject, body string, some uint32) string {
			s, sn := p.text(subject)
			b, bn := p.text(body)
			ret := p.bump(4, 12)
			p.call(consumer, "publish", s, sn, b, bn, some, s, sn, ret)
			if p.word(ret)&0xff == 0 {
				return ""
			}
			return p.list(ret + 4)
		}
		require.Empty(t, publish("out", "published", 0))
		require.Empty(t, publish("inbox-7", "replied", 0))
		require.Equal(t, "unauthorized: not granted", publish("no", "", 0))
		require.Contains(t, publish("out", "", 1), "use request")
		s, sn := p.text("prices")
		ret := p.bump(4, 32)
		p.call(consumer, "request", s, sn, s, sn, 100, ret)
		require.Zero(t, p.word(ret))
		require.Equal(t, "answer", p.list(ret+4+8))
		require.Zero(t, p.word(ret+4+16), "no reply-to")
		text, n := p.text("later")
		return p.words(1, text, n)
	}
	c := testCall(func(o *CallOptions) {
		o.Message.Info = &Info{ReplyTo: "inbox-7"}
		admit := o.Admit
		o.Admit = func(topic string, m Message) (Admission, *PublishError) {
			if topic == "no" {
				return Admission{}, &PublishError{Case: Unauthorized, Text: "not granted"}
			}
			return admit(topic, m)
		}
		o.Reply = func(Message, Message) (Admission, *PublishError) { return Admission{ID: "reply"}, nil }
		o.Request = func(context.Context, Request) ([]Message, *PublishError) {
			return []Message{{Data: []byte("answer")}}, nil
		}
	})
	refused, err := p.run(c)
	require.NoError(t, err)
	require.Equal(t, &GuestError{Case: ErrorOther, Text: "later"}, refused)
	var sent []string
	for _, o := range c.Outbox() {
		sent = append(sent, fmt.Sprintf("%s %s %s", o.ID, o.Topic, o.Message.Data))
	}
	require.Equal(t, []string{"id-out out published", "reply inbox-7 replied"}, sent)
}
