package messaging

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

// atOnce are the topics of what a call published at once, commit by commit.
type atOnce struct {
	commits [][]string
	refusal *PublishError
	known   string // topic whose messages are duplicates
}

func (a *atOnce) publish(_ context.Context, out []Outgoing) ([]Published, *PublishError) {
	var topics []string
	published := make([]Published, len(out))
	for i, o := range out {
		topics = append(topics, o.Topic)
		published[i] = Published{ID: o.ID}
		if o.Topic == a.known {
			published[i] = Published{ID: "the-first", Duplicate: true}
		}
	}
	if a.refusal != nil {
		return nil, a.refusal
	}
	a.commits = append(a.commits, topics)
	return published, nil
}

// run calls handle in a call that publishes at once.
func (a *atOnce) run(t *testing.T, as role, handle func(p *puppet, client, m uint32), change func(o *CallOptions)) (*Call, error) {
	t.Helper()
	p := newPuppetAs(t, as)
	p.handle = func(m uint32) uint32 {
		handle(p, p.connect(), m)
		return p.ok()
	}
	c := testCall(func(o *CallOptions) {
		o.Publish = a.publish
		if change != nil {
			change(o)
		}
	})
	_, err := p.run(c)
	return c, err
}

// publishOne publishes m and returns the result.
func (p *puppet) publishOne(client uint32, topic string, m uint32) (ret uint32) {
	args := make([]byte, 168)
	outgoing := p.outgoing(topic, m, nil)
	copy(args[4:], outgoing[:12])
	args[0] = byte(client)
	ret = p.bump(8, 56)
	p.call(importPublisher, "publish", p.bytes(8, args), ret)
	return ret
}

