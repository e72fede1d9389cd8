package messaging

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/longshore/longshore/limits"
)

func TestMessage(t *testing.T) {
	delivered := Message{
		Topic: "orders", ContentType: "text/plain", Data: []byte("hello"), Metadata: []Pair{{"a", "1"}, {"ключ", "значение"}},
	}
	t.Run("TheGuestReadsWhatWasDelivered", func(t *testing.T) {
		p := newPuppet(t)
		p.handle = func(m uint32) uint32 {
			ret := p.bump(4, 12)
			p.types("[method]message.topic", m, ret)
			require.EqualValues(t, 1, p.word(ret))
			require.Equal(t, "orders", p.list(ret+4))
			p.types("[method]message.content-type", m, ret)
			require.Equal(t, "text/plain", p.list(ret+4))
			p.types("[method]message.data", m, ret)
			require.Equal(t, "hello", p.list(ret))
			require.Equal(t, delivered.Metadata, p.metadata(m))
			return p.ok()
		}
		answer, err := p.run(testCall(func(o *CallOptions) { o.Message = delivered }))
		require.NoError(t, err)
		require.Nil(t, answer)
	})
	t.Run("WhatIsMissingIsNone", func(t *testing.T) {
		p := newPuppet(t)
		p.handle = func(uint32) uint32 {
			m := p.newMessage("")
			ret := p.bump(4, 12)
			for _, name := range []string{"topic", "content-type", "metadata"} {
				p.types("[method]message."+name, m, ret)
				require.Zero(t, p.word(ret), name)
			}
			p.types("[method]message.data", m, ret)
			require.Zero(t, p.word(ret+4))
			return p.ok()
		}
		_, err := p.run(testCall(nil))
		require.NoError(t, err)
	})
	t.Run("SettersChangeIt", func(t *testing.T) {
		p := newPuppet(t)
		p.handle = func(m uint32) uint32 {
			ptr, n := p.text("application/json")
			p.types("[method]message.set-content-type", m, ptr, n)
			ptr, n = p.text("{}")
			p.types("[method]message.set-data", m, ptr, n)
			k, kn := p.text("key")
			v, vn := p.text("value")
			list := p.words(k, kn, v, vn)
			p.types("[method]message.set-metadata", m, list, 1)
			require.Equal(t, []Pair{{"key", "value"}}, p.metadata(m))
			p.types("[method]message.add-metadata", m, v, vn, k, kn)
			p.types("[method]message.add-metadata", m, k, kn, k, kn)
			require.Equal(t, []Pair{{"value", "key"}, {"key", "key"}}, p.metadata(m))
			p.types("[method]message.remove-metadata", m, v, vn)
			client := p.connect()
			code, _ := p.send(client, "out", m)
			require.Equal(t, -1, code)
			return p.ok()
		}
		c := testCall(func(o *CallOptions) { o.Message = delivered })
		_, err := p.run(c)
		require.NoError(t, err)
		want := Message{ContentType: "application/json", Data: []byte("{}"), Metadata: []Pair{{"key", "key"}}}
		require.Equal(t, []Outgoing{{ID: "id-out", Topic: "out", Message: want, Token: "token-out"}}, c.Outbox())
		require.Equal(t, "hello", string(delivered.Data), "the host's own message is untouched")
	})
}

// metadata reads a message's metadata.
func (p *puppet) metadata(m uint32) []Pair {
	ret := p.bump(4, 12)
	p.types("[method]message.metadata", m, ret)
	require.EqualValues(p.t, 1, p.word(ret))
	var pairs []Pair
	for i := range p.word(ret + 8) {
		at := p.word(ret+4) + 16*i
		pairs = append(pairs, Pair{p.list(at), p.list(at + 8)})
	}
	return pairs
}

