package main

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore/longshore/bench/internal/figures"
	"github.com/longshore/longshore/substrate"
)

const (
	delayTopic    = "delayed"
	delayMessages = 2_000
	delayBatch    = 100
	delayFirst    = 500 * time.Millisecond
	delaySpread   = time.Second // from the first message of a batch to the last
)

// delays measures how long after its due time a delayed message is in a claimer's hands. Due times count from before the
// publish, so the lag includes what the publish took.
func (p plan) delays(ctx context.Context, dir string) (err error) {
	d, err := openDurable(ctx, dir+"/delayed", p.payload)
	if err != nil {
		return err
	}
	defer figures.Closing(&err, d.Close)
	due := make(map[string]time.Time, delayMessages)
	for len(due) < delayMessages {
		msgs := make([]substrate.Message, delayBatch)
		for i := range msgs {
			delay := delayFirst + delaySpread*time.Duration(i)/delayBatch
			msgs[i] = substrate.Message{
				ID: d.MintID(), Tenant: tenant, Topic: delayTopic, Payload: p.payload,
				Options: substrate.MessageOptions{Delay: delay},
			}
			due[msgs[i].ID] = time.Now().Add(delay)
		}
		if _, err := d.Publish(ctx, msgs...); err != nil {
			return err
		}
	}
	lags := make([]time.Duration, 0, delayMessages)
	for len(lags) < delayMessages {
		if err := d.WaitReady(ctx, tenant, delayTopic, ""); err != nil {
			return fmt.Errorf("delayed: %w", err)
		}
		deliveries, err := d.claim(ctx, delayTopic, claimBatch)
		if err != nil {
			return err
		}
		for i := range deliveries {
			lags = append(lags, time.Since(due[deliveries[i].Message.ID]))
		}
		if err := d.acknowledge(ctx, deliveries); err != nil {
			return err
		}
	}
	figures.Note("delayed messages: lag p50 %s, p99 %s", figures.Median(lags), figures.Quantile(lags, 0.99))
	figures.Print("delay_lag_p99_ms", figures.Milliseconds(figures.Quantile(lags, 0.99)))
	return nil
}
