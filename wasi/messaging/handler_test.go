package messaging

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

// as returns the role of a handler.
func as(t *testing.T, iface string) role {
	t.Helper()
	h, ok := handlerOf(iface)
	require.True(t, ok)
	return role{handler: h}
}

// outcome is an outcome in memory; text or delay is its payload.
func (p *puppet) outcome(c AnswerCase, delay *uint64, text string) []byte {
	b := make([]byte, 24)
	b[0] = byte(c)
	if delay != nil {
		b[8] = 1
		binary.LittleEndian.PutUint64(b[16:], *delay)
	}
	if text != "" {
		ptr, n := p.text(text)
		binary.LittleEndian.PutUint32(b[8:], ptr)
		binary.LittleEndian.PutUint32(b[12:], n)
	}
	return b
}

func TestOutcomeHandler(t *testing.T) {
	delay, forever := uint64(2500), ^uint64(0)
	after, longest := 2500*time.Millisecond, limits.OptionDuration
	cases := map[string]struct {
		give func(p *puppet) []byte
		want Answer
	}{
		"Ack":          {func(p *puppet) []byte { return p.outcome(AnswerAck, nil, "") }, Answer{}},
		"Retry":        {func(p *puppet) []byte { return p.outcome(AnswerRetry, nil, "") }, Answer{Case: AnswerRetry}},
		"RetryLater":   {func(p *puppet) []byte { return p.outcome(AnswerRetry, &delay, "") }, Answer{Case: AnswerRetry, Delay: &after}},
		"RetryNever":   {func(p *puppet) []byte { return p.outcome(AnswerRetry, &forever, "") }, Answer{Case: AnswerRetry, Delay: &longest}},
		"Reject":       {func(p *puppet) []byte { return p.outcome(AnswerReject, nil, "плохо") }, Answer{Case: AnswerReject, Text: "плохо"}},
		"RejectNoText": {func(p *puppet) []byte { return p.outcome(AnswerReject, nil, "") }, Answer{Case: AnswerReject}},
		"Skip":         {func(p *puppet) []byte { return p.outcome(AnswerSkip, nil, "") }, Answer{Case: AnswerSkip}},
	}
	for name, c := range cases {
		t.Run(name+"IsWhatTheGuestSaid", func(t *testing.T) {
			p := newPuppetAs(t, as(t, "longshore:messaging/outcome-handler@0.1.0"))
			var freed []uint32
			p.handle = func(uint32) uint32 { return p.bytes(8, c.give(p)) }
			p.post = func(ptr uint32) { freed = append(freed, ptr) }
			answers, refused, err := p.answer(testCall(nil))
			require.NoError(t, err)
			require.Nil(t, refused)
			require.Equal(t, []Answer{c.want}, answers)
			require.Len(t, freed, 1)
		})
	}
	breaks := map[string]func(p *puppet) uint32{
		"UnknownCase": func(p *puppet) uint32 { return p.bytes(8, p.outcome(4, nil, "")) },
		"UnknownOption": func(p *puppet) uint32 {
			return p.bytes(8, append([]byte{1, 0, 0, 0, 0, 0, 0, 0, 2}, make([]byte, 15)...))
		},
		"Misaligned":     func(p *puppet) uint32 { return p.bytes(8, make([]byte, 32)) + 4 },
		"PastTheEnd":     func(*puppet) uint32 { return puppetPages*65536 - 16 },
		"NotUTF8":        func(p *puppet) uint32 { return p.bytes(8, p.outcome(AnswerReject, nil, "\xff")) },
		"TextPastTheEnd": func(p *puppet) uint32 { return p.words(2, 0, puppetPages*65536-1, 2, 0, 0) },
	}
	for name, result := range breaks {
		t.Run(name+"BreaksTheABI", func(t *testing.T) {
			p := newPuppetAs(t, as(t, "longshore:messaging/outcome-handler@0.1.0"))
			p.handle = func(uint32) uint32 { return alignUp(result(p), 4) }
			p.post = func(uint32) { t.Error("post-return was called") }
			_, _, err := p.answer(testCall(nil))
			var abi *ABIError
			require.ErrorAs(t, err, &abi)
			require.Equal(t, "longshore:messaging/outcome-handler@0.1.0#handle", abi.Func)
		})
	}
}

// batchPuppet is a batch handler that is given three messages.
func batchPuppet(t *testing.T, handle func(p *puppet, messages []uint32) uint32) ([]Answer, *GuestError, *Call, error) {
	t.Helper()
	p := newPuppetAs(t, as(t, "longshore:messaging/batch-handler@0.1.0"))
	p.handleAll = func(params []uint64) uint32 {
		list, n := uint32(params[0]), uint32(params[1])
		var messages []uint32
		for i := range n {
			messages = append(messages, p.word(list+4*i))
		}
		return handle(p, messages)
	}
	c := testCall(func(o *CallOptions) {
		o.Message.Info = &Info{ID: "m-0"}
		o.More = []Message{{Topic: "in", Data: []byte("second"), Info: &Info{ID: "m-1"}}, {Topic: "in", Data: []byte("third")}}
	})
	answers, refused, err := p.answer(c)
	return answers, refused, c, err
}

