package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	cyclePublishers  = 64
	cycleWorkers     = 4
	cycleOutstanding = 4_096 // messages published and not acknowledged
)

// queue is something whose messages are published one by one, claimed 64 at a time, and acknowledged.
type queue interface {
	offer(ctx context.Context) error       // publishes one message
	work(ctx context.Context) (int, error) // waits for messages, claims and acknowledges them; returns how many
}

// cycling compares the whole life of a message, durable in the log, with JetStream as it comes.
func (p plan) cycling(ctx context.Context, dir string) (err error) {
	d, err := openDurable(ctx, dir+"/cycle-log", p.payload)
	if err != nil {
		return err
	}
	defer closing(&err, d.Close)
	j, err := openJetStream(ctx, dir+"/cycle-jetstream", false, p.payload)
	if err != nil {
		return err
	}
	defer closing(&err, j.Close)
	var ours, theirs []float64
	for range p.repeats {
		p.quiet()
		rate, err := cycle(ctx, d, p.span)
		if err != nil {
			return fmt.Errorf("cycle: log: %w", err)
		}
		ours = append(ours, rate)
		p.quiet()
		if rate, err = cycle(ctx, j, p.span); err != nil {
			return fmt.Errorf("cycle: jetstream: %w", err)
		}
		theirs = append(theirs, rate)
	}
	note("cycle: log %.0f/s (%s); jetstream_default %.0f/s (%s)", median(ours), span(ours), median(theirs), span(theirs))
	figure("cycle_vs_jetstream_default", medianRatio(ours, theirs))
	return nil
}

// cycle publishes for span, works until all is acknowledged, and returns the messages a second.
func cycle(ctx context.Context, q queue, span time.Duration) (float64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c := &cycleRun{queue: q, slots: make(chan struct{}, cycleOutstanding)}
	var publishers, workers sync.WaitGroup
	start := time.Now()
	for range cyclePublishers {
		publishers.Go(func() { c.publish(ctx, cancel, start.Add(span)) })
	}
	for range cycleWorkers {
		workers.Go(func() { c.work(ctx, cancel) })
	}
	publishers.Wait()
	for i := 0; i < cycleOutstanding && ctx.Err() == nil; i++ { // all slots are ours once all is acknowledged
		select {
		case c.slots <- struct{}{}:
		case <-ctx.Done():
		}
	}
	took := time.Since(start)
	cancel(errDone)
	workers.Wait()
	if err := context.Cause(ctx); !errors.Is(err, errDone) {
		return 0, err
	}
	return float64(c.done) / took.Seconds(), nil
}

var errDone = errors.New("all is acknowledged")

// cycleRun is one run. A message takes a slot from before its publish until after its acknowledgement.
type cycleRun struct {
	queue queue
	slots chan struct{}
	mu    sync.Mutex
	done  int // messages
}

func (c *cycleRun) publish(ctx context.Context, fail context.CancelCauseFunc, end time.Time) {
	for time.Now().Before(end) {
		select {
		case c.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		if err := c.queue.offer(ctx); err != nil {
			fail(err)
			return
		}
	}
}

func (c *cycleRun) work(ctx context.Context, fail context.CancelCauseFunc) {
	for ctx.Err() == nil {
		n, err := c.queue.work(ctx)
		if err != nil {
			fail(err) // a later cause than errDone changes nothing
			return
		}
		c.mu.Lock()
		c.done += n
		c.mu.Unlock()
		for range n {
			<-c.slots
		}
	}
}
