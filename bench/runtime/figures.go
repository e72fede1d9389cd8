package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"
)

// figure prints one figure where programs look for it.
func figure(name string, value float64) { fmt.Printf("figure %s %.3g\n", name, value) }

// note prints what helps a reader to judge the figures: absolute numbers, which hold for this machine and this minute.
func note(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// timed returns how long f took.
func timed(f func() error) (time.Duration, error) {
	start := time.Now()
	err := f()
	return time.Since(start), err
}

// series are times of one thing.
type series []time.Duration

// best is the smallest: what the thing takes when nothing else wants the processor.
func (s series) best() time.Duration { return slices.Min(s) }

func (s series) worst() time.Duration { return slices.Max(s) }

func (s series) mean() time.Duration {
	var sum time.Duration
	for _, d := range s {
		sum += d
	}
	return sum / time.Duration(len(s))
}

// quantile returns the q-quantile.
func (s series) quantile(q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(s))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// over is the ratio of two times.
func over(a, b time.Duration) float64 { return float64(a) / float64(b) }

// interleaved runs each of jobs once a round, each round beginning with another one, and returns the times of each. What
// else the machine does meets all of them alike.
func interleaved(rounds int, jobs ...func() error) ([]series, error) {
	times := make([]series, len(jobs))
	for round := range rounds {
		for i := range jobs {
			j := (i + round) % len(jobs)
			took, err := timed(jobs[j])
			if err != nil {
				return nil, err
			}
			times[j] = append(times[j], took)
		}
	}
	return times, nil
}

// repeated makes a job of n times f.
func repeated(n int, f func() error) func() error {
	return func() error {
		for range n {
			if err := f(); err != nil {
				return err
			}
		}
		return nil
	}
}

// geomean returns the geometric mean.
func geomean(values []float64) float64 {
	var sum float64
	for _, v := range values {
		sum += math.Log(v)
	}
	return math.Exp(sum / float64(len(values)))
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// closing closes something when its owner returns, and keeps the error.
func closing(err *error, closer func() error) { *err = errors.Join(*err, closer()) }