// outcomes is an ok result of a batch.
func (p *puppet) outcomes(list ...[]byte) uint32 {
	return p.words(0, p.bytes(8, join(list...)), uint32(len(list)), 0)
}

func TestBatchHandler(t *testing.T) {
	t.Run("TheGuestGetsAllMessagesInOrder", func(t *testing.T) {
		answers, refused, c, err := batchPuppet(t, func(p *puppet, messages []uint32) uint32 {
			var data []string
			for _, m := range messages {
				ret := p.bump(4, 8)
				p.types("[method]message.data", m, ret)
				data = append(data, p.list(ret))
			}
			require.Equal(t, []string{"data", "second", "third"}, data)
			o := p.options().some(124, "m-1")
			batch := p.outgoing("out", messages[1], o.b)
			ret := p.bump(8, 56)
			p.call(importPublisher, "publish-batch", p.connect(), p.bytes(8, batch), 1, ret)
			require.Zero(t, p.word(p.word(ret+8)))
			return p.outcomes(p.outcome(AnswerAck, nil, ""), p.outcome(AnswerReject, nil, "no"), p.outcome(AnswerRetry, nil, ""))
		})
		require.NoError(t, err)
		require.Nil(t, refused)
		require.Equal(t, []Answer{{}, {Case: AnswerReject, Text: "no"}, {Case: AnswerRetry}}, answers)
		require.Equal(t, "m-1", c.Outbox()[0].Message.Options.Cause)
		require.Nil(t, c.Outbox()[0].Message.Info)
	})
	t.Run("WhatIsLeftOutIsSkipped", func(t *testing.T) {
		answers, _, _, err := batchPuppet(t, func(p *puppet, _ []uint32) uint32 { return p.outcomes(p.outcome(AnswerAck, nil, "")) })
		require.NoError(t, err)
		require.Equal(t, []Answer{{}, {Case: AnswerSkip}, {Case: AnswerSkip}}, answers)
	})
	t.Run("MoreOutcomesThanMessagesBreakTheABI", func(t *testing.T) {
		_, _, _, err := batchPuppet(t, func(p *puppet, _ []uint32) uint32 { return p.words(0, 0, 4, 0) })
		var abi *ABIError
		require.ErrorAs(t, err, &abi)
		require.Equal(t, "4 outcomes for 3 messages", abi.Problem)
	})
	t.Run("AnErrorIsOfAllMessages", func(t *testing.T) {
		answers, refused, _, err := batchPuppet(t, func(p *puppet, _ []uint32) uint32 {
			ptr, n := p.text("closed")
			return p.words(1, uint32(ErrorConnection), ptr, n)
		})
		require.NoError(t, err)
		require.Nil(t, answers)
		require.Equal(t, &GuestError{Case: ErrorConnection, Text: "closed"}, refused)
	})
	t.Run("TheTextsOfAllOutcomesAreBoundedTogether", func(t *testing.T) {
		_, _, _, err := batchPuppet(t, func(p *puppet, _ []uint32) uint32 {
			half := make([]byte, 24)
			half[0] = byte(AnswerReject)
			binary.LittleEndian.PutUint32(half[12:], limits.ResultBytes/2+1)
			return p.outcomes(half, half)
		})
		require.ErrorIs(t, err, &limits.Error{Name: limits.NameResultBytes})
	})
	t.Run("AReallocThatTrapsEndsTheCall", func(t *testing.T) {
		p := newPuppetAs(t, as(t, "longshore:messaging/batch-handler@0.1.0"))
		p.realloc = func(_, _, _, _ uint32) uint32 { panic(errors.New("boom")) }
		p.handleAll = func([]uint64) uint32 { t.Error("was called"); return 0 }
		_, _, err := p.answer(testCall(nil))
		require.ErrorContains(t, err, "boom")
	})
	t.Run("AHandlerOfOneMessageIsNotGivenMore", func(t *testing.T) {
		p := newPuppet(t)
		p.handle = func(uint32) uint32 { t.Error("was called"); return 0 }
		_, _, err := p.answer(testCall(func(o *CallOptions) { o.More = []Message{{}} }))
		require.ErrorContains(t, err, "2 messages for a handler that takes one")
	})
}

