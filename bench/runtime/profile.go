package main

import (
	"context"
	"path/filepath"
	"time"

	"github.com/longshore/longshore/bench/internal/figures"
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
		if err := figures.Profile(filepath.Join(dir, name+".pprof"), func() error { return again(name, work) }); err != nil {
			return err
		}
	}
	return nil
}

// again does work over and over for profileSpan.
func again(name string, work func() error) error {
	start, n := time.Now(), 0
	for ; time.Since(start) < profileSpan; n++ {
		if err := work(); err != nil {
			return err
		}
	}
	figures.Note("%s: %v each", name, time.Since(start)/time.Duration(n))
	return nil
}
