// Command dispatch measures the whole path of a message that was published, with everything on: claim, verification, fuel, a
// clean instance, an outbox with one message, and the acknowledgement, on a log in a temporary folder whose topics are
// relaxed (answered before they are on disk). Guests in Go and in C, built from source, read an order of half a kilobyte of JSON
// and publish what it comes to. It prints lines `figure <name> <value>`; what stands beside them on stderr holds for this
// machine and this minute. Of a figure with a guest's language at its end, the worse one counts, and has no such end.
//
//	e2e_overhead_us_per_message            of a backlog's messages handled one a call by one consumer with the defaults, the
//	                                       wall time of each, less the guest's own time
//	e2e_overhead_us_per_message_batch64    the same of a consumer that takes 64 a call
//	e2e_overhead_processor_us_per_message  as the first, in time of all processors
//	e2e_vs_jetstream_extism                the messages a second of the first, divided by those of a program that does
//	                                       the same with what there is, with a new instance for each message (see peer.go)
//	…_reused, …_reused_without_limits      that program, with one instance for all; and without its bounds on time and memory
//	context_share                          sealing the order, verifying it and sealing the answer, alone, divided by a message
//	                                       from its sealing to its acknowledgement, published in batches of 500
//	noisy_neighbour_p99_ratio              latency of calls of 10 ms, one each 40 ms, beside a tenant that comes to every
//	                                       cap, divided by that without (_1ms: of 1 ms, each 10 ms)
//	ordered_keys_speedup                   1,000 keys with a message each, of which one in a hundred fails once and waits
//	                                       for a second attempt: the time until all others are handled, where the order
//	                                       is that of the topic, divided by that where it is by key
//
// The guest's own time is that of the same module, metered, on one instance that is kept for all messages, called back to back
// by one goroutine with the same messages, where what it publishes is taken and forgotten. So fuel and the ABI are the guest's; a
// clean instance, and all of log, dispatcher and contexts, are the overhead. What two processors do at the same time counts once in
// wall time.
//
// A guest that waits, or computes, has a worker meanwhile, and there is one worker less than processors: an order by key
// speeds up nothing that needs workers. What it saves is the waiting for second attempts.
//
// main.go chooses what is run; orders.go and guests.go are the work; host.go is ours, peer.go the other; path.go, neighbours.go and
// ordering.go measure; figures.go computes and prints; profile.go says where the time goes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/longshore/longshore/bench/internal/figures"
)

// bench is what is measured, and how much.
type bench struct {
	short    bool
	rounds   int
	messages map[language]int // a round
	calls    int              // of a quiet neighbour

	guests map[guest][]byte
	host   *host
	peer   *peer
}

func newBench(short bool) *bench {
	if short {
		return &bench{short: true, rounds: 3, calls: 40, messages: map[language]int{inGo: 800, inC: 3_000}}
	}
	return &bench{rounds: 5, calls: 200, messages: map[language]int{inGo: 2_000, inC: 10_000}}
}

func main() {
	short := flag.Bool("short", false, "measure less, in less than a minute")
	only := flag.String("only", "", "measure only this `job`, or profile only this guest")
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
		{"neighbours", b.neighbours},
		{"ordering", b.ordering},
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
	defer figures.Closing(&err, func() error { return errors.Join(b.host.close(ctx), b.peer.close(ctx)) })
	if profiles != "" {
		return b.profiles(ctx, profiles, only)
	}
	for _, j := range b.jobs() {
		if only != "" && only != j.name {
			continue
		}
		start := time.Now()
		if err := j.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", j.name, err)
		}
		figures.Note("(%s: %s)", j.name, time.Since(start).Round(time.Second))
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