func TestClient(t *testing.T) {
	t.Run("OnlyGrantedNamesConnect", func(t *testing.T) {
		p := newPuppet(t)
		p.handle = func(uint32) uint32 {
			ret := p.bump(4, 16)
			for name, want := range map[string]uint32{"default": 0, "audit": 0, "Audit": 1, "": 1} {
				ptr, n := p.text(name)
				p.types("[static]client.connect", ptr, n, ret)
				require.Equal(t, want, p.word(ret), name)
				if want == 1 {
					require.EqualValues(t, ErrorPermissionDenied, p.word(ret+4))
				}
			}
			return p.ok()
		}
		_, err := p.run(testCall(func(o *CallOptions) { o.Clients = []string{"audit"} }))
		require.NoError(t, err)
	})
	t.Run("ADisconnectedOneSendsNothing", func(t *testing.T) {
		p := newPuppet(t)
		p.handle = func(m uint32) uint32 {
			client := p.connect()
			p.types("[method]client.disconnect", client, p.bump(4, 16))
			code, _ := p.send(client, "out", m)
			require.EqualValues(t, ErrorConnection, code)
			p.types("[resource-drop]client", client)
			return p.ok()
		}
		c := testCall(nil)
		_, err := p.run(c)
		require.NoError(t, err)
		require.Empty(t, c.Outbox())
	})
}

// Each case is a guest that breaks the ABI; the text says what the error must name. A guest that isn't stopped returns 0,
// the address of an ok result.
func TestABIBreaks(t *testing.T) {
	const memoryBytes = puppetPages * 65536
	cases := map[string]struct {
		problem string
		guest   func(p *puppet, m uint32) uint32
	}{
		"HandleZero":      {"handle 0 ", func(p *puppet, _ uint32) uint32 { return p.types("[method]message.topic", 0, p.bump(4, 12)) }},
		"UnknownHandle":   {"handle 99 ", func(p *puppet, _ uint32) uint32 { return p.types("[method]message.topic", 99, p.bump(4, 12)) }},
		"HugeHandle":      {"handle 4294967295 ", func(p *puppet, _ uint32) uint32 { return p.types("[resource-drop]message", ^uint32(0)) }},
		"HandleOfAnother": {"is not a message", func(p *puppet, _ uint32) uint32 { return p.types("[resource-drop]message", p.connect()) }},
		"DroppedTwice": {"is not a message", func(p *puppet, m uint32) uint32 {
			p.types("[resource-drop]message", m)
			return p.types("[resource-drop]message", m)
		}},
		"UsedAfterSend": {"is not a message", func(p *puppet, m uint32) uint32 {
			p.send(p.connect(), "out", m)
			return p.types("[resource-drop]message", m)
		}},
		"DataPastTheEnd":   {"outside of memory", func(p *puppet, _ uint32) uint32 { return p.types("[constructor]message", memoryBytes-1, 2) }},
		"DataWrapsAround":  {"outside of memory", func(p *puppet, _ uint32) uint32 { return p.types("[constructor]message", ^uint32(0), ^uint32(0)) }},
		"AbsurdList":       {"larger than memory", func(p *puppet, m uint32) uint32 { return p.types("[method]message.set-metadata", m, 16, ^uint32(0)) }},
		"ListPastTheEnd":   {"outside of memory", func(p *puppet, m uint32) uint32 { return p.types("[method]message.set-metadata", m, memoryBytes-16, 2) }},
		"MisalignedList":   {"not aligned to 4", func(p *puppet, m uint32) uint32 { return p.types("[method]message.set-metadata", m, 18, 1) }},
		"MisalignedReturn": {"not aligned to 4", func(p *puppet, m uint32) uint32 { return p.types("[method]message.topic", m, 1022) }},
		"ReturnPastTheEnd": {"outside of memory", func(p *puppet, m uint32) uint32 { return p.types("[method]message.topic", m, memoryBytes-8) }},
		"NotUTF8": {"not UTF-8", func(p *puppet, m uint32) uint32 {
			ptr, n := p.text("a\xff")
			return p.types("[method]message.set-content-type", m, ptr, n)
		}},
		"MisalignedResult": {"not aligned to 4", func(p *puppet, _ uint32) uint32 { return p.ok() + 1 }},
		"ResultPastTheEnd": {"outside of memory", func(*puppet, uint32) uint32 { return memoryBytes }},
		"UnknownResult":    {"case 2 of a variant of 2", func(p *puppet, _ uint32) uint32 { return p.words(2, 0, 0, 0) }},
		"UnknownError":     {"case 4 of a variant of 4", func(p *puppet, _ uint32) uint32 { return p.words(1, 4, 0, 0) }},
		"ErrorNotUTF8":     {"not UTF-8", func(p *puppet, _ uint32) uint32 { ptr, n := p.text("\xc0"); return p.words(1, 3, ptr, n) }},
		"ReallocPastTheEnd": {"outside of memory", func(p *puppet, m uint32) uint32 {
			p.realloc = func(_, _, _, _ uint32) uint32 { return memoryBytes - 1 }
			return p.types("[method]message.data", m, 1024)
		}},
		"ReallocMisaligned": {"not aligned to 4", func(p *puppet, m uint32) uint32 {
			k, kn := p.text("key")
			p.types("[method]message.add-metadata", m, k, kn, k, kn)
			p.realloc = func(_, _, _, _ uint32) uint32 { return 2 }
			return p.types("[method]message.metadata", m, 1024)
		}},
		"CallsOutOfRealloc": {"may not leave realloc", func(p *puppet, m uint32) uint32 {
			p.realloc = func(_, _, _, _ uint32) uint32 { return p.types("[method]message.data", m, 1024) }
			return p.types("[method]message.data", m, 1024)
		}},
		"CallsOutOfPostReturn": {"may not leave realloc or post-return", func(p *puppet, m uint32) uint32 {
			p.post = func(uint32) { p.types("[resource-drop]message", m) }
			return p.ok()
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPuppet(t)
			p.handle = func(m uint32) uint32 { return c.guest(p, m) }
			_, err := p.run(testCall(nil))
			var abi *ABIError
			require.ErrorAs(t, err, &abi)
			require.Contains(t, abi.Problem, c.problem)
			require.NotEmpty(t, abi.Func)
		})
	}
}