func TestPublishAtOnce(t *testing.T) {
	t.Run("EachFunctionPublishesBeforeTheGuestGoesOn", func(t *testing.T) {
		for _, draft := range []Draft{DraftB, DraftC} {
			a := &atOnce{}
			c, err := a.run(t, role{draft: draft}, func(p *puppet, client, m uint32) {
				code, _ := p.send(client, "sent", p.newMessage("x"))
				require.Equal(t, -1, code)
				require.Len(t, a.commits, 1)
				ret := p.publishOne(client, "published", m)
				require.Equal(t, "id-published", p.list(ret+8))
				require.Len(t, a.commits, 2)
				batch := func(topics ...string) (uint32, uint32) {
					var b []byte
					for _, topic := range topics {
						b = append(b, p.outgoing(topic, m, nil)...)
					}
					return p.bytes(8, b), uint32(len(topics))
				}
				ptr, n := batch("b1", "b2")
				p.call(importPublisher, "publish-batch", client, ptr, n, ret)
				require.Len(t, a.commits, 3)
				ptr, n = batch("a1", "a2")
				p.call(importPublisher, "publish-atomic", client, ptr, n, ret)
				require.Equal(t, "id-a2", p.list(p.word(ret+8)+20))
				ptr, n = batch()
				p.call(importPublisher, "publish-batch", client, ptr, n, ret)
				p.call(importPublisher, "publish-atomic", client, ptr, n, ret)
				require.Zero(t, p.word(ret))
			}, nil)
			require.NoError(t, err)
			require.Equal(t, [][]string{{"sent"}, {"published"}, {"b1", "b2"}, {"a1", "a2"}}, a.commits)
			require.Empty(t, c.Outbox(), "nothing is left for the acknowledgement")
		}
	})
	t.Run("WasmcloudsPublishDoesToo", func(t *testing.T) {
		a, p := &atOnce{}, newPuppetAs(t, as(t, "wasmcloud:messaging/handler@0.2.0"))
		p.handleAll = func([]uint64) uint32 {
			s, n := p.text("out")
			ret := p.bump(4, 12)
			p.call("wasmcloud:messaging/consumer@0.2.0", "publish", s, n, s, n, 0, 0, 0, ret)
			require.Zero(t, p.word(ret)&0xff)
			require.Equal(t, [][]string{{"out"}}, a.commits)
			return p.ok()
		}
		_, err := p.run(testCall(func(o *CallOptions) { o.Publish = a.publish }))
		require.NoError(t, err)
	})
	t.Run("OfABatchOnlyWhatWasAdmittedIsPublished", func(t *testing.T) {
		a := &atOnce{known: "known"}
		_, err := a.run(t, role{}, func(p *puppet, client, m uint32) {
			ret := p.bump(8, 56)
			batch := join(p.outgoing("a", m, nil), p.outgoing("no", m, nil), p.outgoing("known", m, nil))
			p.call(importPublisher, "publish-batch", client, p.bytes(8, batch), 3, ret)
			list := p.word(ret + 8)
			require.Equal(t, "id-a", p.list(list+8))
			require.Zero(t, p.word(list+16)&0xff)
			require.EqualValues(t, 1, p.word(list+56))
			require.Equal(t, "the-first", p.list(list+2*56+8))
			require.EqualValues(t, 1, p.word(list+2*56+16)&0xff, "it is a duplicate")
		}, func(o *CallOptions) {
			admit := o.Admit
			o.Admit = func(topic string, m Message) (Admission, *PublishError) {
				if topic == "no" {
					return Admission{}, &PublishError{Case: Unauthorized, Text: "no grant"}
				}
				return admit(topic, m)
			}
		})
		require.NoError(t, err)
		require.Equal(t, [][]string{{"a", "known"}}, a.commits)
	})
	t.Run("ARefusalIsTheGuestsErrorAndTakesTheMessagesBack", func(t *testing.T) {
		var withdrawn []any
		a := &atOnce{refusal: &PublishError{Case: StorageFull}}
		c, err := a.run(t, role{}, func(p *puppet, client, m uint32) {
			code, text := p.send(client, "sent", p.newMessage("x"))
			require.EqualValues(t, ErrorOther, code)
			require.Contains(t, text, "storage-full")
			ret := p.publishOne(client, "published", m)
			require.EqualValues(t, 1, p.word(ret)&0xff)
			require.EqualValues(t, StorageFull, p.word(ret+8)&0xff)
			batch := join(p.outgoing("b1", m, nil), p.outgoing("b2", m, nil))
			p.call(importPublisher, "publish-batch", client, p.bytes(8, batch), 2, ret)
			require.Zero(t, p.word(ret)&0xff)
			for i := range uint32(2) {
				require.EqualValues(t, 1, p.word(p.word(ret+8)+i*56)&0xff)
			}
			p.call(importPublisher, "publish-atomic", client, p.bytes(8, batch), 2, ret)
			require.EqualValues(t, 1, p.word(ret)&0xff)
		}, func(o *CallOptions) { o.Withdraw = func(token any) { withdrawn = append(withdrawn, token) } })
		require.NoError(t, err)
		require.Empty(t, c.Outbox())
		require.Equal(t, []any{"token-sent", "token-published", "token-b1", "token-b2", "token-b1", "token-b2"}, withdrawn)
	})
	t.Run("WhatIsPublishedCountsForTheOutbox", func(t *testing.T) {
		a := &atOnce{}
		big := strings.Repeat("x", 60)
		var texts []string
		send := func(p *puppet, client uint32, data string) {
			_, text := p.send(client, "out", p.newMessage(data))
			texts = append(texts, text)
		}
		_, err := a.run(t, role{}, func(p *puppet, client, _ uint32) {
			send(p, client, big)
			send(p, client, big) // too many bytes
			send(p, client, "")
			send(p, client, "") // too many messages
		}, func(o *CallOptions) { o.Limits.OutboxMessages, o.Limits.OutboxBytes = 2, 100 })
		require.NoError(t, err)
		require.Equal(t, []string{
			"", "quota-exceeded: outbox bytes: 126 is over the limit of 100",
			"", "quota-exceeded: outbox messages: 3 is over the limit of 2",
		}, texts)
		require.Len(t, a.commits, 2)
	})
	t.Run("RepliesWaitForTheAcknowledgement", func(t *testing.T) {
		a := &atOnce{}
		c, err := a.run(t, role{}, func(p *puppet, client, m uint32) {
			ret := p.bump(4, 16)
			p.call(importRequestReply, "reply", m, p.newMessage("answer"), ret)
			require.Zero(t, p.word(ret))
			code, _ := p.send(client, "out", p.newMessage("x"))
			require.Equal(t, -1, code)
		}, func(o *CallOptions) {
			o.Message.Info = &Info{ID: "m-1", ReplyTo: "inbox-7"}
			o.Reply = func(Message, Message) (Admission, *PublishError) { return Admission{ID: "reply-1"}, nil }
		})
		require.NoError(t, err)
		require.Len(t, c.Outbox(), 1)
		require.Equal(t, "inbox-7", c.Outbox()[0].Topic)
		require.Equal(t, [][]string{{"out"}}, a.commits)
	})
	t.Run("AGuestThatIsToStopMeanwhileDoesNotGoOn", func(t *testing.T) {
		a := &atOnce{}
		p := newPuppet(t)
		ctx, cancel := context.WithCancel(t.Context())
		p.handle = func(uint32) uint32 {
			p.send(p.connect(), "out", p.newMessage("x"))
			t.Error("it went on")
			return p.ok()
		}
		c := testCall(func(o *CallOptions) {
			o.Publish = func(ctx context.Context, out []Outgoing) ([]Published, *PublishError) {
				cancel()
				return a.publish(ctx, out)
			}
		})
		p.ctx = c.Start(ctx, p.binding)
		_, _, err := c.Handle(p.ctx, p.binding.NewInstance(p.module))
		require.ErrorIs(t, err, ErrInterrupted)
		require.Len(t, a.commits, 1)
	})
	t.Run("NothingThatIsNotAdmittedIsPublished", func(t *testing.T) {
		a := &atOnce{}
		_, err := a.run(t, role{}, func(p *puppet, client, _ uint32) {
			_, text := p.send(client, strings.Repeat("t", limits.TopicBytes+1), p.newMessage(""))
			require.Contains(t, text, "invalid: ")
		}, nil)
		require.NoError(t, err)
		require.Empty(t, a.commits)
	})
}
