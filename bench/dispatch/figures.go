package main

import (
	"time"

	"github.com/longshore/longshore/bench/internal/figures"
)

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
	return cost{figures.Median(wall), figures.Median(processor)}
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
	return figures.Median(ratios)
}

// measured returns what work on n messages costs for each.
func measured(n int, work func() error) (cost, error) {
	before, start := figures.ProcessorTime(), time.Now()
	err := work()
	took, used := time.Since(start), figures.ProcessorTime()-before
	return cost{figures.Microseconds(took) / float64(n), figures.Microseconds(used) / float64(n)}, err
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

// quiet waits for a quiet machine.
func quiet() { figures.Quiet(60*time.Millisecond, 2*time.Second) }
