package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime/pprof"
	"time"
)

const profileSpan = 5 * time.Second

// profiles writes CPU profiles of short messages into the folder dir: clean instances, and calls of the host.
func (b *bench) profiles(ctx context.Context, dir string) error {
	data := order()
	for name, work := range map[string]func() error{
		"touch_c":   b.touching(ctx, guestC, cTouch),
		"touch_go":  b.touching(ctx, guestGo, goTouch),
		"host_call": func() error { return b.kept.run(ctx, guestC, cCalls, 100_000, 0) },
		"json_go": func() error {
			_, err := b.own.handle(ctx, guestGo, data)
			return err
		},
	} {
		if err := profile(filepath.Join(dir, name+".pprof"), work); err != nil {
			return err
		}
	}
	return nil
}

// profile profiles work that is done over and over.
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
	start := time.Now()
	n := 0
	for ; time.Since(start) < profileSpan; n++ {
		if err := work(); err != nil {
			return err
		}
	}
	note("%s: %v each", filepath.Base(path), time.Since(start)/time.Duration(n))
	return nil
}
