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

func TestSend(t *testing.T) {
	after := 1500 * time.Millisecond
	refusals := map[string]struct {
		refusal PublishError
		want    ErrorCase
		text    string
	}{
		"Unauthorized":  {PublishError{Case: Unauthorized, Text: "no grant"}, ErrorPermissionDenied, "no grant"},
		"Timeout":       {PublishError{Case: Timeout}, ErrorTimeout, ""},
		"Unavailable":   {PublishError{Case: Unavailable, Text: "closing"}, ErrorConnection, "closing"},
		"DepthExceeded": {PublishError{Case: DepthExceeded, Limit: 10, Actual: 11}, ErrorOther, "depth-exceeded: 11 is over the limit of 10"},
		"RateExceeded":  {PublishError{Case: RateExceeded, Limit: 1, Actual: 2, RetryAfter: &after}, ErrorOther, "rate-exceeded: 2 is over the limit of 1"},
		"Invalid":       {PublishError{Case: Invalid, Text: "bad topic"}, ErrorOther, "invalid: bad topic"},
	}
	for name, r := range refusals {
		t.Run(name+"IsToldToTheGuest", func(t *testing.T) {
			p := newPuppet(t)
			p.handle = func(m uint32) uint32 {
				code, text := p.send(p.connect(), "out", m)
				require.EqualValues(t, r.want, code)
				require.Equal(t, r.text, text)
				return p.ok()
			}
			c := testCall(func(o *CallOptions) {
				o.Admit = func(string, Message) (Admission, *PublishError) { return Admission{}, &r.refusal }
			})
			_, err := p.run(c)
			require.NoError(t, err)
			require.Empty(t, c.Outbox())
		})
	}
	t.Run("WithoutAdmitNothingIsPublished", func(t *testing.T) {
		p := newPuppet(t)
		p.handle = func(m uint32) uint32 {
			code, _ := p.send(p.connect(), "out", m)
			require.EqualValues(t, ErrorPermissionDenied, code)
			return p.ok()
		}
		_, err := p.run(testCall(func(o *CallOptions) { o.Admit = nil }))
		require.NoError(t, err)
	})
}

// The bounds are reached exactly, then passed by one: the guest is told, and goes on.
func TestOutboxBounds(t *testing.T) {
	sendAll := func(t *testing.T, change func(*limits.Guest), messages ...func(p *puppet) uint32) (texts []string, c *Call) {
		t.Helper()
		p := newPuppet(t)
		p.handle = func(uint32) uint32 {
			client := p.connect()
			for _, m := range messages {
				_, text := p.send(client, "out", m(p))
				texts = append(texts, text)
			}
			return p.ok()
		}
		c = testCall(func(o *CallOptions) { change(&o.Limits) })
		_, err := p.run(c)
		require.NoError(t, err)
		return texts, c
	}
	data := func(s string) func(*puppet) uint32 { return func(p *puppet) uint32 { return p.newMessage(s) } }
	none := func(*limits.Guest) {}

	t.Run("Messages", func(t *testing.T) {
		texts, c := sendAll(t, func(g *limits.Guest) { g.OutboxMessages = 2 }, data("a"), data("b"), data("c"))
		require.Equal(t, []string{"", "", "quota-exceeded: outbox messages: 3 is over the limit of 2"}, texts)
		require.Len(t, c.Outbox(), 2)
	})
	t.Run("Bytes", func(t *testing.T) {
		texts, c := sendAll(t, func(g *limits.Guest) { g.OutboxBytes = 10 }, data("1234567"), data(""), data("7"))
		require.Equal(t, []string{"", "quota-exceeded: outbox bytes: 13 is over the limit of 10", "quota-exceeded: outbox bytes: 14 is over the limit of 10"}, texts)
		require.Len(t, c.Outbox(), 1)
	})
	t.Run("Metadata", func(t *testing.T) {
		pairs := func(n, keyBytes, valueBytes int) func(*puppet) uint32 {
			return func(p *puppet) uint32 {
				m := p.newMessage("")
				for i := range n {
					k, kn := p.text(fmt.Sprintf("%0*d", keyBytes, i))
					v, vn := p.text(strings.Repeat("v", valueBytes))
					p.types("[method]message.add-metadata", m, k, kn, v, vn)
				}
				return m
			}
		}
		texts, _ := sendAll(t, none,
			pairs(limits.MetadataPairs, 2, 1), pairs(limits.MetadataPairs+1, 2, 1),
			pairs(1, limits.KeyBytes, 0), pairs(1, limits.KeyBytes+1, 0),
			pairs(1, 1, limits.MetadataBytes-1), pairs(1, 1, limits.MetadataBytes))
		require.Equal(t, []string{
			"", "too-large: metadata pairs: 65 is over the limit of 64",
			"", "too-large: metadata key bytes: 257 is over the limit of 256",
			"", "too-large: metadata bytes: 16385 is over the limit of 16384",
		}, texts)
	})
	t.Run("ContentType", func(t *testing.T) {
		typed := func(n int) func(*puppet) uint32 {
			return func(p *puppet) uint32 {
				m := p.newMessage("")
				ptr, size := p.text(strings.Repeat("t", n))
				p.types("[method]message.set-content-type", m, ptr, size)
				return m
			}
		}
		texts, _ := sendAll(t, none, typed(limits.KeyBytes), typed(limits.KeyBytes+1))
		require.Equal(t, []string{"", "too-large: content type bytes: 257 is over the limit of 256"}, texts)
	})
	t.Run("TopicIsNotReadIfTooLong", func(t *testing.T) {
		p := newPuppet(t)
		p.handle = func(m uint32) uint32 {
			p.call(importProducer, "send", p.connect(), 0, ^uint32(0), m, 1024)
			require.Contains(t, p.list(1024+8), "the topic has 4294967295 bytes")
			return p.ok()
		}
		_, err := p.run(testCall(nil))
		require.NoError(t, err)
	})
	t.Run("Topic", func(t *testing.T) {
		p := newPuppet(t)
		p.handle = func(m uint32) uint32 {
			_, text := p.send(p.connect(), strings.Repeat("t", limits.TopicBytes+1), m)
			require.Equal(t, "invalid: the topic has 201 bytes, the limit is 200", text)
			return p.ok()
		}
		_, err := p.run(testCall(nil))
		require.NoError(t, err)
	})
}