// Work that a guest multiplies by one call stops at the deadline.
func TestDeadlineInsideOfHostFunctions(t *testing.T) {
	t.Run("PublishBatch", func(t *testing.T) {
		p := newPuppet(t)
		p.handle = func(m uint32) uint32 {
			var batch []byte
			for range 2 * stepsPerCheck {
				batch = join(batch, p.outgoing("a", m, nil))
			}
			return p.call(importPublisher, "publish-batch", p.connect(), p.bytes(8, batch), 2*stepsPerCheck, 2048)
		}
		var c *Call
		admitted := 0
		c = testCall(func(o *CallOptions) {
			o.Admit = func(string, Message) (Admission, *PublishError) {
				admitted++
				c.deadline = time.Now()
				return Admission{}, nil
			}
		})
		_, err := p.run(c)
		require.ErrorIs(t, err, ErrTimeout)
		require.LessOrEqual(t, admitted, stepsPerCheck)
	})
	t.Run("Metadata", func(t *testing.T) {
		p := newPuppet(t)
		c := testCall(nil)
		allocated := 0
		p.realloc = func(_, _, align, size uint32) uint32 {
			allocated++
			c.deadline = time.Now()
			return p.bump(align, size)
		}
		p.handle = func(m uint32) uint32 {
			text := p.bytes(1, []byte("a"))
			var pairs []uint32
			for range stepsPerCheck {
				pairs = append(pairs, text, 1, text, 1)
			}
			p.types("[method]message.set-metadata", m, p.words(pairs...), stepsPerCheck)
			return p.types("[method]message.metadata", m, 1024)
		}
		_, err := p.run(c)
		require.ErrorIs(t, err, ErrTimeout)
		require.LessOrEqual(t, allocated, stepsPerCheck)
	})
}

func TestMessagesOfACall(t *testing.T) {
	t.Run("OneThatWasDroppedHoldsNothing", func(t *testing.T) {
		p := newPuppet(t)
		c := testCall(nil)
		p.handle = func(uint32) uint32 {
			kept, dropped := p.newMessage("kept"), p.newMessage("dropped")
			was := lookup[*message](&c.handles, dropped)
			p.types("[resource-drop]message", dropped)
			require.Equal(t, message{}, *was)
			require.Equal(t, "kept", string(lookup[*message](&c.handles, kept).Data))
			return p.ok()
		}
		_, err := p.run(c)
		require.NoError(t, err)
	})
	t.Run("NothingIsAllocatedForWhatIsEmpty", func(t *testing.T) {
		p := newPuppet(t)
		p.realloc = func(_, _, _, _ uint32) uint32 { panic("called") }
		p.handle = func(uint32) uint32 {
			p.types("[method]message.data", p.newMessage(""), 1024)
			require.Empty(t, p.list(1024))
			require.NotZero(t, p.word(1024))
			return p.ok()
		}
		_, err := p.run(testCall(nil))
		require.NoError(t, err)
	})
}

