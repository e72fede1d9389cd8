package main

import (
	"context"
	"path/filepath"

	"github.com/longshore/longshore/bench/internal/figures"
)

// profiledRounds is how many rounds' messages a profile is of.
const profiledRounds = 5

// profiles writes CPU profiles of the path into the folder dir: of messages one by one and in batches, of each guest.
func (b *bench) profiles(ctx context.Context, dir, only string) error {
	for _, l := range languages() {
		for _, r := range []role{consumer, batch} {
			name := string(l) + "_" + string(r)
			if only != "" && only != name {
				continue
			}
			if err := b.profile(ctx, guest{l, r}, filepath.Join(dir, name+".pprof")); err != nil {
				return err
			}
		}
	}
	return nil
}

// profile profiles a guest that handles what was published before.
func (b *bench) profile(ctx context.Context, g guest, path string) error {
	n := profiledRounds * b.messages[g.language]
	if err := b.host.publish(ctx, n); err != nil {
		return err
	}
	quiet()
	return figures.Profile(path, func() error {
		c, err := measured(n, func() error { return b.host.drain(ctx, g, n) })
		figures.Note("%s: %.2f µs a message, %.2f µs of processors", filepath.Base(path), c.wall, c.processor)
		return err
	})
}
