// Command guests measures what a guest pays to publish a batch of 100 messages of 1 KiB, a message, beside what it would pay to
// hand the same bytes to the host in one call for each message: a function of plain wazero's cheapest kind, a GoModuleFunction,
// that copies topic and payload, keeps them until the guest is done, and gives an id. Both are measured in turn, round after round, and the smallest time of each
// counts. It prints lines `figure <name> <value>`; what stands on stderr holds for this machine and this minute.
//
// The guests are built from source when it runs, with clang: testdata/batch.c with the SDK for C, testdata/bare.c without.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/longshore/longshore/bench/internal/figures"
)

// perBatch is how many messages a batch has, in testdata as well.
const perBatch = 100

func main() {
	short := flag.Bool("short", false, "measure less, in some seconds")
	profile := flag.String("profile", "", "write a CPU profile of batches to this `file` instead of measuring")
	flag.Parse()
	if err := run(context.Background(), *short, *profile); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, short bool, profile string) (err error) {
	b, err := newBatches(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.engine.Close(ctx)) }()
	if profile != "" {
		return b.profile(ctx, profile)
	}
	plain, err := newBare(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plain.runtime.Close(ctx)) }()
	rounds := 5000
	if short {
		rounds = 500
	}
	return measure(ctx, rounds, b, plain)
}

// measure prints the figures. What a call costs that publishes nothing isn't a matter of batches, and is taken off.
func measure(ctx context.Context, rounds int, b *batches, plain *bare) error {
	const each = 1 // batches of one call
	var empty, full, calls []time.Duration
	for range rounds {
		for _, one := range []struct {
			times *[]time.Duration
			run   func() error
		}{
			{&empty, func() error { return b.publish(ctx, 0) }},
			{&full, func() error { return b.publish(ctx, each) }},
			{&calls, func() error { return plain.call(ctx, each) }},
		} {
			start := time.Now()
			if err := one.run(); err != nil {
				return err
			}
			*one.times = append(*one.times, time.Since(start))
		}
	}
	ours, theirs := slices.Min(full)-slices.Min(empty), slices.Min(calls)
	nanos := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / (each * perBatch) }
	figures.Note("a message of a batch: %.0f ns; a bare call with its bytes: %.0f ns; a call of the handler that publishes nothing: %v",
		nanos(ours), nanos(theirs), slices.Min(empty))
	figures.Print("batch_publish_us_per_message", nanos(ours)/1e3)
	figures.Print("batch_publish_over_bare_call", float64(ours)/float64(theirs))
	return nil
}