// Whatever numbers a guest passes to whatever import, the call goes on or ends with a typed error.
func TestABI_AnyArguments(t *testing.T) {
	p := newPuppet(t)
	var funcs []hostFunc
	var modules []string
	for _, i := range interfaces() {
		if i.draft == DraftB {
			continue
		}
		for _, f := range i.funcs {
			funcs, modules = append(funcs, f), append(modules, legacy.module(i.name, strings.Replace(i.versions[0], "*", "0", 1)))
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		p.top = 64 * 1024
		p.handle = func(m uint32) uint32 {
			client := p.connect()
			numbers := []uint32{0, 1, 4, 8, 1024, m, client, 64, 168, puppetPages*65536 - 8, puppetPages * 65536, 1 << 31, ^uint32(0)}
			for range rapid.IntRange(1, 8).Draw(rt, "calls") {
				i := rapid.IntRange(0, len(funcs)-1).Draw(rt, "function")
				args := rapid.SliceOfN(rapid.SampledFrom(numbers), len(funcs[i].params), len(funcs[i].params)).Draw(rt, "arguments")
				p.call(modules[i], funcs[i].name, args...)
			}
			return rapid.SampledFrom(numbers).Draw(rt, "result")
		}
		_, err := p.run(testCall(func(o *CallOptions) { o.Limits.CallDuration = 50 * time.Millisecond }))
		var abi *ABIError
		var limit *limits.Error
		var exit *ExitError
		if err != nil && !errors.As(err, &abi) && !errors.As(err, &limit) && !errors.As(err, &exit) && !errors.Is(err, ErrTimeout) {
			rt.Fatal(err)
		}
	})
}

// Each case is a flood that ends the call.
func TestFloods(t *testing.T) {
	cases := map[string]struct {
		limit limits.Name
		guest func(p *puppet, m uint32) uint32
	}{
		"HostCalls": {limits.NameHostCalls, func(p *puppet, _ uint32) uint32 {
			for client := p.connect(); ; {
				p.types("[method]client.disconnect", client, 1024)
			}
		}},
		"Handles": {limits.NameHandles, func(p *puppet, _ uint32) uint32 {
			for {
				p.newMessage("")
			}
		}},
		"HeldBytes": {limits.NameHeldBytes, func(p *puppet, _ uint32) uint32 {
			for {
				p.types("[constructor]message", 0, 4<<20)
			}
		}},
		"HeldBySetters": {limits.NameHeldBytes, func(p *puppet, _ uint32) uint32 {
			for {
				p.types("[method]message.set-data", p.newMessage(""), 0, 4<<20)
			}
		}},
		"HeldByMetadata": {limits.NameHeldBytes, func(p *puppet, _ uint32) uint32 {
			for {
				p.types("[method]message.add-metadata", p.newMessage(""), 0, 1, 0, 4<<20)
			}
		}},
		"HeldByContentType": {limits.NameHeldBytes, func(p *puppet, _ uint32) uint32 {
			for {
				p.types("[method]message.set-content-type", p.newMessage(""), 0, 4<<20-1)
			}
		}},
		"MetadataPairs": {limits.NameMetadataPairs, func(p *puppet, m uint32) uint32 {
			return p.types("[method]message.set-metadata", m, 0, maxHeldPairs+1)
		}},
		// The lists below lie about what is in memory: their content is refused before a look at it.
		"UnreadClientName": {limits.NameHeldBytes, func(p *puppet, _ uint32) uint32 {
			return p.types("[static]client.connect", 0, limits.HeldBytes+1, 1024)
		}},
		"UnreadKey": {limits.NameHeldBytes, func(p *puppet, m uint32) uint32 {
			return p.types("[method]message.remove-metadata", m, 0, ^uint32(0))
		}},
		"UnreadPairs": {limits.NameHeldBytes, func(p *puppet, m uint32) uint32 {
			return p.types("[method]message.set-metadata", m, p.words(0, 20<<20, 0, 20<<20), 1)
		}},
		"ResultBytes": {limits.NameResultBytes, func(p *puppet, _ uint32) uint32 { return p.words(1, 3, 0, limits.ResultBytes+1) }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPuppet(t)
			p.handle = func(m uint32) uint32 { return c.guest(p, m) }
			_, err := p.run(testCall(func(o *CallOptions) { o.Limits.HostCalls = 10_000 }))
			require.ErrorIs(t, err, &limits.Error{Name: c.limit})
		})
	}
	t.Run("DroppedMessagesAreNotHeld", func(t *testing.T) {
		p := newPuppet(t)
		p.handle = func(uint32) uint32 {
			for range 64 {
				p.types("[resource-drop]message", p.types("[constructor]message", 0, 4<<20))
			}
			return p.ok()
		}
		_, err := p.run(testCall(nil))
		require.NoError(t, err)
	})
}

