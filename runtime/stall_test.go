package runtime_test

import (
	"context"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/wasi/messaging"
)

// stalling are guests that never end, made to be far from a safe point for as long as they can: by what a unit of fuel
// takes (chasing pointers that no cache holds), by what one instruction does, and by turning from cheap to costly work.
func stalling() map[string]wasmModule {
	const (
		add, sub, mul, and, shl = "\x6a", "\x6b", "\x6c", "\x71", "\x74"
		load, store             = "\x28\x02\x00", "\x36\x02\x00"
		loop, end               = "\x03\x40", "\x0b"
		nodes                   = 1 << 20 // of 64 bytes: a line of the cache each
	)
	set := func(local int) string { return "\x21" + string(uleb(local)) }
	tee := func(local int) string { return "\x22" + string(uleb(local)) }
	brIf := func(label int) string { return "\x0d" + string(uleb(label)) }
	// The memory becomes one ring of pointers, in the order of a linear congruence: local 2 counts nodes down.
	next := opGet(2) + opConst(1664525) + mul + opConst(1013904223) + add + opConst(nodes-1) + and + opConst(6) + shl
	ring := opConst(1023) + opGrow + opDrop + opConst(nodes) + set(2) +
		loop + opGet(2) + opConst(1) + sub + tee(2) + opConst(6) + shl + next + store + opGet(2) + brIf(0) + end
	chase := opGet(3) + load + set(3)
	times := func(n int32, body string) string {
		return opConst(n) + set(4) + loop + body + opGet(4) + opConst(1) + sub + tee(4) + brIf(0) + end
	}
	guests := hostile()
	with := func(body string) wasmModule {
		m := guests["Spinning"]
		start := opConst(1) + opConst(1024) + opConst(1) + opConst(2048) + opCall(0) + opDrop
		m.handler = []byte(start + ring + body + opUnreachable)
		return m
	}
	return map[string]wasmModule{
		"Spinning":    guests["Spinning"],
		"Recursing":   guests["Recursing"],
		"BulkFilling": guests["BulkFilling"],
		"BulkCopying": guests["BulkCopying"],
		"Chasing":     with(opLoop(chase)),
		"Turning":     with(opLoop(times(10_000_000, "") + times(100_000, chase))),
		"FillingAll":  with(opLoop(opConst(0) + opConst(1) + opConst(64<<20) + opFill)),
		"MovingAll":   with(opLoop(opConst(0) + opConst(5) + opConst(64<<20-5) + opCopy + opConst(5) + opConst(0) + opConst(64<<20-5) + opCopy)),
	}
}

// BenchmarkGarbageCollection measures collections of the host alone and beside each kind of guest: the mean is the time
// of an operation, and the worst one is given too.
func BenchmarkGarbageCollection(b *testing.B) {
	collect := func(b *testing.B) {
		b.Helper()
		var worst time.Duration
		for b.Loop() {
			start := time.Now()
			goruntime.GC()
			worst = max(worst, time.Since(start))
		}
		b.ReportMetric(float64(worst.Microseconds())/1000, "worst-ms")
	}
	b.Run("Alone", collect)
	for name, g := range stalling() {
		b.Run(name, func(b *testing.B) {
			m := compile(b, g)
			ctx, cancel := context.WithCancel(b.Context())
			call, running := endless(func(o *messaging.CallOptions) { o.Limits.CallDuration = time.Hour })
			ended := make(chan runtime.Outcome)
			go func() { ended <- m.Invoke(ctx, call) }()
			<-running
			collect(b)
			cancel()
			if o := <-ended; o.Class != runtime.Interrupted {
				b.Fatal(o.Reason(), o.Err)
			}
		})
	}
}
