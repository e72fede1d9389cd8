package messaging

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

func TestLogging(t *testing.T) {
	logAs := func(p *puppet, level uint32, where, text string) {
		w, wn := p.text(where)
		s, sn := p.text(text)
		p.call("wasi:logging/logging", "log", level, w, wn, s, sn)
	}
	t.Run("LinesGoToTheLogUnderTheirLevel", func(t *testing.T) {
		p := newPuppet(t)
		p.handle = func(uint32) uint32 {
			logAs(p, 2, "orders", "one\ntwo")
			logAs(p, 5, "", "lost")
			return p.ok()
		}
		var lines []string
		_, err := p.run(testCall(func(o *CallOptions) {
			o.Log = func(stream string, line []byte) { lines = append(lines, stream+" "+string(line)) }
		}))
		require.NoError(t, err)
		require.Equal(t, []string{"info orders: one", "info two", "critical lost"}, lines)
	})
	t.Run("AnUnknownLevelBreaksTheABI", func(t *testing.T) {
		p := newPuppet(t)
		p.handle = func(uint32) uint32 { logAs(p, 6, "", ""); return p.ok() }
		_, err := p.run(testCall(nil))
		var abi *ABIError
		require.ErrorAs(t, err, &abi)
	})
	t.Run("TheLogIsBounded", func(t *testing.T) {
		p := newPuppet(t)
		p.handle = func(uint32) uint32 {
			logAs(p, 0, "12", "345") // "12: 345\n"
			logAs(p, 0, "", "6")
			return p.ok()
		}
		_, err := p.run(testCall(func(o *CallOptions) { o.Limits.LogBytes = 9 }))
		require.ErrorIs(t, err, &limits.Error{Name: limits.NameLogBytes, Actual: 10})
	})
}

func TestConfig(t *testing.T) {
	p := newPuppet(t)
	store := "wasi:config/store@0.2.0-draft"
	p.handle = func(uint32) uint32 {
		get := func(key string) (some uint32, at uint32) {
			k, n := p.text(key)
			ret := p.bump(4, 16)
			p.call(store, "get", k, n, ret)
			require.Zero(t, p.word(ret)&0xff)
			return p.word(ret+4) & 0xff, ret + 8
		}
		some, at := get("url")
		require.EqualValues(t, 1, some)
		require.Equal(t, "http://x", p.list(at))
		some, _ = get("none")
		require.Zero(t, some)
		ret := p.bump(4, 16)
		p.call(store, "get-all", ret)
		require.EqualValues(t, 2, p.word(ret+8))
		require.Equal(t, "retries", p.list(p.word(ret+4)+16))
		return p.ok()
	}
	_, err := p.run(testCall(func(o *CallOptions) { o.Config = []Pair{{"url", "http://x"}, {"retries", "3"}} }))
	require.NoError(t, err)
}

// wasi2 calls a function of WASI 0.2.
func (p *puppet) wasi2(iface, name string, args ...uint32) uint64 {
	return p.call64("wasi:"+iface+"@0.2.0", name, args...)
}

