package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/wasi/messaging"
)

// compile compiles a small module under the test's limits.
func compile(tb testing.TB, m wasmModule) *runtime.Module {
	tb.Helper()
	module, err := newEngine(tb).Compile(tb.Context(), "small", m.assemble(), testLimits())
	require.NoError(tb, err)
	return module
}

func TestInvoke(t *testing.T) {
	m := goGuest(t)
	t.Run("ItSaysWhatTheCallUsed", func(t *testing.T) {
		call := newCall("echo hello", nil)
		o := m.Invoke(t.Context(), call)
		require.Equal(t, runtime.OK, o.Class, o.Err)
		require.Empty(t, o.Reason())
		require.Len(t, call.Outbox(), 1)
		require.Equal(t, "HELLO", string(call.Outbox()[0].Message.Data))
		require.EqualValues(t, call.HostCalls(), o.HostCalls)
		require.Positive(t, o.HostCalls)
		require.Positive(t, o.FuelUsed)
		require.Greater(t, o.PeakMemoryBytes, int64(1<<20))
		require.Positive(t, o.Wall)
	})
	t.Run("FuelIsTheSameEveryTime", func(t *testing.T) {
		// Small modules are exact; a Go guest's scheduler looks at the clock.
		m := compile(t, wasmModule{handler: []byte(opConst(0) + opConst(0) + opConst(4096) + opFill + opConst(0))})
		first := m.Invoke(t.Context(), newCall("", nil))
		for range 10 {
			require.Equal(t, first.FuelUsed, m.Invoke(t.Context(), newCall("", nil)).FuelUsed)
		}
	})
	t.Run("AnInstanceThatTookAllTheTimeGetsNoMessage", func(t *testing.T) {
		m := compile(t, wasmModule{handler: []byte(opConst(0))}) // without a safe point of its own
		o := m.Invoke(t.Context(), newCall("", func(o *messaging.CallOptions) { o.Limits.CallDuration = 1 }))
		require.Equal(t, runtime.Timeout, o.Class, o.Err)
		require.Zero(t, o.FuelUsed)
	})
	t.Run("AnAnswerAfterTheDeadlineIsNone", func(t *testing.T) {
		m := compile(t, wasmModule{
			imports: []wasmImport{{"wasi_snapshot_preview1", "fd_write", i32x(4), i32}},
			data:    []byte("\x08\x04\x00\x00\x01\x00\x00\x00\n"), // an iovec at 1024, whose one byte follows
			handler: []byte(opConst(1) + opConst(1024) + opConst(1) + opConst(512) + opCall(0) + opDrop + opConst(0)),
		})
		lines := 0
		for d := 50 * time.Millisecond; lines == 0 && d < 10*time.Second; d *= 2 { // a busy machine may take the first to begin
			var call *messaging.Call
			call = newCall("", func(o *messaging.CallOptions) {
				o.Limits.CallDuration = d
				o.Log = func(string, []byte) {
					lines++
					<-time.After(time.Until(call.Deadline()))
				}
			})
			require.Equal(t, runtime.Timeout, m.Invoke(t.Context(), call).Class)
		}
		require.Equal(t, 1, lines)
	})
	t.Run("AHandlersErrorIsAnAnswer", func(t *testing.T) {
		o := m.Invoke(t.Context(), newCall("remember x", nil))
		require.Equal(t, runtime.GuestError, o.Class)
		require.Equal(t, "guest-error: other", o.Reason())
		require.Equal(t, `call 1, cell ""`, o.GuestText)
		require.NoError(t, o.Err)
	})
	t.Run("AnExitHasItsCode", func(t *testing.T) {
		require.Equal(t, "exit 7", m.Invoke(t.Context(), newCall("exit", nil)).Reason())
	})
	t.Run("AGoPanicIsATrapAndItsTraceIsLogged", func(t *testing.T) {
		var log []string
		o := m.Invoke(t.Context(), newCall("remember-then-panic boom", func(o *messaging.CallOptions) {
			o.Log = func(stream string, line []byte) { log = append(log, stream+" "+string(line)) }
		}))
		require.Equal(t, "guest-trap: unreachable", o.Reason()) // a Go library aborts where a program would exit
		require.Contains(t, log, "stderr panic: boom")
	})
	t.Run("MemoryThatIsRefusedIsOutOfMemory", func(t *testing.T) {
		o := m.Invoke(t.Context(), newCall("hoard", nil))
		require.Equal(t, "out-of-memory", o.Reason(), o.Err)
		require.LessOrEqual(t, o.PeakMemoryBytes, testLimits().MemoryBytes)
	})
	t.Run("FuelEndsASpinningGuest", func(t *testing.T) {
		o := m.Invoke(t.Context(), newCall("spin", nil))
		require.Equal(t, "out-of-fuel", o.Reason(), o.Err)
		require.Greater(t, o.FuelUsed, testLimits().Fuel)
		require.Less(t, o.FuelUsed, testLimits().Fuel+10_000)
	})
	t.Run("CallDepthEndsARecursingGuest", func(t *testing.T) {
		require.Equal(t, "stack-overflow", m.Invoke(t.Context(), newCall("recurse", nil)).Reason())
	})
	t.Run("FuelThatIsUsedAfterTheLastCheckCounts", func(t *testing.T) {
		m := compile(t, wasmModule{handler: []byte(opConst(0))})
		fuel := func(n int64) *messaging.Call {
			return newCall("", func(o *messaging.CallOptions) { o.Limits.Fuel = n })
		}
		used := m.Invoke(t.Context(), fuel(1000)).FuelUsed
		require.Positive(t, used)
		require.Equal(t, runtime.OK, m.Invoke(t.Context(), fuel(used)).Class)
		require.Equal(t, runtime.OutOfFuel, m.Invoke(t.Context(), fuel(used-1)).Class)
	})
}

