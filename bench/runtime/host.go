package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/longshore/longshore/bench/internal/figures"
	"github.com/longshore/longshore/runtime"
)

// hostCalls compares a call of the host with the least that wazero can do: a function that does nothing.
func (b *bench) hostCalls(ctx context.Context) error {
	const calls = 200_000
	times, err := interleaved(
		5*b.rounds,
		func() error { return b.plain.run(ctx, guestC, cCalls, calls, 0) },
		func() error { return b.kept.run(ctx, guestC, cCalls, calls, 0) },
	)
	if err != nil {
		return err
	}
	bare, ours := times[0].best(), times[1].best()
	figures.Note("a call of the host: bare %d ns, ours %d ns", bare.Nanoseconds()/calls, ours.Nanoseconds()/calls)
	figures.Print("hostcall_ns_over_wazero", over(ours, bare))
	return nil
}

// deploy compares what it takes to make the Go guest ready, from its bytes to an initialised instance, with plain wazero,
// and when its code was compiled before.
func (b *bench) deploy(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "longshore-bench-cache")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	guest := map[string][]byte{guestGo: b.guests[guestGo]}
	cached := func() error { return deployOwn(ctx, runtime.Options{CacheDir: dir}, guest) }
	if err := cached(); err != nil {
		return err
	}
	times, err := interleaved(
		min(b.rounds, 5),
		func() error {
			p, err := newPlain(ctx, guest)
			if err != nil {
				return err
			}
			return p.close(ctx)
		},
		func() error { return deployOwn(ctx, runtime.Options{}, guest) },
		cached,
	)
	if err != nil {
		return err
	}
	bare, ours := times[0].best(), times[1].best()
	figures.Note("go guest of %d KiB: deployed in %v, with plain wazero in %v", len(guest[guestGo])>>10, ours.Round(time.Millisecond), bare.Round(time.Millisecond))
	figures.Print("compile_overhead", over(ours, bare))
	figures.Print("deploy_cached_ms", figures.Milliseconds(times[2].best()))
	return nil
}

// deployOwn makes guests ready, and closes them again.
func deployOwn(ctx context.Context, o runtime.Options, guests map[string][]byte) error {
	p, err := newOwn(ctx, o, runtime.Instances{}, guests)
	if err != nil {
		return err
	}
	return p.close(ctx)
}