func TestHandle(t *testing.T) {
	t.Run("TheAnswerIsReadThenFreedOnce", func(t *testing.T) {
		p := newPuppet(t)
		ptr, n := p.text("не сейчас")
		result := p.words(1, uint32(ErrorPermissionDenied), ptr, n)
		var freed []uint32
		p.handle = func(uint32) uint32 { return result }
		p.post = func(at uint32) { freed = append(freed, at) }
		answer, err := p.run(testCall(nil))
		require.NoError(t, err)
		require.Equal(t, &GuestError{Case: ErrorPermissionDenied, Text: "не сейчас"}, answer)
		require.Equal(t, []uint32{result}, freed)
	})
	t.Run("PostReturnIsNotCalledAfterAFailure", func(t *testing.T) {
		p := newPuppet(t)
		p.handle = func(uint32) uint32 { panic(errors.New("boom")) }
		p.post = func(uint32) { t.Error("called") }
		_, err := p.run(testCall(nil))
		require.ErrorContains(t, err, "boom")
	})
	t.Run("TheDeadlineIsSeenInHostFunctions", func(t *testing.T) {
		p := newPuppet(t)
		p.handle = func(uint32) uint32 {
			for client := p.connect(); ; {
				p.types("[method]client.disconnect", client, 1024)
			}
		}
		_, err := p.run(testCall(func(o *CallOptions) {
			o.Deadline = time.Now().Add(5 * time.Millisecond)
			o.Limits.HostCalls = 1 << 40
		}))
		require.ErrorIs(t, err, ErrTimeout)
	})
	t.Run("ACancelledContextInterrupts", func(t *testing.T) {
		p := newPuppet(t)
		stop := errors.New("the host stops")
		c := testCall(nil)
		ctx, cancel := context.WithCancelCause(t.Context())
		p.ctx = c.Start(ctx, p.binding)
		p.handle = func(uint32) uint32 {
			cancel(stop)
			return p.connect()
		}
		_, _, err := c.Handle(p.ctx, p.binding.NewInstance(p.module))
		require.ErrorIs(t, err, ErrInterrupted)
		require.ErrorIs(t, err, stop)
	})
}

func TestLog(t *testing.T) {
	type line struct{ stream, text string }
	capture := func(limit int64) (*Call, *[]line) {
		var lines []line
		return testCall(func(o *CallOptions) {
			o.Limits.LogBytes = limit
			o.Log = func(stream string, b []byte) { lines = append(lines, line{stream, string(b)}) }
		}), &lines
	}
	t.Run("WritesAreCutIntoLines", func(t *testing.T) {
		c, lines := capture(100)
		c.WriteLog(Stdout, []byte("one\ntw"))
		c.WriteLog(Stderr, []byte("err"))
		c.WriteLog(Stdout, []byte("o\n\nthree"))
		c.FlushLog()
		require.Equal(t, []line{
			{Stdout, "one"}, {Stdout, "two"}, {Stdout, ""}, {Stdout, "three"}, {Stderr, "err"},
		}, *lines)
	})
	t.Run("WhatFitsIsLoggedBeforeTheCallEnds", func(t *testing.T) {
		c, lines := capture(5)
		c.WriteLog(Stdout, []byte("12345"))
		require.PanicsWithError(t, "log bytes: 6 is over the limit of 5", func() { c.WriteLog(Stdout, []byte("6")) })
		c.FlushLog()
		require.Equal(t, []line{{Stdout, "12345"}}, *lines)
	})
	t.Run("OneWriteOverTheLimitIsCut", func(t *testing.T) {
		c, lines := capture(4)
		require.Panics(t, func() { c.WriteLog(Stdout, []byte(strings.Repeat("x", 10))) })
		c.FlushLog()
		require.Equal(t, []line{{Stdout, "xxxx"}}, *lines)
	})
}
