package messaging

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

// options builds the bytes of some(publish-options), whose offsets are written out here.
type options struct {
	p *puppet
	b []byte
}

func (p *puppet) options() *options {
	b := make([]byte, 152)
	b[0] = 1
	return &options{p, b}
}

func (o *options) u64(at int, v uint64) *options {
	o.b[8+at] = 1
	binary.LittleEndian.PutUint64(o.b[8+at+8:], v)
	return o
}

// list writes a pointer and a length.
func (o *options) list(at int, ptr, n uint32) *options {
	binary.LittleEndian.PutUint32(o.b[8+at:], ptr)
	binary.LittleEndian.PutUint32(o.b[8+at+4:], n)
	return o
}

func (o *options) some(at int, s string) *options {
	o.b[8+at] = 1
	ptr, n := o.p.text(s)
	return o.list(at+4, ptr, n)
}

func (o *options) fence(key string, token uint64) *options {
	o.b[8+80] = 1
	ptr, n := o.p.text(key)
	o.list(80+8, ptr, n)
	binary.LittleEndian.PutUint64(o.b[8+80+16:], token)
	return o
}

func (o *options) features(names ...string) *options {
	var words []uint32
	for _, name := range names {
		ptr, n := o.p.text(name)
		words = append(words, ptr, n)
	}
	return o.list(104, o.p.words(words...), uint32(len(names)))
}

// publishWith publishes one message with options, and returns the call and the result's memory.
func publishWith(t *testing.T, build func(o *options)) (c *Call, word func(at uint32) uint32, text func(at uint32) string) {
	t.Helper()
	p := newPuppet(t)
	ret := p.bump(8, 56)
	p.handle = func(m uint32) uint32 {
		o := p.options()
		build(o)
		args := make([]byte, 168)
		ptr, n := p.text("out")
		for i, v := range []uint32{p.connect(), ptr, n, m} {
			binary.LittleEndian.PutUint32(args[4*i:], v)
		}
		copy(args[16:], o.b)
		p.call(importPublisher, "publish", p.bytes(8, args), ret)
		return p.ok()
	}
	c = testCall(func(o *CallOptions) { o.Message.Info = &Info{ID: "m-1"} })
	_, err := p.run(c)
	require.NoError(t, err)
	return c, func(at uint32) uint32 { return p.word(ret + at) }, func(at uint32) string { return p.list(ret + at) }
}

func TestPublishOptions(t *testing.T) {
	t.Run("UnsetOnesPass", func(t *testing.T) {
		c, word, _ := publishWith(t, func(o *options) { o.list(104, 1234, 0) }) // an empty list may point anywhere
		require.Zero(t, word(0))
		require.Equal(t, &PublishOptions{}, c.Outbox()[0].Message.Options)
	})
	t.Run("AllOfThemReachTheOutbox", func(t *testing.T) {
		c, word, text := publishWith(t, func(o *options) {
			o.u64(0, 1500).u64(16, 60_000).u64(32, 1_900_000_000_123).some(52, "once").some(64, "customer-7").fence("leader", 9)
			o.b[8+48] = 200
			o.features("a", "бэ").some(112, "billing").some(124, "m-1")
		})
		require.Zero(t, word(0), "%s", text)
		require.Equal(t, "id-out", text(8))
		require.Zero(t, word(16), "not a duplicate")
		require.Equal(t, &PublishOptions{
			Delay: 1500 * time.Millisecond, TTL: time.Minute, Deadline: time.UnixMilli(1_900_000_000_123), Priority: 200,
			IdempotencyKey: "once", OrderingKey: "customer-7", Fence: &Fence{Key: "leader", Token: 9},
			RequiredFeatures: []string{"a", "бэ"}, Target: "billing", Cause: "m-1",
		}, c.Outbox()[0].Message.Options)
	})
	year := uint64(limits.OptionDuration.Milliseconds())
	t.Run("BoundsAreReached", func(t *testing.T) {
		full := make([]string, limits.RequiredFeatures)
		for i := range full {
			full[i] = strings.Repeat("f", limits.FeatureBytes)
		}
		_, word, _ := publishWith(t, func(o *options) {
			o.u64(0, year).u64(16, year).u64(32, maxTimestampMillis).some(52, strings.Repeat("k", limits.KeyBytes)).features(full...)
		})
		require.Zero(t, word(0))
	})
	refused := map[string]struct {
		build func(o *options)
		want  PublishCase
		text  string
	}{
		"Delay":        {func(o *options) { o.u64(0, year+1) }, Invalid, `publish option "delay" is 31622400001 ms, the limit is 31622400000 ms`},
		"HugeTTL":      {func(o *options) { o.u64(16, ^uint64(0)) }, Invalid, `publish option "ttl" is 18446744073709551615 ms`},
		"NoDeadline":   {func(o *options) { o.u64(32, 0) }, Invalid, `publish option "deadline" is 0`},
		"FarDeadline":  {func(o *options) { o.u64(32, maxTimestampMillis+1) }, Invalid, `publish option "deadline" is 10000000000000`},
		"EmptyKey":     {func(o *options) { o.some(52, "") }, Invalid, `publish option "idempotency-key" is an empty text`},
		"LongKey":      {func(o *options) { o.b[8+64] = 1; o.list(64+4, 0, limits.KeyBytes+1) }, TooLarge, ""},
		"UnreadKey":    {func(o *options) { o.b[8+64] = 1; o.list(64+4, 0, ^uint32(0)) }, TooLarge, ""},
		"Features":     {func(o *options) { o.list(104, 0, limits.RequiredFeatures+1) }, TooLarge, ""},
		"Feature":      {func(o *options) { o.features(strings.Repeat("f", limits.FeatureBytes+1)) }, TooLarge, ""},
		"EmptyFeature": {func(o *options) { o.features("a", "") }, Invalid, `publish option "required-features" is an empty text`},
		"EmptyFence":   {func(o *options) { o.fence("", 1) }, Invalid, `publish option "fence" is an empty text`},
		"CauseOfOther": {func(o *options) { o.some(124, "m-2") }, Invalid, `publish option "cause" is not the id of a message of this call`},
		"Extensions":   {func(o *options) { o.list(136, 0, 1) }, Invalid, `publish option "extensions" is not supported by this host`},
	}
	for name, r := range refused {
		t.Run(name+"IsRefused", func(t *testing.T) {
			c, word, text := publishWith(t, r.build)
			require.EqualValues(t, 1, word(0))
			require.EqualValues(t, r.want, word(8))
			if r.want == Invalid {
				require.Contains(t, text(16), r.text)
			}
			require.Empty(t, c.Outbox())
		})
	}
	t.Run("ACaseThatIsNoneBreaksTheABI", func(t *testing.T) {
		for _, at := range []int{0, 16, 32, 52, 64, 80, 112, 124} {
			p := newPuppet(t)
			p.handle = func(m uint32) uint32 {
				o := p.options()
				o.b[8+at] = 2
				batch := p.outgoing("out", m, o.b)
				return p.call(importPublisher, "publish-batch", p.connect(), p.bytes(8, batch), 1, p.bump(8, 56))
			}
			_, err := p.run(testCall(nil))
			var abi *ABIError
			require.ErrorAs(t, err, &abi, at)
		}
	})
}

