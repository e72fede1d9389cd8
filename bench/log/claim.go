package main

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore/longshore/bench/internal/figures"
)

const claimTopic = "claims"

// claims compares claims from the full log with claims from an empty one: both publish, claim and acknowledge as much a
// round, so that their backlogs stay what they are. suffix names the backlog in the figures.
func (p plan) claims(ctx context.Context, dir string, full *durable, suffix string) (err error) {
	empty, err := openDurable(ctx, dir+"/empty-"+suffix, p.payload)
	if err != nil {
		return err
	}
	defer figures.Closing(&err, empty.Close)
	p.quiet()
	var atEmpty, atFull []time.Duration
	for range p.claimRounds {
		for _, side := range []struct {
			log  *durable
			took *[]time.Duration
		}{{empty, &atEmpty}, {full, &atFull}} {
			if err := side.log.publish(ctx, claimTopic, claimBatch); err != nil {
				return err
			}
			took, err := side.log.timedClaim(ctx, claimTopic)
			if err != nil {
				return fmt.Errorf("claim at %s: %w", suffix, err)
			}
			*side.took = append(*side.took, took)
		}
	}
	figures.Note("claim of %d messages: p50 %s at 0, %s at %s; p99 %s and %s", claimBatch, figures.Median(atEmpty), figures.Median(atFull), suffix,
		figures.Quantile(atEmpty, 0.99), figures.Quantile(atFull, 0.99))
	figures.Print("claim_p50_ratio_"+suffix, float64(figures.Median(atFull))/float64(figures.Median(atEmpty)))
	figures.Print("claim_p99_ratio_"+suffix, float64(figures.Quantile(atFull, 0.99))/float64(figures.Quantile(atEmpty, 0.99)))
	return nil
}

// claimsAt100k measures claims with a backlog of 100,000 messages.
func (p plan) claimsAt100k(ctx context.Context, dir string) (err error) {
	full, err := openDurable(ctx, dir+"/100k", p.payload)
	if err != nil {
		return err
	}
	defer figures.Closing(&err, full.Close)
	if err := full.fill(ctx, claimTopic, 100_000); err != nil {
		return err
	}
	return p.claims(ctx, dir, full, "100k")
}

// afterAcks are the messages of which a claim is measured once a backlog is acknowledged: more than a log keeps ready in
// memory, so that claims have to look for them in the store, where what is gone may be in their way.
const (
	afterAcks       = 2_000
	afterAcksRounds = 5
)

// claimAfterAcks acknowledges all of the backlog and measures the claims of what is published next: the slowest of a
// round counts, and of the rounds the median; and the first after an Open. It closes d, whose folder is dir.
func (p plan) claimAfterAcks(ctx context.Context, d *durable, dir string) (err error) {
	defer func() { figures.Closing(&err, d.Close) }()
	if _, err := d.drain(ctx, fillBatch); err != nil {
		return err
	}
	var slowest []time.Duration
	for range afterAcksRounds {
		if err := d.fill(ctx, claimTopic, afterAcks); err != nil {
			return err
		}
		p.quiet()
		claims, err := d.drain(ctx, claimBatch)
		if err != nil {
			return err
		}
		slowest = append(slowest, figures.Quantile(claims, 1))
	}
	if err := d.fill(ctx, claimTopic, afterAcks); err != nil {
		return err
	}
	if err := d.Close(); err != nil {
		return err
	}
	again, err := openDurable(ctx, dir, p.payload)
	if err != nil {
		return err
	}
	d.Log = again.Log
	afterOpen, err := d.timedClaim(ctx, claimTopic)
	if err != nil {
		return err
	}
	figures.Note("slowest claims after all of the backlog was acknowledged: %v", slowest)
	figures.Print("claim_after_1m_acks_ms", figures.Milliseconds(figures.Median(slowest)))
	figures.Print("claim_after_1m_acks_and_open_ms", figures.Milliseconds(afterOpen))
	return nil
}
