package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime/pprof"
	"time"
)

const profileSpan = 8 * time.Second

// profiles writes CPU profiles of the log under 64 publishers, and in the cycle, into the folder out, and notes what part
// of the time the journal was being written.
func (p plan) profiles(ctx context.Context, dir, out string) error {
	err := p.profiled(ctx, dir+"/publish", filepath.Join(out, "publish_c64.pprof"), func(d *durable) (float64, error) {
		l := load{name: "c64", publishers: 64, batch: 1, topics: 1}
		rate, _, err := l.drive(ctx, d, profileSpan)
		return rate, err
	})
	if err != nil {
		return err
	}
	return p.profiled(ctx, dir+"/cycle", filepath.Join(out, "cycle.pprof"), func(d *durable) (float64, error) {
		return cycle(ctx, d, profileSpan)
	})
}

// profiled profiles work on a new log whose journal exists.
func (p plan) profiled(ctx context.Context, dir, path string, work func(*durable) (float64, error)) (err error) {
	d, err := openDurable(ctx, dir, p.payload)
	if err != nil {
		return err
	}
	defer closing(&err, d.Close)
	if err := d.warm(ctx); err != nil {
		return err
	}
	quiet(time.Second, time.Minute)
	flushesBefore, busyBefore := d.JournalStats()
	start := time.Now()
	var rate float64
	err = profile(path, func() (err error) {
		rate, err = work(d)
		return err
	})
	if err != nil {
		return err
	}
	took := time.Since(start)
	flushes, busy := d.JournalStats()
	flushes, busy = flushes-flushesBefore, busy-busyBefore
	note("%s: %.0f/s; %d flushes of the journal in %s, %s each: %.0f %% of the time", filepath.Base(path), rate, flushes,
		took.Round(time.Millisecond), (busy / time.Duration(max(flushes, 1))).Round(time.Microsecond), 100*busy.Seconds()/took.Seconds())
	return nil
}

func profile(path string, work func() error) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer closing(&err, f.Close)
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	return work()
}
