package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"
)

// figure prints one figure where programs look for it.
func figure(name string, value float64) { fmt.Printf("figure %s %.3g\n", name, value) }

// note prints what helps a reader to judge the figures: absolute numbers, which hold for this machine and this minute.
func note(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// quantile returns the q-quantile of values, which it does not change.
func quantile[T float64 | time.Duration](values []T, q float64) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func median[T float64 | time.Duration](values []T) T { return quantile(values, 0.5) }

// cost is what work took: by the clock, and of all processors together.
type cost struct{ wall, processor float64 } // µs a message

func (c cost) less(d cost) cost { return cost{c.wall - d.wall, c.processor - d.processor} }

// costs are those of rounds.
type costs []cost

// median returns the medians of both.
func (c costs) median() cost {
	var wall, processor []float64
	for _, one := range c {
		wall, processor = append(wall, one.wall), append(processor, one.processor)
	}
	return cost{median(wall), median(processor)}
}

// less returns the differences within each round.
func (c costs) less(d costs) (out costs) {
	for i := range c {
		out = append(out, c[i].less(d[i]))
	}
	return out
}

// over returns the median of the ratios of wall time within each round.
func (c costs) over(d costs) float64 {
	ratios := make([]float64, len(c))
	for i := range c {
		ratios[i] = c[i].wall / d[i].wall
	}
	return median(ratios)
}

// measured returns what work on n messages costs for each.
func measured(n int, work func() error) (cost, error) {
	before, start := processorTime(), time.Now()
	err := work()
	took, used := time.Since(start), processorTime()-before
	return cost{microseconds(took) / float64(n), microseconds(used) / float64(n)}, err
}

// interleaved measures each of jobs once a round, each round beginning with another one, and returns the costs of each. What
// else the machine does meets all of them alike.
func interleaved(rounds int, jobs ...func() (cost, error)) ([]costs, error) {
	all := make([]costs, len(jobs))
	for round := range rounds {
		for i := range jobs {
			j := (i + round) % len(jobs)
			c, err := jobs[j]()
			if err != nil {
				return nil, err
			}
			all[j] = append(all[j], c)
		}
	}
	return all, nil
}

// quiet has the disk write what it still owes, and waits until the process has all but stopped using the processor, so that
// nobody's leftovers are paid for by whoever is measured next.
func quiet() {
	const (
		window, while, atMost = 20 * time.Millisecond, 60 * time.Millisecond, 2 * time.Second
		idle                  = window / 10 // processor time in a window
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

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// closing closes something when its owner returns, and keeps the error.
func closing(err *error, closer func() error) { *err = errors.Join(*err, closer()) }
