package runtime_test

import (
	"context"
	"errors"
	"math"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/wasi/messaging"
)

// hostile are guests that never end by themselves and have fuel for hours. Each writes a line to its log first.
func hostile() map[string]wasmModule {
	with := func(body string, imports ...wasmImport) wasmModule {
		m := spinner
		m.imports = append(append([]wasmImport(nil), m.imports...), imports...)
		m.data = append(append([]byte(nil), m.data...), sleepSubscription...)
		m.handler = []byte(opConst(1) + opConst(1024) + opConst(1) + opConst(2048) + opCall(0) + opDrop + body + opUnreachable)
		return m
	}
	const wasi = "wasi_snapshot_preview1"
	grow := opConst(255) + opGrow + opDrop
	recursing := with(opConst(0) + opConst(0) + opConst(0) + opConst(0) + opCall(1) + opDrop)
	recursing.realloc = recurse()
	return map[string]wasmModule{
		"Spinning":    with(opLoop("")),
		"Recursing":   recursing,
		"BulkFilling": with(grow + opLoop(opConst(0)+opConst(1)+opConst(16<<20)+opFill)),
		"BulkCopying": with(grow + opLoop(opConst(0)+opConst(8<<20)+opConst(8<<20)+opCopy)),
		"Sleeping": with(opConst(1040)+opConst(4096)+opConst(1)+opConst(2048)+opCall(1)+opDrop,
			wasmImport{wasi, "poll_oneoff", i32 + i32 + i32 + i32, i32}),
		"Randomising": with(grow+opLoop(opConst(0)+opConst(16<<20)+opCall(1)+opDrop),
			wasmImport{wasi, "random_get", i32 + i32, i32}),
	}
}

// sleepSubscription follows the nine bytes of the spinner's data, at 1033: padding, then one clock subscription at 1040
// that is due in a year.
var sleepSubscription = func() []byte {
	b := make([]byte, 7+48)
	b[7+16] = 1 // the monotonic clock
	b[7+24+6] = 0x70
	return b
}()

// recurse is a body for the function realloc, which is number 1 where there is one import: it calls itself twice, 500
// deep, which takes for ever.
func recurse() string {
	const ltU, ifI32, els, end, add = "\x49", "\x04\x7f", "\x05", "\x0b", "\x6a"
	deeper := opGet(0) + opConst(1) + add + opConst(0) + opConst(0) + opConst(0) + opCall(1)
	return opGet(0) + opConst(500) + ltU + ifI32 + deeper + deeper + add + els + opConst(0) + end
}

// endless prepares a call of a hostile guest. The channel is closed once it runs.
func endless(change func(o *messaging.CallOptions)) (call *messaging.Call, running chan struct{}) {
	running = make(chan struct{})
	return newCall("", func(o *messaging.CallOptions) {
		o.Limits.Fuel = 1 << 60
		o.Limits.HostCalls = 1 << 60
		o.Log = func(string, []byte) { close(running) }
		if change != nil {
			change(o)
		}
	}), running
}

// A deadline stops every guest, whatever it does, soon after it has passed. A machine that has other work may be late once; a guest
// that can't be stopped in time makes every call late.
func TestHostile_Deadline(t *testing.T) {
	const late, tries = time.Second, 3 // with the race detector; the lateness is logged
	for name, g := range hostile() {
		t.Run(name, func(t *testing.T) {
			m := compile(t, g)
			least := time.Duration(math.MaxInt64)
			for i := 0; i < tries && least >= late; i++ {
				call, _ := endless(func(o *messaging.CallOptions) { o.Limits.CallDuration = 50 * time.Millisecond })
				start := time.Now()
				o := m.Invoke(t.Context(), call)
				took := time.Since(start)
				require.Equal(t, "timeout", o.Reason(), o.Err)
				require.GreaterOrEqual(t, took, 50*time.Millisecond)
				least = min(least, took-50*time.Millisecond)
			}
			require.Less(t, least, late)
			t.Logf("stopped %v after its deadline", least)
		})
	}
}

// Cancelling the context stops every guest too, and says so.
func TestHostile_Cancel(t *testing.T) {
	stop := errors.New("the host stops")
	for name, g := range hostile() {
		t.Run(name, func(t *testing.T) {
			m := compile(t, g)
			ctx, cancel := context.WithCancelCause(t.Context())
			call, running := endless(nil)
			ended := make(chan runtime.Outcome)
			go func() { ended <- m.Invoke(ctx, call) }()
			<-running
			cancel(stop)
			o := <-ended
			require.Equal(t, "interrupted", o.Reason(), o.Err)
			require.ErrorIs(t, o.Err, stop)
		})
	}
}

// Without safe points, a collection beside a guest in a loop would never return. Other work on the machine may make one slow; a guest
// that is too far from its safe points makes all of them slow.
func TestHostile_GarbageCollection(t *testing.T) {
	const slow = 2 * time.Second // with the race detector; the worst is logged
	for name, g := range hostile() {
		t.Run(name, func(t *testing.T) {
			m := compile(t, g)
			ctx, cancel := context.WithCancel(t.Context())
			call, running := endless(nil)
			ended := make(chan runtime.Outcome)
			go func() { ended <- m.Invoke(ctx, call) }()
			<-running
			least, worst := time.Duration(math.MaxInt64), time.Duration(0)
			for range 5 {
				start := time.Now()
				goruntime.GC()
				took := time.Since(start)
				least, worst = min(least, took), max(worst, took)
			}
			cancel()
			require.Equal(t, "interrupted", (<-ended).Reason())
			require.Less(t, least, slow)
			t.Logf("worst collection %v", worst)
		})
	}
}
