package hostile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
)

// Overruns calls every endless module once with StopDuration to run, and returns by how much the latest was late, and its
// name.
func Overruns(ctx context.Context, e *runtime.Engine) (worst time.Duration, name string, err error) {
	for _, m := range Corpus() {
		if !m.Endless {
			continue
		}
		var v Verdict
		module, err := deploy(ctx, e, m, &v)
		if err != nil || module == nil {
			return 0, m.Name, errors.Join(err, m.Check(v))
		}
		reason, late := stop(ctx, module)
		if err := module.Close(ctx); err != nil {
			return 0, m.Name, err
		}
		if reason != "timeout" {
			return 0, m.Name, fmt.Errorf("%s ended as %q", m.Name, reason)
		}
		if late > worst {
			worst, name = late, m.Name
		}
	}
	return worst, name, nil
}

// Neighbour is a harmless guest whose calls take about the same time each.
type Neighbour struct {
	module *runtime.Module
	limits limits.Guest
}

// NewNeighbour makes a neighbour whose calls take about work. Close it.
func NewNeighbour(ctx context.Context, e *runtime.Engine, work time.Duration) (*Neighbour, error) {
	const first = 1_000_000
	trial, err := counting(ctx, e, first)
	if err != nil {
		return nil, err
	}
	took, err := trial.quantile(ctx, 20, 0.5)
	if err := errors.Join(err, trial.Close(ctx)); err != nil {
		return nil, err
	}
	return counting(ctx, e, int32(min(first*int64(work)/int64(took), 1<<30)))
}

// counting is a neighbour that counts to n.
func counting(ctx context.Context, e *runtime.Engine, n int32) (*Neighbour, error) {
	g := guest{handler: loop(bump(1)+get(1)+konst(n)+ltU+brIf0) + konst(0)}
	b := &Neighbour{limits: limits.DefaultGuest()}
	b.limits.Fuel, b.limits.CallDuration = 1<<60, time.Minute
	var err error
	b.module, err = e.Compile(ctx, "neighbour", g.bytes(), b.limits)
	return b, err
}

// Close frees the neighbour, after its calls.
func (b *Neighbour) Close(ctx context.Context) error { return b.module.Close(ctx) }

// quantile calls the neighbour n times, one after the other, and returns how long a share q of the calls took at most.
func (b *Neighbour) quantile(ctx context.Context, n int, q float64) (time.Duration, error) {
	took := make([]time.Duration, n)
	for i := range took {
		started := time.Now()
		if o := b.module.Invoke(ctx, newCall(b.limits)); o.Class != runtime.OK {
			return 0, fmt.Errorf("the neighbour ended as %q: %w", o.Reason(), o.Err)
		}
		took[i] = time.Since(started)
	}
	slices.Sort(took)
	return took[min(int(q*float64(n)), n-1)], nil
}

// Beside measures the 99th percentile of n calls of the neighbour, alone and while m, which must be endless, runs on
// another goroutine.
func (b *Neighbour) Beside(ctx context.Context, e *runtime.Engine, m Module, n int) (alone, beside time.Duration, err error) {
	var v Verdict
	module, err := deploy(ctx, e, m, &v)
	if err != nil || module == nil {
		return 0, 0, errors.Join(err, m.Check(v))
	}
	defer func() { err = errors.Join(err, module.Close(ctx)) }()
	if alone, err = b.quantile(ctx, n, 0.99); err != nil {
		return 0, 0, err
	}
	hostile, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		for hostile.Err() == nil {
			stop(hostile, module)
		}
	})
	beside, err = b.quantile(ctx, n, 0.99)
	cancel()
	running.Wait()
	return alone, beside, err
}
