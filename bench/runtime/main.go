// Command runtime measures what Longshore's bounds cost a guest, in one run: beside plain wazero, which counts and bounds
// nothing, and beside wasmtime, which has fuel and a pool of instances of its own. What is compared is measured in turn,
// round after round, and the smallest time of each counts. It prints lines `figure <name> <value>`; what stands beside
// them on stderr holds for this machine and this minute.
//
// The guests are built from source when it runs, with clang and the go command. wasmtime is the only reason for cgo.
//
// main.go chooses what is run; workloads.go and guests.go are what guests do; own.go, plain.go, wasmtime.go and pooled.go
// run them; fuel.go, clean.go, collect.go, stall.go and host.go measure one thing each; figures.go computes and prints; profile.go
// says where the time goes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/longshore/longshore/bench/internal/figures"
	"github.com/longshore/longshore/runtime"
)

// bench is what is measured, and how much.
type bench struct {
	short         bool
	rounds        int           // how often each thing is measured
	calls         int           // messages of some microseconds that are timed together
	collects      int           // garbage collections beside each guest
	neighbourTime time.Duration // of handlers beside each guest

	guests map[string][]byte
	own    *own // a clean instance for every message
	kept   *own // one instance for all messages
	plain  *plain
}

func newBench(short bool) *bench {
	if short {
		return &bench{short: true, rounds: 3, calls: 50, collects: 10, neighbourTime: 300 * time.Millisecond}
	}
	return &bench{rounds: 9, calls: 500, collects: 50, neighbourTime: time.Second}
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
		{"same-fuel", b.sameFuel},
		{"fuel", b.fuel},
		{"clean", b.clean},
		{"host-calls", b.hostCalls},
		{"collections", b.collections},
		{"deadlines", b.deadlines},
		{"neighbours", b.neighbours},
		{"deploy", b.deploy},
	}
}

func (b *bench) run(ctx context.Context, only, profiles string) (err error) {
	if err := b.open(ctx); err != nil {
		return err
	}
	defer figures.Closing(&err, func() error { return b.close(ctx) })
	if profiles != "" {
		return b.profiles(ctx, profiles)
	}
	for _, j := range b.jobs() {
		if only != "" && only != j.name {
			continue
		}
		took, err := timed(func() error { return j.run(ctx) })
		if err != nil {
			return fmt.Errorf("%s: %w", j.name, err)
		}
		figures.Note("(%s: %s)", j.name, took.Round(time.Second))
	}
	return nil
}

// open builds the guests, and compiles them for ours and for plain wazero.
func (b *bench) open(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "longshore-bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if b.guests, err = buildGuests(ctx, dir); err != nil {
		return err
	}
	if b.own, err = newOwn(ctx, runtime.Options{}, runtime.Instances{}, b.guests); err != nil {
		return err
	}
	if b.kept, err = newOwn(ctx, runtime.Options{}, forever(), b.computing()); err != nil {
		return errors.Join(err, b.own.close(ctx))
	}
	if b.plain, err = newPlain(ctx, b.computing()); err != nil {
		return errors.Join(err, b.kept.close(ctx), b.own.close(ctx))
	}
	return nil
}

func (b *bench) close(ctx context.Context) error {
	return errors.Join(b.own.close(ctx), b.kept.close(ctx), b.plain.close(ctx))
}

// computing returns the guests whose work ends.
func (b *bench) computing() map[string][]byte {
	return map[string][]byte{guestC: b.guests[guestC], guestGo: b.guests[guestGo]}
}