func TestPublishAtomic(t *testing.T) {
	publish := func(t *testing.T, topics []string, change func(o *CallOptions)) (c *Call, p *puppet, ret uint32) {
		t.Helper()
		p = newPuppet(t)
		ret = p.bump(8, 56)
		p.handle = func(m uint32) uint32 {
			client := p.connect()
			code, _ := p.send(client, "before", p.newMessage("x"))
			require.Equal(t, -1, code)
			var batch []byte
			for _, topic := range topics {
				batch = append(batch, p.outgoing(topic, m, nil)...)
			}
			p.call(importPublisher, "publish-atomic", client, p.bytes(8, batch), uint32(len(topics)), ret)
			return p.ok()
		}
		c = testCall(change)
		_, err := p.run(c)
		require.NoError(t, err)
		return c, p, ret
	}
	t.Run("AllAreAccepted", func(t *testing.T) {
		c, p, ret := publish(t, []string{"a", "b"}, nil)
		require.Zero(t, p.word(ret))
		list, n := p.word(ret+8), p.word(ret+12)
		require.EqualValues(t, 2, n)
		require.Equal(t, "id-a", p.list(list))
		require.Equal(t, "id-b", p.list(list+20))
		require.Len(t, c.Outbox(), 3)
	})
	t.Run("OneRefusalTakesAllBack", func(t *testing.T) {
		var withdrawn []any
		c, p, ret := publish(t, []string{"a", "b", "no", "c"}, func(o *CallOptions) {
			admit := o.Admit
			o.Admit = func(topic string, m Message) (Admission, *PublishError) {
				if topic == "no" {
					return Admission{}, &PublishError{Case: Unauthorized, Text: "not granted"}
				}
				return admit(topic, m)
			}
			o.Withdraw = func(token any) { withdrawn = append(withdrawn, token) }
		})
		require.EqualValues(t, 1, p.word(ret))
		require.EqualValues(t, Unauthorized, p.word(ret+8))
		require.Equal(t, "not granted", p.list(ret+16))
		require.Equal(t, []any{"token-a", "token-b"}, withdrawn)
		require.Len(t, c.Outbox(), 1)
		require.Equal(t, "before", c.Outbox()[0].Topic)
	})
	t.Run("WhatWasTakenBackDoesNotCount", func(t *testing.T) {
		p := newPuppet(t)
		p.handle = func(uint32) uint32 {
			client, big := p.connect(), p.newMessage(strings.Repeat("x", 400))
			ret := p.bump(8, 56)
			for range 3 {
				batch := join(p.outgoing("a", big, nil), p.outgoing("b", big, nil), p.outgoing("c", big, nil))
				p.call(importPublisher, "publish-atomic", client, p.bytes(8, batch), 3, ret)
				require.EqualValues(t, QuotaExceeded, p.word(ret+8))
			}
			code, text := p.send(client, "d", big)
			require.Equal(t, -1, code, text)
			return p.ok()
		}
		c := testCall(func(o *CallOptions) { o.Limits.OutboxBytes = 1000 })
		_, err := p.run(c)
		require.NoError(t, err)
		require.Len(t, c.Outbox(), 1)
	})
}

func TestMetadataThatNamesHostContextIsDropped(t *testing.T) {
	p := newPuppet(t)
	p.handle = func(m uint32) uint32 {
		require.Len(t, p.metadata(m), 3, "the guest sees what was delivered")
		code, _ := p.send(p.connect(), "out", m)
		require.Equal(t, -1, code)
		return p.ok()
	}
	delivered := []Pair{{"TraceParent", "00-1"}, {"tenant", "app's own"}, {"tracestate", "x"}}
	c := testCall(func(o *CallOptions) { o.Message.Metadata = delivered })
	_, err := p.run(c)
	require.NoError(t, err)
	require.Equal(t, []Pair{{"tenant", "app's own"}}, c.Outbox()[0].Message.Metadata)
	require.Equal(t, "00-1", delivered[0].Value, "the host's own metadata is untouched")
}

func ExamplePublishError() {
	fmt.Println((&PublishError{Case: DepthExceeded, Limit: 10, Actual: 11}).forSend())
	// Output: other: "depth-exceeded: 11 is over the limit of 10"
}