func TestHandlersOfEveryMangling(t *testing.T) {
	for _, h := range handlers() {
		for name, names := range map[string]*mangling{"legacy": &legacy, "standard32": &standard32} {
			t.Run(h.iface+"/"+name, func(t *testing.T) {
				p := newPuppetAs(t, role{names: names, handler: h})
				require.Equal(t, h.kind == batchHandler, p.binding.Batches())
				freed := 0
				p.handleAll = func([]uint64) uint32 {
					m := p.newMessage("made")
					p.types("[resource-drop]message", m)
					client := p.connect()
					code, _ := p.send(client, "out", p.newMessage("sent"))
					require.Equal(t, -1, code)
					p.types("[resource-drop]client", client)
					return p.bytes(8, make([]byte, 24))
				}
				p.post = func(uint32) { freed++ }
				c := testCall(nil)
				_, refused, err := p.answer(c)
				require.NoError(t, err)
				require.Nil(t, refused)
				require.Equal(t, "sent", string(c.Outbox()[0].Message.Data))
				require.Equal(t, 1, freed)
			})
		}
	}
}

func TestDelivery(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_123)
	info := &Info{
		ID: "m-1", Attempt: 2, MaxAttempts: 5, PreviousReason: "timeout", Group: "audit", Published: at, Expires: at.Add(time.Second),
		Deadline: at.Add(time.Minute), Priority: 7, IdempotencyKey: "once", OrderingKey: "k", Fence: &Fence{Key: "f", Token: 1 << 40},
		Parent: "m-0", Hops: 3, Trace: []Pair{{"traceparent", "00-1"}}, Extensions: []Pair{{"x", "y"}}, ReplyTo: "secret",
		Claims: &Claims{
			Tenant: "t", Subject: "s", Issuer: "i", TokenID: "j", IssuedAt: at, Extra: []Pair{{"role", "admin"}},
		},
	}
	t.Run("InfoTellsAllThatIsKnown", func(t *testing.T) {
		p := newPuppet(t)
		p.handle = func(m uint32) uint32 {
			ret := p.bump(8, 248)
			p.call(importDelivery, "info", m, ret)
			u64 := func(at uint32) uint64 { return uint64(p.word(at)) | uint64(p.word(at+4))<<32 }
			require.EqualValues(t, 1, p.word(ret))
			i := ret + 8
			require.Equal(t, "m-1", p.list(i))
			require.Equal(t, "in", p.list(i+8))
			require.EqualValues(t, 2, p.word(i+16))
			require.EqualValues(t, 5, p.word(i+20))
			require.Equal(t, "timeout", p.list(i+24+4))
			require.Equal(t, "audit", p.list(i+36+4))
			require.EqualValues(t, at.UnixMilli(), u64(i+48))
			require.EqualValues(t, at.UnixMilli()+1000, u64(i+56+8))
			require.EqualValues(t, at.UnixMilli()+60_000, u64(i+72+8))
			require.EqualValues(t, 7, p.word(i+88)&0xff)
			require.Equal(t, "once", p.list(i+92+4))
			require.Equal(t, "k", p.list(i+104+4))
			require.Equal(t, "f", p.list(i+120+8))
			require.EqualValues(t, 1<<40, u64(i+120+16))
			require.Equal(t, "m-0", p.list(i+144+4))
			require.EqualValues(t, 3, p.word(i+156))
			require.EqualValues(t, 1, p.word(i+160))
			claims := i + 168
			for n, want := range []string{"t", "s", "i", "j"} {
				require.Equal(t, want, p.list(claims+8*uint32(n)))
			}
			require.EqualValues(t, at.UnixMilli(), u64(claims+32))
			require.Equal(t, "admin", p.list(p.word(claims+40)+8))
			require.Equal(t, "traceparent", p.list(p.word(i+224)))
			require.Equal(t, "y", p.list(p.word(i+232)+8))
			return p.ok()
		}
		_, err := p.run(testCall(func(o *CallOptions) { o.Message.Info = info }))
		require.NoError(t, err)
	})
	t.Run("WhatIsUnknownIsNone", func(t *testing.T) {
		p := newPuppet(t)
		p.handle = func(m uint32) uint32 {
			ret := p.bump(8, 248)
			p.call(importDelivery, "info", m, ret)
			i := ret + 8
			for _, at := range []uint32{24, 36, 56, 72, 92, 104, 120, 144, 160} {
				require.Zero(t, p.word(i+at)&0xff, at)
			}
			p.call(importDelivery, "info", p.newMessage("of the guest"), ret)
			require.Zero(t, p.word(ret)&0xff)
			return p.ok()
		}
		_, err := p.run(testCall(func(o *CallOptions) { o.Message.Info = &Info{ID: "m-1", Published: at} }))
		require.NoError(t, err)
	})
	t.Run("TimeLeftAndDraining", func(t *testing.T) {
		p := newPuppet(t)
		draining := false
		p.handle = func(uint32) uint32 {
			left := p.call64(importDelivery, "time-left")
			require.Greater(t, left, uint64(59_000))
			require.LessOrEqual(t, left, uint64(60_000))
			require.Zero(t, p.call(importDelivery, "draining"))
			draining = true
			require.EqualValues(t, 1, p.call(importDelivery, "draining"))
			return p.ok()
		}
		_, err := p.run(testCall(func(o *CallOptions) { o.Draining = func() bool { return draining } }))
		require.NoError(t, err)
	})
}
