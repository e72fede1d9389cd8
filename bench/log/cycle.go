package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/longshore/longshore/bench/internal/figures"
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

// cycleBacklog is how many messages wait in the cycle that is measured with a backlog.
const cycleBacklog = 100_000

// cycling compares the whole life of a message, durable in the log and relaxed, with JetStream as it comes: without a
// backlog, and with one.
func (p plan) cycling(ctx context.Context, dir string) (err error) {
	strict, err := openDurable(ctx, dir+"/cycle-log", p.payload)
	if err != nil {
		return err
	}
	defer figures.Closing(&err, strict.Close)
	relaxed, err := openRelaxed(ctx, dir+"/cycle-relaxed", p.payload, cycleTopic)
	if err != nil {
		return err
	}
	defer figures.Closing(&err, relaxed.Close)
	j, err := openJetStream(ctx, dir+"/cycle-jetstream", false, p.payload)
	if err != nil {
		return err
	}
	defer figures.Closing(&err, j.Close)
	contestants := []queue{strict, relaxed, j}
	if err := p.cycles(ctx, contestants, ""); err != nil || p.short {
		return err
	}
	for _, q := range contestants {
		if err := backlog(ctx, q); err != nil {
			return fmt.Errorf("cycle: backlog: %w", err)
		}
	}
	return p.cycles(ctx, contestants, "_100k")
}

// cycles measures the contestants in turn: the log, the relaxed log, JetStream. suffix names the backlog in the figures.
func (p plan) cycles(ctx context.Context, contestants []queue, suffix string) error {
	rates := make([][]float64, len(contestants))
	for round := range p.repeats {
		for i := range contestants {
			at := (round + i) % len(contestants)
			p.quiet()
			rate, err := cycle(ctx, contestants[at], p.span)
			if err != nil {
				return fmt.Errorf("cycle%s: contestant %d: %w", suffix, at, err)
			}
			rates[at] = append(rates[at], rate)
		}
	}
	figures.Note("cycle%s: log %.0f/s (%s); relaxed %.0f/s (%s); %s %.0f/s (%s)", suffix, figures.Median(rates[0]), span(rates[0]),
		figures.Median(rates[1]), span(rates[1]), onDefault, figures.Median(rates[2]), span(rates[2]))
	figures.Print("cycle_vs_"+onDefault+suffix, medianRatio(rates[0], rates[2]))
	figures.Print("cycle_relaxed_vs_"+onDefault+suffix, medianRatio(rates[1], rates[2]))
	return nil
}

// backlog publishes what waits.
func backlog(ctx context.Context, q queue) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var publishers sync.WaitGroup
	for range cyclePublishers {
		publishers.Go(func() {
			for range cycleBacklog / cyclePublishers {
				if err := q.offer(ctx); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	publishers.Wait()
	return context.Cause(ctx)
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

// cycleRun is one run. A message takes a slot from before its publish until after its acknowledgement, or that of one of the
// backlog, which comes before it.
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
			select {
			case <-c.slots:
			case <-ctx.Done(): // what is left are messages of the backlog
				return
			}
		}
	}
}
