// Command dispatch measures the whole way of a message with everything on.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// bench is what is measured, and how much.
type bench struct {
	short    bool
	rounds   int
	messages map[language]int // a round

	guests map[guest][]byte
	host   *host
	peer   *peer
}

func newBench(short bool) *bench {
	if short {
		return &bench{short: true, rounds: 3, messages: map[language]int{inGo: 1_000, inC: 4_000}}
	}
	return &bench{rounds: 7, messages: map[language]int{inGo: 4_000, inC: 10_000}}
}

func main() {
	short := flag.Bool("short", false, "measure less, in less than a minute")
	only := flag.String("only", "", "measure only this `job`")
	profiles := flag.String("profile", "", "write CPU profiles into this `folder` instead of measuring")
	flag.Parse()
	b := newBench(*short)
	if err := b.run(context.Background(), *only, *profiles); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// job is one thing that is measured.
type job struct {
	name string
	run  func(context.Context) error
}

func (b *bench) jobs() []job {
	return []job{
		{"path", b.path},
	}
}

func (b *bench) run(ctx context.Context, only, profiles string) (err error) {
	dir, err := os.MkdirTemp("", "longshore-bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := b.open(ctx, dir); err != nil {
		return err
	}
	defer closing(&err, func() error { return errors.Join(b.host.close(ctx), b.peer.close(ctx)) })
	if profiles != "" {
		return b.profiles(ctx, profiles)
	}
	for _, j := range b.jobs() {
		if only != "" && only != j.name {
			continue
		}
		start := time.Now()
		if err := j.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", j.name, err)
		}
		note("(%s: %s)", j.name, time.Since(start).Round(time.Second))
	}
	return nil
}

// open builds the guests and opens the contestants in the folder dir.
func (b *bench) open(ctx context.Context, dir string) (err error) {
	if b.guests, err = buildGuests(ctx, dir); err != nil {
		return err
	}
	orders := make([][]byte, max(b.messages[inGo], b.messages[inC]))
	for i := range orders {
		orders[i] = order(i)
	}
	if b.host, err = openHost(ctx, filepath.Join(dir, "log"), b.guests, orders); err != nil {
		return err
	}
	if b.peer, err = openPeer(ctx, filepath.Join(dir, "jetstream"), b.guests, orders); err != nil {
		return errors.Join(err, b.host.close(ctx))
	}
	return nil
}