// outgoing is one element of a batch, as the WIT lays it out; options are the bytes of option<publish-options>.
func (p *puppet) outgoing(topic string, message uint32, options []byte) []byte {
	b := make([]byte, 168)
	ptr, n := p.text(topic)
	binary.LittleEndian.PutUint32(b[0:], ptr)
	binary.LittleEndian.PutUint32(b[4:], n)
	binary.LittleEndian.PutUint32(b[8:], message)
	copy(b[16:], options)
	return b
}

func TestPublishBatch(t *testing.T) {
	t.Run("ResultsAlignWithTheBatch", func(t *testing.T) {
		p := newPuppet(t)
		after := 1500 * time.Millisecond
		p.handle = func(m uint32) uint32 {
			batch := join(p.outgoing("a", m, nil), p.outgoing("full", m, []byte{1}), p.outgoing("b", m, nil), p.outgoing("x", m, nil))
			ret := p.bump(8, 56)
			p.call(importPublisher, "publish-batch", p.connect(), p.bytes(8, batch), 4, ret)
			require.Zero(t, p.word(ret), "outer result")
			list, n := p.word(ret+8), p.word(ret+12)
			require.EqualValues(t, 4, n)
			require.Zero(t, p.word(list))
			require.Equal(t, "id-a", p.list(list+8))
			full := list + 56
			require.EqualValues(t, 1, p.word(full))
			require.EqualValues(t, RateExceeded, p.word(full+8))
			require.EqualValues(t, 7, p.word(full+16), "limit")
			require.EqualValues(t, 8, p.word(full+24), "actual")
			require.EqualValues(t, 1, p.word(full+32), "retry-after is some")
			require.EqualValues(t, 1500, p.word(full+40), "retry-after")
			require.Zero(t, p.word(full+52), "extensions")
			require.Equal(t, "id-b", p.list(list+2*56+8))
			require.EqualValues(t, Unauthorized, p.word(list+3*56+8))
			require.Equal(t, "no grant", p.list(list+3*56+16))
			// Borrowed: the message is still the guest's, and what it does to it now changes nothing.
			ptr, size := p.text("k")
			p.types("[method]message.set-data", m, ptr, size)
			p.types("[method]message.remove-metadata", m, ptr, size)
			p.types("[method]message.add-metadata", m, ptr, size, ptr, size)
			return p.ok()
		}
		c := testCall(func(o *CallOptions) {
			admit := o.Admit
			o.Message.Metadata = []Pair{{"k", "v"}, {"l", "w"}}
			o.Admit = func(topic string, m Message) (Admission, *PublishError) {
				switch topic {
				case "full":
					return Admission{}, &PublishError{Case: RateExceeded, Limit: 7, Actual: 8, RetryAfter: &after}
				case "x":
					return Admission{}, &PublishError{Case: Unauthorized, Text: "no grant"}
				}
				return admit(topic, m)
			}
		})
		_, err := p.run(c)
		require.NoError(t, err)
		want := Message{Data: []byte("data"), Metadata: []Pair{{"k", "v"}, {"l", "w"}}}
		require.Equal(t, []Outgoing{
			{ID: "id-a", Topic: "a", Message: want, Token: "token-a"}, {ID: "id-b", Topic: "b", Message: want, Token: "token-b"},
		}, c.Outbox())
	})
	t.Run("ABatchOverTheOutboxIsRefusedWhole", func(t *testing.T) {
		p := newPuppet(t)
		p.handle = func(m uint32) uint32 {
			batch := join(p.outgoing("a", m, nil), p.outgoing("b", m, nil), p.outgoing("c", m, nil))
			ret := p.bump(8, 56)
			p.call(importPublisher, "publish-batch", p.connect(), p.bytes(8, batch), 3, ret)
			require.EqualValues(t, 1, p.word(ret))
			require.EqualValues(t, QuotaExceeded, p.word(ret+8))
			require.EqualValues(t, 2, p.word(ret+16))
			require.EqualValues(t, 3, p.word(ret+24))
			return p.ok()
		}
		c := testCall(func(o *CallOptions) { o.Limits.OutboxMessages = 2 })
		_, err := p.run(c)
		require.NoError(t, err)
		require.Empty(t, c.Outbox())
	})
	t.Run("AnEmptyBatchIsFine", func(t *testing.T) {
		p := newPuppet(t)
		p.handle = func(uint32) uint32 {
			ret := p.bump(8, 56)
			p.call(importPublisher, "publish-batch", p.connect(), 0, 0, ret)
			require.Zero(t, p.word(ret))
			require.Zero(t, p.word(ret+12))
			return p.ok()
		}
		_, err := p.run(testCall(nil))
		require.NoError(t, err)
	})
}
