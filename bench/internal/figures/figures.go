// Package figures is what the benchmarks have in common: how they print, what they compute of samples, how they wait for a
// quiet machine, and how they profile. None of it is safe for concurrent use, but for what only computes.
package figures

import (
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"slices"
	"syscall"
	"time"
)

// Print prints one figure where programs look for it.
func Print(name string, value float64) { fmt.Printf("figure %s %.3g\n", name, value) }

// Note prints what helps a reader to judge the figures: absolute numbers, which hold for this machine and this minute.
func Note(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// Quantile returns the q-quantile of values, which it does not change; 0 of none.
func Quantile[T float64 | time.Duration](values []T, q float64) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// Median returns the median of values, which it does not change; 0 of none.
func Median[T float64 | time.Duration](values []T) T { return Quantile(values, 0.5) }

// Milliseconds returns a time in milliseconds.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Microseconds returns a time in microseconds.
func Microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// Quiet has the disk write what it still owes, and waits until the process has all but stopped using the processor for a
// while, or atMost has passed, so that nobody's leftovers are paid for by whoever is measured next.
func Quiet(while, atMost time.Duration) {
	const (
		window = 20 * time.Millisecond
		idle   = window / 10 // processor time in a window
	)
	syscall.Sync()
	start := time.Now()
	for calm := time.Duration(0); calm < while && time.Since(start) < atMost; {
		before := ProcessorTime()
		time.Sleep(window)
		if calm += window; ProcessorTime()-before > idle {
			calm = 0
		}
	}
}

// ProcessorTime returns what the process has used so far; 0 if the system does not say.
func ProcessorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Profile writes a CPU profile of work to a file.
func Profile(path string, work func() error) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer Closing(&err, f.Close)
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	return work()
}

// Closing closes something when its owner returns, and keeps the error.
func Closing(err *error, closer func() error) { *err = errors.Join(*err, closer()) }
