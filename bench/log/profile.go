package main

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/longshore/longshore/bench/internal/figures"
)

const profileSpan = 8 * time.Second

// profiles writes CPU profiles of the log under 64 publishers, the same relaxed, under publishers of batches, and in the
// cycle, into the folder out, and notes what part of the time the journal was being written.
func (p plan) profiles(ctx context.Context, dir, out string) error {
	single := load{name: "c64", publishers: 64, batch: 1, topics: 1}
	batches := load{name: "batch100", publishers: 8, batch: 100, topics: 1}
	driving := func(l load) func(*durable) (float64, error) {
		return func(d *durable) (float64, error) {
			rate, _, err := l.drive(ctx, d, profileSpan)
			return rate, err
		}
	}
	return errors.Join(
		p.profiled(ctx, dir+"/publish", filepath.Join(out, "publish_c64.pprof"), nil, driving(single)),
		p.profiled(ctx, dir+"/relaxed", filepath.Join(out, "relaxed_c64.pprof"), []string{"c64/0"}, driving(single)),
		p.profiled(ctx, dir+"/batches", filepath.Join(out, "publish_batch100.pprof"), nil, driving(batches)),
		p.profiled(ctx, dir+"/cycle", filepath.Join(out, "cycle.pprof"), nil, func(d *durable) (float64, error) {
			return cycle(ctx, d, profileSpan)
		}),
	)
}

// profiled profiles work on a new log whose journal exists, and of whose topics some are relaxed.
func (p plan) profiled(ctx context.Context, dir, path string, relaxed []string, work func(*durable) (float64, error)) (err error) {
	d, err := openRelaxed(ctx, dir, p.payload, relaxed...)
	if err != nil {
		return err
	}
	defer figures.Closing(&err, d.Close)
	if err := d.warm(ctx); err != nil {
		return err
	}
	figures.Quiet(time.Second, time.Minute)
	flushesBefore, busyBefore := d.JournalStats()
	start := time.Now()
	var rate float64
	err = figures.Profile(path, func() (err error) {
		rate, err = work(d)
		return err
	})
	if err != nil {
		return err
	}
	took := time.Since(start)
	flushes, busy := d.JournalStats()
	flushes, busy = flushes-flushesBefore, busy-busyBefore
	figures.Note("%s: %.0f/s; %d flushes of the journal in %s, %s each: %.0f %% of the time", filepath.Base(path), rate, flushes,
		took.Round(time.Millisecond), (busy / time.Duration(max(flushes, 1))).Round(time.Microsecond), 100*busy.Seconds()/took.Seconds())
	return nil
}
