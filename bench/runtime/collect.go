package main

import (
	"context"
	"math"
	goruntime "runtime"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"github.com/longshore/longshore/bench/internal/figures"
)

// collections measures how long the garbage collector of the host waits for guests, and as a control for a goroutine of the
// host that computes, which the collector may interrupt anywhere.
func (b *bench) collections(ctx context.Context) error {
	alone, err := b.collect("nothing")
	if err != nil {
		return err
	}
	figures.Print("gc_stall_ms_alone", figures.Milliseconds(alone.worst()))
	control, err := b.besideHost()
	if err != nil {
		return err
	}
	figures.Print("gc_stall_ms_control", figures.Milliseconds(control.worst()))
	before := stopping()
	var all series
	for _, w := range endless() {
		var times series
		err := b.beside(ctx, w, func() (err error) {
			times, err = b.collect(w.name)
			return err
		})
		if err != nil {
			return err
		}
		all = append(all, times...)
	}
	figures.Print("gc_stall_ms_avg", figures.Milliseconds(all.mean()))
	figures.Print("gc_stall_ms_worst", figures.Milliseconds(all.worst()))
	figures.Print("gc_stop_ms_worst", figures.Milliseconds(longest(before, stopping())))
	return nil
}

// collect collects garbage beside something, and says how long it took, and how long of that the world took to stop.
func (b *bench) collect(beside string) (series, error) {
	goruntime.GC() // what others left behind, and
	goruntime.GC() // what their finalizers kept
	before := stopping()
	times, err := interleaved(b.collects, func() error { goruntime.GC(); return nil })
	if err != nil {
		return nil, err
	}
	figures.Note("collections beside %s: mean %v, worst %v; the world took up to %v to stop", beside, times[0].mean(), times[0].worst(), longest(before, stopping()))
	return times[0], nil
}

// besideHost collects garbage beside a goroutine that computes.
func (b *bench) besideHost() (series, error) {
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := uint32(1); !stop.Load(); {
			for range 1_000_000 {
				n = n*1664525 + 1013904223
			}
			sink.Store(n)
		}
	}()
	time.Sleep(warmUp)
	times, err := b.collect("a goroutine of the host")
	stop.Store(true)
	<-done
	return times, err
}

// sink keeps what is computed for nothing.
var sink atomic.Uint32

// stopping returns how often the world took how long to stop for the collector.
func stopping() *metrics.Float64Histogram {
	s := []metrics.Sample{{Name: "/sched/pauses/stopping/gc:seconds"}}
	metrics.Read(s)
	return s[0].Value.Float64Histogram()
}

// longest returns the upper end of the last bucket that has grown.
func longest(before, after *metrics.Float64Histogram) time.Duration {
	for i := len(after.Counts) - 1; i >= 0; i-- {
		if after.Counts[i] > before.Counts[i] {
			return time.Duration(math.Min(after.Buckets[i+1], time.Hour.Seconds()) * float64(time.Second))
		}
	}
	return 0
}
