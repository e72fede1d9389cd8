package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/longshore/longshore/bench/internal/figures"
	"github.com/longshore/longshore/runtime"
)

// fuel measures what counting instructions costs: metered guests over plain ones, and the same for wasmtime. A message of
// 10 ms hides what a message costs by itself, and is short enough that some are not disturbed.
func (b *bench) fuel(ctx context.Context) error {
	bare, err := newWasmtime(false, b.computing())
	if err != nil {
		return err
	}
	defer bare.close()
	fueled, err := newWasmtime(true, b.computing())
	if err != nil {
		return err
	}
	defer fueled.close()
	var ratios, theirs []float64
	for _, w := range workloads() {
		want, err := b.plain.result(ctx, w.guest, w.number, w.amount)
		if err != nil {
			return err
		}
		times, err := interleaved(
			5*b.rounds,
			func() error { return b.plain.run(ctx, w.guest, w.number, w.amount, want) },
			func() error { return b.kept.run(ctx, w.guest, w.number, w.amount, want) },
			func() error { return bare.run(w.guest, w.number, w.amount, want) },
			func() error { return fueled.run(w.guest, w.number, w.amount, want) },
		)
		if err != nil {
			return fmt.Errorf("workload %s: %w", w.name, err)
		}
		best := [4]time.Duration{times[0].best(), times[1].best(), times[2].best(), times[3].best()}
		ratio, their := over(best[1], best[0]), over(best[3], best[2])
		figures.Note("%-10s wazero %v, metered %v; wasmtime %v, with fuel %v (%.2f)", w.name, best[0], best[1], best[2], best[3], their)
		figures.Print("fuel_"+w.name, ratio)
		ratios, theirs = append(ratios, ratio), append(theirs, their)
	}
	figures.Print("fuel_geomean", geomean(ratios))
	figures.Print("fuel_worst", slices.Max(ratios))
	figures.Print("wasmtime_fuel_geomean", geomean(theirs))
	return nil
}

// goSpread is how much the fuel of a Go guest may differ from run to run, as a part of it: its scheduler, its collector and
// its hashes depend on clocks and on random numbers, which are input as much as the message is.
const goSpread = 0.01

// sameFuel fails if a workload's fuel depends on anything but its input: the engine, or what ran before.
func (b *bench) sameFuel(ctx context.Context) (err error) {
	slow, err := newOwn(ctx, runtime.Options{Interpreter: true}, runtime.Instances{}, b.computing())
	if err != nil {
		return err
	}
	defer figures.Closing(&err, func() error { return slow.close(ctx) })
	for _, w := range workloads() {
		want, err := b.plain.result(ctx, w.guest, w.number, w.little)
		if err != nil {
			return err
		}
		var used []int64
		for _, p := range []*own{b.own, slow, b.own, slow} {
			o, err := p.handle(ctx, w.guest, message(w.number, w.little, want))
			if err != nil {
				return err
			}
			used = append(used, o.FuelUsed)
		}
		figures.Note("%-10s uses %d of fuel for %d, compiled and interpreted, twice each", w.name, used, w.little)
		spread := float64(slices.Max(used)-slices.Min(used)) / float64(slices.Min(used))
		if w.guest == guestGo && spread < goSpread {
			continue
		}
		if spread != 0 {
			return fmt.Errorf("workload %s: its fuel should be one number: %d", w.name, used)
		}
	}
	return nil
}
