// Command log measures the log's promises about cost, as ratios within one run: absolute figures of a machine say little.
// It prints lines `figure <name> <value>`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/longshore/longshore/substrate"
)

const (
	tenant       = "bench"
	topic        = "claims"
	batch        = 64 // messages a claim
	payloadBytes = 1024
)

func main() {
	rounds := flag.Int("rounds", 1_000, "claims to measure at each backlog")
	backlog := flag.Int("backlog", 100_000, "messages of the large backlog")
	flag.Parse()
	if err := run(context.Background(), *rounds, *backlog); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures claims on two logs in turn: one whose backlog is what is about to be claimed, and one with a large backlog
// beside it. Both publish, claim and acknowledge as much a round, so that their backlogs stay what they are.
func run(ctx context.Context, rounds, backlog int) (err error) {
	dir, err := os.MkdirTemp("", "longshore-bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	empty, err := open(ctx, dir+"/empty", 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, empty.Close()) }()
	full, err := open(ctx, dir+"/full", backlog)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, full.Close()) }()

	var atEmpty, atFull []time.Duration
	for range rounds {
		d, err := round(ctx, empty)
		if err != nil {
			return err
		}
		atEmpty = append(atEmpty, d)
		if d, err = round(ctx, full); err != nil {
			return err
		}
		atFull = append(atFull, d)
	}
	fmt.Fprintf(os.Stderr, "claim of %d messages of %d bytes: p50 %s at 0, %s at %d; p99 %s and %s\n", batch, payloadBytes,
		quantile(atEmpty, 0.5), quantile(atFull, 0.5), backlog, quantile(atEmpty, 0.99), quantile(atFull, 0.99))
	name := "100k"
	if backlog != 100_000 {
		name = fmt.Sprint(backlog)
	}
	fmt.Printf("figure claim_p50_ratio_%s %.2f\n", name, ratio(atFull, atEmpty, 0.5))
	fmt.Printf("figure claim_p99_ratio_%s %.2f\n", name, ratio(atFull, atEmpty, 0.99))
	return nil
}

func open(ctx context.Context, dir string, backlog int) (*substrate.Log, error) {
	l, err := substrate.Open(ctx, substrate.Options{Dir: dir})
	if err != nil {
		return nil, err
	}
	for published := 0; published < backlog; published += 1_000 {
		if err := publish(ctx, l, min(1_000, backlog-published)); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	return l, nil
}

func publish(ctx context.Context, l *substrate.Log, n int) error {
	msgs := make([]substrate.Message, n)
	for i := range msgs {
		msgs[i] = substrate.Message{ID: l.MintID(), Tenant: tenant, Topic: topic, Payload: make([]byte, payloadBytes)}
	}
	_, err := l.Publish(ctx, msgs...)
	return err
}

// round publishes, claims and acknowledges one batch, and returns how long the claim took.
func round(ctx context.Context, l *substrate.Log) (time.Duration, error) {
	if err := publish(ctx, l, batch); err != nil {
		return 0, err
	}
	start := time.Now()
	claimed, err := l.Claim(ctx, substrate.ClaimRequest{
		Tenant: tenant, Topic: topic, MaxMessages: batch, MaxBytes: 1 << 20, Lease: time.Minute, MaxAttempts: 5,
	})
	took := time.Since(start)
	if err != nil {
		return 0, err
	}
	if len(claimed.Deliveries) == 0 {
		return 0, errors.New("a claim found nothing")
	}
	settlements := make([]substrate.Settlement, len(claimed.Deliveries))
	for i, d := range claimed.Deliveries {
		settlements[i] = substrate.Settlement{Lease: d.Lease, Verdict: substrate.Ack}
	}
	return took, l.Settle(ctx, settlements, nil)
}

func quantile(d []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(d))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func ratio(a, b []time.Duration, q float64) float64 {
	return float64(quantile(a, q)) / float64(quantile(b, q))
}
