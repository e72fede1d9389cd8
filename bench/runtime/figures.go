package main

import (
	"math"
	"slices"
	"time"

	"github.com/longshore/longshore/bench/internal/figures"
)

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
func (s series) quantile(q float64) time.Duration { return figures.Quantile(s, q) }

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