func TestWASI2(t *testing.T) {
	run := func(t *testing.T, change func(o *CallOptions), guest func(p *puppet)) error {
		t.Helper()
		p := newPuppet(t)
		p.handle = func(uint32) uint32 { guest(p); return p.ok() }
		_, err := p.run(testCall(change))
		return err
	}
	t.Run("NothingIsGranted", func(t *testing.T) {
		require.NoError(t, run(t, nil, func(p *puppet) {
			ret := p.words(7, 7, 7)
			p.wasi2("cli/environment", "get-environment", ret)
			require.Zero(t, p.word(ret+4))
			p.wasi2("cli/environment", "get-arguments", ret)
			require.Zero(t, p.word(ret+4))
			p.wasi2("cli/environment", "initial-cwd", ret)
			require.Zero(t, p.word(ret)&0xff)
			p.wasi2("cli/terminal-stdout", "get-terminal-stdout", ret)
			require.Zero(t, p.word(ret)&0xff)
			p.wasi2("filesystem/preopens", "get-directories", ret)
			require.Zero(t, p.word(ret+4))
			p.wasi2("io/streams", "[method]input-stream.skip", uint32(p.wasi2("cli/stdin", "get-stdin")), 10, ret+12-12)
		}))
	})
	t.Run("StreamsAreTheLog", func(t *testing.T) {
		var lines []string
		require.NoError(t, run(t, func(o *CallOptions) {
			o.Log = func(stream string, line []byte) { lines = append(lines, stream+" "+string(line)) }
		}, func(p *puppet) {
			out, errs := uint32(p.wasi2("cli/stdout", "get-stdout")), uint32(p.wasi2("cli/stderr", "get-stderr"))
			ret := p.bump(8, 16)
			p.wasi2("io/streams", "[method]output-stream.check-write", out, ret)
			require.EqualValues(t, writableBytes, p.word(ret+8))
			ptr, n := p.text("to be or\n")
			p.wasi2("io/streams", "[method]output-stream.write", out, ptr, n, ret)
			p.wasi2("io/streams", "[method]output-stream.blocking-write-and-flush", errs, ptr, n, ret)
			require.Zero(t, p.word(ret)&0xff)
			p.wasi2("io/streams", "[resource-drop]output-stream", out)
			require.EqualValues(t, out, p.wasi2("cli/stdout", "get-stdout"), "it may be asked for again")
			p.wasi2("io/streams", "[method]input-stream.blocking-read", uint32(p.wasi2("cli/stdin", "get-stdin")), 1, ret)
			require.EqualValues(t, 1, p.word(ret)&0xff)
			require.EqualValues(t, streamClosed, p.word(ret+4)&0xff)
		}))
		require.Equal(t, []string{"stdout to be or", "stderr to be or"}, lines)
	})
	t.Run("ZeroesAreBoundedByTheLog", func(t *testing.T) {
		p := newPuppet(t)
		f := p.module.ExportedFunction("wasi:io/streams@0.2.0#[method]output-stream.write-zeroes")
		p.handle = func(uint32) uint32 {
			if err := f.CallWithStack(p.ctx, []uint64{handleStdout, 1 << 62, uint64(p.bump(8, 16))}); err != nil {
				panic(err)
			}
			return p.ok()
		}
		_, err := p.run(testCall(nil))
		require.ErrorIs(t, err, &limits.Error{Name: limits.NameLogBytes})
	})
	t.Run("ClocksTick", func(t *testing.T) {
		require.NoError(t, run(t, nil, func(p *puppet) {
			ret := p.bump(8, 16)
			p.wasi2("clocks/wall-clock", "now", ret)
			require.InDelta(t, time.Now().Unix(), p.word(ret), 60)
			p.wasi2("clocks/wall-clock", "resolution", ret)
			require.EqualValues(t, 1_000_000, p.word(ret+8))
			require.EqualValues(t, 1_000_000, p.wasi2("clocks/monotonic-clock", "resolution"))
			begun := p.wasi2("clocks/monotonic-clock", "now")
			soon, later := uint32(p.wasi2("clocks/monotonic-clock", "subscribe-duration", 20_000_000)), uint32(p.wasi2("clocks/monotonic-clock", "subscribe-duration", 4_000_000_000))
			require.Zero(t, p.wasi2("io/poll", "[method]pollable.ready", soon))
			p.wasi2("io/poll", "poll", p.words(later, soon), 2, ret)
			require.GreaterOrEqual(t, p.wasi2("clocks/monotonic-clock", "now")-begun, uint64(20_000_000))
			require.EqualValues(t, 1, p.word(ret+4))
			require.EqualValues(t, 1, p.word(p.word(ret)), "the second of the list")
			p.wasi2("io/poll", "[method]pollable.block", soon)
			p.wasi2("io/poll", "[resource-drop]pollable", soon)
		}))
	})
	t.Run("AWaitEndsAtTheDeadline", func(t *testing.T) {
		err := run(t, func(o *CallOptions) { o.Deadline = time.Now().Add(20 * time.Millisecond) }, func(p *puppet) {
			p.wasi2("io/poll", "[method]pollable.block", uint32(p.wasi2("clocks/monotonic-clock", "subscribe-duration", 4_000_000_000)))
		})
		require.ErrorIs(t, err, ErrTimeout)
	})
	t.Run("RandomIsRandom", func(t *testing.T) {
		require.NoError(t, run(t, nil, func(p *puppet) {
			seen := map[string]bool{}
			ret := p.bump(8, 16)
			for range 4 {
				p.wasi2("random/random", "get-random-bytes", 32, ret)
				seen[p.list(ret)] = true
				seen[fmt.Sprint(p.wasi2("random/random", "get-random-u64"))] = true
				p.wasi2("random/insecure-seed", "insecure-seed", ret)
				seen[p.read(ret, 16)] = true
			}
			require.Len(t, seen, 12)
		}))
	})
	breaks := map[string]func(p *puppet){
		"PollOfNothing":    func(p *puppet) { p.wasi2("io/poll", "poll", 0, 0, 1024) },
		"PollOfAStream":    func(p *puppet) { p.wasi2("io/poll", "poll", p.words(handleStdout), 1, 1024) },
		"PollOfHandleZero": func(p *puppet) { p.wasi2("io/poll", "poll", p.words(0), 1, 1024) },
		"WriteToStdin":     func(p *puppet) { p.wasi2("io/streams", "[method]output-stream.flush", handleStdin, 1024) },
		"NoSuchError":      func(p *puppet) { p.wasi2("io/error", "[resource-drop]error", 1) },
		"HugeRandom":       func(p *puppet) { p.wasi2("random/random", "get-random-bytes", ^uint32(0), 1024) },
	}
	for name, guest := range breaks {
		t.Run(name+"BreaksTheABI", func(t *testing.T) {
			var abi *ABIError
			require.ErrorAs(t, run(t, nil, guest), &abi)
		})
	}
	for name, want := range map[string]uint32{"exit": 1, "exit-with-code": 42} {
		t.Run(name, func(t *testing.T) {
			var exit *ExitError
			require.ErrorAs(t, run(t, nil, func(p *puppet) { p.wasi2("cli/exit", name, want) }), &exit)
			require.Equal(t, want, exit.Code)
		})
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct{ module, name string }{
		{"wasi:messaging/types@0.2.0-draft", "[resource-drop]message"},
		{"cm32p2|wasi:messaging/types@0.2.0-draft", "message_drop"},
		{"wasmcloud:messaging/types@0.3.0", "[method]message.topic"},
		{"cm32p2|wasmcloud:messaging/types@0.3", "[method]message.topic"},
		{"longshore:messaging/publisher@0.1.0", "publish-atomic"},
		{"cm32p2|longshore:messaging/publisher@0.1", "publish-atomic"},
		{"wasi:io/streams@0.2.0", "[resource-drop]output-stream"},
		{"wasi:io/streams@0.2.12", "[resource-drop]output-stream"},
		{"cm32p2|wasi:io/streams@0.2", "output-stream_drop"},
		{"wasi:logging/logging", "log"},
		{"wasi:logging/logging@0.1.0-draft", "log"},
	} {
		_, ok := find(c.module, c.name, DraftC)
		require.True(t, ok, "%s %s", c.module, c.name)
	}
	for _, c := range []struct{ module, name string }{
		{"wasi:messaging/types@0.2.0-draft", "message_drop"},
		{"cm32p2|wasi:messaging/types@0.2.0-draft", "[resource-drop]message"},
		{"wasi:messaging/types@0.2.0", "[resource-drop]message"},
		{"wasi:messaging/types", "[resource-drop]message"},
		{"longshore:messaging/publisher@0.1", "publish"},
		{"wasi:io/streams@0.2.0-rc-2023-11-10", "[resource-drop]output-stream"},
		{"wasi:io/streams@0.3.0", "[resource-drop]output-stream"},
		{"wasi:io/streams@0.20.0", "[resource-drop]output-stream"},
	} {
		_, ok := find(c.module, c.name, DraftC)
		require.False(t, ok, "%s %s", c.module, c.name)
	}
	require.False(t, strings.Contains(standard32.export("a:b/c", "1.2.3", "f"), "1.2.3"))
}
