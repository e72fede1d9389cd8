package main

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore/longshore/bench/internal/figures"
	"github.com/longshore/longshore/substrate"
)

// parkedKey is the ordering key of the messages that wait for the first of them.
const parkedKey = "held"

// besideParked compares claims beside a million messages that are parked behind a held ordering key with claims beside
// none, in lanes that are ordered by key; and measures the memory that such messages take.
func (p plan) besideParked(ctx context.Context, dir string) (err error) {
	full, err := openOrdered(ctx, dir+"/parked", p.payload)
	if err != nil {
		return err
	}
	defer figures.Closing(&err, full.Close)
	empty, err := openOrdered(ctx, dir+"/free", p.payload)
	if err != nil {
		return err
	}
	defer figures.Closing(&err, empty.Close)
	if err := p.park(ctx, full); err != nil {
		return err
	}
	p.quiet()
	var beside, free []time.Duration
	for range p.claimRounds {
		for _, side := range []struct {
			log  *durable
			took *[]time.Duration
		}{{empty, &free}, {full, &beside}} {
			if err := side.log.publish(ctx, claimTopic, claimBatch); err != nil {
				return err
			}
			took, err := side.log.timedClaim(ctx, claimTopic)
			if err != nil {
				return fmt.Errorf("claim beside parked messages: %w", err)
			}
			*side.took = append(*side.took, took)
		}
	}
	figures.Note("claim of %d messages: p50 %s beside none, %s beside %d parked", claimBatch, figures.Median(free), figures.Median(beside), million)
	figures.Print("claim_beside_parked_ratio", float64(figures.Median(beside))/float64(figures.Median(free)))
	return nil
}

func openOrdered(ctx context.Context, dir string, payload []byte) (*durable, error) {
	d, err := openDurable(ctx, dir, payload)
	if err != nil {
		return nil, err
	}
	return d, d.SetOrdering(ctx, tenant, claimTopic, "", substrate.OrderKey)
}

// park publishes a million messages of one key, takes the first, and claims until all the others are parked.
func (p plan) park(ctx context.Context, d *durable) error {
	before := restingHeapBytes()
	for published := 0; published <= million; published += fillBatch {
		msgs := make([]substrate.Message, fillBatch)
		for i := range msgs {
			msgs[i] = substrate.Message{
				ID: d.MintID(), Tenant: tenant, Topic: claimTopic, Payload: d.payload[:1], // only their number matters
				Options: substrate.MessageOptions{OrderingKey: parkedKey},
			}
		}
		if _, err := d.Publish(ctx, msgs...); err != nil {
			return err
		}
	}
	held, err := d.claim(ctx, claimTopic, 1)
	if err != nil || len(held) != 1 {
		return fmt.Errorf("the first of the key: %d messages, %w", len(held), err)
	}
	for {
		if _, err := d.claim(ctx, claimTopic, claimBatch); err != nil {
			return err
		}
		s, _ := d.Stats(tenant, claimTopic)
		if s.Ready == 0 {
			figures.Print("bytes_per_parked_message", (restingHeapBytes()-before)/float64(s.Parked))
			return nil
		}
	}
}