// Every kind of trap has its word.
func TestInvoke_Traps(t *testing.T) {
	const i32DivS, i32TruncF32, callIndirect0 = "\x6d", "\xa8", "\x11\x00\x00" // type 0 is realloc's
	zeroF32 := func(bits string) string { return "\x43" + bits }
	cases := map[string]string{
		"unreachable":            opUnreachable,
		"memory-out-of-bounds":   opLoad(-4),
		"integer-divide-by-zero": opConst(1) + opConst(0) + i32DivS,
		"integer-overflow":       opConst(-1<<31) + opConst(-1) + i32DivS,
		"invalid-conversion":     zeroF32("\x00\x00\xc0\x7f") + i32TruncF32,
		"invalid-table-access":   opConst(0) + opConst(0) + opConst(0) + opConst(0) + opConst(99) + callIndirect0,
	}
	for word, body := range cases {
		t.Run(word, func(t *testing.T) {
			o := compile(t, wasmModule{handler: []byte(body), table: true}).Invoke(t.Context(), newCall("", nil))
			require.Equal(t, "guest-trap: "+word, o.Reason(), o.Err)
		})
	}
}

// A panic in a host function fails its call; the module, the engine and the process go on.
func TestInvoke_HostPanic(t *testing.T) {
	m := goGuest(t)
	panics := map[string]func(){
		"AString":       func() { panic("boom") },
		"AnError":       func() { panic(errors.New("boom")) },
		"ARuntimeError": func() { var p *time.Timer; p.Reset(0) },
		"ADivision":     func() { zero := len(""); fmt.Print(1 / zero) },
	}
	for name, f := range panics {
		t.Run(name, func(t *testing.T) {
			o := m.Invoke(t.Context(), newCall("echo x", func(o *messaging.CallOptions) {
				o.Admit = func(string, messaging.Message) (messaging.Admission, *messaging.PublishError) {
					f()
					return messaging.Admission{}, nil
				}
			}))
			require.Equal(t, "host-panic", o.Reason())
			require.Error(t, o.Err)
			require.Equal(t, runtime.OK, m.Invoke(t.Context(), newCall("echo x", nil)).Class)
		})
	}
	t.Run("OutsideOfTheGuest", func(t *testing.T) {
		o := m.Invoke(t.Context(), newCall("log x", func(o *messaging.CallOptions) {
			o.Log = func(string, []byte) { panic("boom") }
		}))
		require.Equal(t, "host-panic", o.Reason())
	})
}

func TestClose(t *testing.T) {
	t.Run("ItWaitsForCallsInFlight", func(t *testing.T) {
		for _, what := range []string{"module", "engine"} {
			t.Run(what, func(t *testing.T) {
				e := newEngine(t)
				m, err := e.Compile(t.Context(), "small", spinner.assemble(), testLimits())
				require.NoError(t, err)
				ctx, cancel := context.WithCancel(t.Context())
				running, ended := make(chan struct{}), make(chan runtime.Outcome)
				go func() {
					ended <- m.Invoke(ctx, newCall("", func(o *messaging.CallOptions) {
						o.Limits.Fuel = 1 << 60
						o.Log = func(string, []byte) { close(running) }
					}))
				}()
				<-running
				closed := make(chan error)
				go func() {
					if what == "engine" {
						closed <- e.Close(context.WithoutCancel(t.Context()))
						return
					}
					closed <- m.Close(context.WithoutCancel(t.Context()))
				}()
				select {
				case err := <-closed:
					t.Fatalf("closed under a running call (%v)", err)
				case <-time.After(20 * time.Millisecond):
				}
				cancel()
				require.Equal(t, "interrupted", (<-ended).Reason())
				require.NoError(t, <-closed)
			})
		}
	})
	t.Run("LaterCallsAreAModuleFault", func(t *testing.T) {
		e := newEngine(t)
		m, err := e.Compile(t.Context(), "small", wasmModule{handler: []byte(opConst(0))}.assemble(), testLimits())
		require.NoError(t, err)
		require.NoError(t, m.Close(t.Context()))
		require.NoError(t, m.Close(t.Context()))
		require.Equal(t, "module-fault", m.Invoke(t.Context(), newCall("", nil)).Reason())
	})
	t.Run("AClosedEngineCompilesNothing", func(t *testing.T) {
		e := newEngine(t)
		m, err := e.Compile(t.Context(), "small", wasmModule{handler: []byte(opConst(0))}.assemble(), testLimits())
		require.NoError(t, err)
		require.NoError(t, e.Close(t.Context()))
		require.Equal(t, "module-fault", m.Invoke(t.Context(), newCall("", nil)).Reason())
		require.NoError(t, m.Close(t.Context()))
		_, err = e.Compile(t.Context(), "small", wasmModule{handler: []byte(opConst(0))}.assemble(), testLimits())
		require.ErrorContains(t, err, "closed")
	})
}

// spinner writes a line to its log, then loops for ever.
var spinner = wasmModule{
	imports: []wasmImport{{"wasi_snapshot_preview1", "fd_write", i32 + i32 + i32 + i32, i32}},
	data:    []byte("\x08\x04\x00\x00\x01\x00\x00\x00\n"), // an iovec: 1 byte at 1032
	handler: []byte(opConst(1) + opConst(1024) + opConst(1) + opConst(2048) + opCall(0) + opDrop + opLoop("")),
}
