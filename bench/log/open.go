package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/longshore/longshore/bench/internal/figures"
)

const million = 1_000_000

// atMillion measures a backlog of 1,000,000 messages: the memory it takes, claims from it, an Open after a crash, and a
// claim after all of it was acknowledged.
func (p plan) atMillion(ctx context.Context, dir string) (err error) {
	home := dir + "/1m"
	d, err := openDurable(ctx, home, p.payload)
	if err != nil {
		return err
	}
	p.quiet()
	before, start := restingHeapBytes(), time.Now()
	if err := d.fill(ctx, claimTopic, million); err != nil {
		figures.Closing(&err, d.Close)
		return err
	}
	figures.Note("backlog of %d messages: published in %s", million, time.Since(start).Round(time.Millisecond))
	figures.Print("bytes_per_backlog_message", (restingHeapBytes()-before)/million)
	if err := p.claims(ctx, dir, d, "1m"); err != nil {
		figures.Closing(&err, d.Close)
		return err
	}
	if err := p.openCopy(ctx, home, dir+"/crashed"); err != nil {
		figures.Closing(&err, d.Close)
		return err
	}
	return p.claimAfterAcks(ctx, d, home)
}

// openCopy opens copies of a log that was not closed, which is what a crash leaves, and prints the median time.
func (p plan) openCopy(ctx context.Context, from, to string) error {
	var times []time.Duration
	for range p.opens {
		figures.Quiet(time.Second, time.Minute) // files that are still written would not fit together
		if err := copyTree(from, to); err != nil {
			return err
		}
		start := time.Now()
		d, err := openDurable(ctx, to, p.payload)
		if err != nil {
			return err
		}
		times = append(times, time.Since(start))
		s, _ := d.Stats(tenant, claimTopic)
		if err := d.Close(); err != nil {
			return err
		}
		if s.Ready != million {
			return fmt.Errorf("an opened copy has %d messages: want %d", s.Ready, million)
		}
		if err := os.RemoveAll(to); err != nil {
			return err
		}
	}
	figures.Note("open of a copy: %v", times)
	figures.Print("open_1m_s", figures.Median(times).Seconds())
	return nil
}

// copyTree copies the files under from. Their locks stay with their holders.
func copyTree(from, to string) error { return os.CopyFS(to, os.DirFS(from)) }
