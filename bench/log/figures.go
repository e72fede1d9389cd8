package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// figure prints one figure where programs look for it.
func figure(name string, value float64) { fmt.Printf("figure %s %.3g\n", name, value) }

// note prints what helps a reader to judge the figures: absolute numbers, which hold for this machine and this minute.
func note(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// quantile returns the q-quantile of values, which it does not change; 0 of none.
func quantile[T float64 | time.Duration](values []T, q float64) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// span formats the smallest and the largest of rates.
func span(rates []float64) string {
	return fmt.Sprintf("%.0f–%.0f", quantile(rates, 0), quantile(rates, 1))
}

func median[T float64 | time.Duration](values []T) T { return quantile(values, 0.5) }

// medianRatio returns the median of a[i]/b[i]: what was measured in one round is compared within it.
func medianRatio(a, b []float64) float64 {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = a[i] / b[i]
	}
	return median(ratios)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// quiet has the disk write what it still owes, and waits until the process has all but stopped using the processor for a
// while, or atMost has passed, so that nobody's leftovers are paid for by whoever is measured next.
func quiet(while, atMost time.Duration) {
	const (
		window = 40 * time.Millisecond
		idle   = window / 10 // processor time in a window
	)
	syscall.Sync()
	start := time.Now()
	for calm := time.Duration(0); calm < while && time.Since(start) < atMost; {
		before := processorTime()
		time.Sleep(window)
		if calm += window; processorTime()-before > idle {
			calm = 0
		}
	}
}

// processorTime returns what the process has used so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// heapBytes returns the bytes of live objects.
func heapBytes() float64 {
	runtime.GC()
	runtime.GC() // finalizers and pools of the first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// restingHeapBytes returns what is live once the work in the background is done, and Badger's pools of buffers, which give
// one back every two seconds, are empty: when it has not changed for a while.
func restingHeapBytes() float64 {
	const (
		pause   = 2 * time.Second
		samples = 8 // in a row that differ by less than 1 % from the one before
		most    = 45
	)
	last := heapBytes()
	for i, steady := 0, 0; i < most && steady < samples; i++ {
		time.Sleep(pause)
		now := heapBytes()
		if steady++; now < last*0.99 || now > last*1.01 {
			steady = 0
		}
		last = now
	}
	return last
}

// closing closes something when its owner returns, and keeps the error.
func closing(err *error, closer func() error) { *err = errors.Join(*err, closer()) }
