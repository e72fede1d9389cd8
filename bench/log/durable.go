package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore/longshore/substrate"
)

const (
	tenant        = "bench"
	cycleTopic    = "cycle"
	claimBatch    = 64 // messages a claim
	leaseDuration = 5 * time.Minute
	fillBatch     = 1_000 // messages a publish, where only the backlog matters
)

// durable is the log, reached as its users reach it.
type durable struct {
	*substrate.Log
	payload []byte
}

// openRelaxed opens a log all of whose publishes and acknowledgements to topics are answered before they are on disk, where
// they are some milliseconds later.
func openRelaxed(ctx context.Context, dir string, payload []byte, topics ...string) (*durable, error) {
	d, err := openDurable(ctx, dir, payload)
	if err != nil {
		return nil, err
	}
	unflushed := int64(1_000_000)
	policies := map[substrate.TopicName]substrate.Policy{}
	for _, topic := range topics {
		policies[substrate.TopicName{Tenant: tenant, Topic: topic}] = substrate.Policy{MaxUnflushed: &unflushed}
	}
	return d, d.SetDefaults(policies)
}

func openDurable(ctx context.Context, dir string, payload []byte) (*durable, error) {
	l, err := substrate.Open(ctx, substrate.Options{Dir: dir})
	if err != nil {
		return nil, err
	}
	return &durable{l, payload}, nil
}

// publish implements target.
func (d *durable) publish(ctx context.Context, topic string, n int) error {
	msgs := make([]substrate.Message, n)
	for i := range msgs {
		msgs[i] = substrate.Message{ID: d.MintID(), Tenant: tenant, Topic: topic, Payload: d.payload}
	}
	_, err := d.Publish(ctx, msgs...)
	return err
}

// fill publishes a backlog of n messages.
func (d *durable) fill(ctx context.Context, topic string, n int) error {
	for published := 0; published < n; published += fillBatch {
		if err := d.publish(ctx, topic, min(fillBatch, n-published)); err != nil {
			return fmt.Errorf("backlog of %s: %w", topic, err)
		}
	}
	return nil
}

// warm publishes until all of the journal exists, as that of a log in use does.
func (d *durable) warm(ctx context.Context) error {
	return d.fill(ctx, "warm", rawFileBytes/payloadBytes)
}

func (d *durable) claim(ctx context.Context, topic string, most int) ([]substrate.Delivery, error) {
	r, err := d.Claim(ctx, substrate.ClaimRequest{
		Tenant: tenant, Topic: topic, MaxMessages: most, MaxBytes: 4 << 20, Lease: leaseDuration, MaxAttempts: 5,
	})
	return r.Deliveries, err
}

func (d *durable) acknowledge(ctx context.Context, deliveries []substrate.Delivery) error {
	settlements := make([]substrate.Settlement, len(deliveries))
	for i := range deliveries {
		settlements[i] = substrate.Settlement{Lease: deliveries[i].Lease, Verdict: substrate.Ack}
	}
	return d.Settle(ctx, settlements, nil)
}

// timedClaim claims what must be there, acknowledges it, and returns how long the claim took.
func (d *durable) timedClaim(ctx context.Context, topic string) (time.Duration, error) {
	start := time.Now()
	deliveries, err := d.claim(ctx, topic, claimBatch)
	took := time.Since(start)
	if err != nil {
		return 0, err
	}
	if len(deliveries) == 0 {
		return 0, errors.New("a claim found nothing")
	}
	return took, d.acknowledge(ctx, deliveries)
}

// drain claims and acknowledges all of the claims' topic, and returns how long each claim took.
func (d *durable) drain(ctx context.Context, most int) (claims []time.Duration, err error) {
	for {
		start := time.Now()
		deliveries, err := d.claim(ctx, claimTopic, most)
		if err != nil || len(deliveries) == 0 {
			return claims, err
		}
		claims = append(claims, time.Since(start))
		if err := d.acknowledge(ctx, deliveries); err != nil {
			return claims, err
		}
	}
}

// offer implements queue.
func (d *durable) offer(ctx context.Context) error { return d.publish(ctx, cycleTopic, 1) }

// work implements queue. When it returns, the acknowledgements are durable.
func (d *durable) work(ctx context.Context) (int, error) {
	if err := d.WaitReady(ctx, tenant, cycleTopic, ""); err != nil {
		return 0, err
	}
	deliveries, err := d.claim(ctx, cycleTopic, claimBatch)
	if err != nil {
		return 0, err
	}
	return len(deliveries), d.acknowledge(ctx, deliveries)
}
