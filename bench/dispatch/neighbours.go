package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/longshore/longshore/bench/internal/figures"
	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/internal/hostile"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

const (
	noisyTenant = "noisy"
	quietTenant = "quiet"
	quietTopic  = "calls"
	fullTopic   = "default" // that the noisy modules publish to: it takes one message
)

// noisy names the modules of the corpus that the noisy tenant runs, each as a consumer of its own: each comes to another cap
// with every message.
func noisy() []string {
	return []string{
		"counting",                           // fuel
		"touching all memory, grown at once", // memory, and fuel
		"asking for the data",                // host calls
		"writing to stdout for ever",         // log
		"an error whose text is too long",    // result
		"publishing",                         // host calls, and the outbox
		"sending",                            // a topic that is full
	}
}

// neighbours measures what a tenant that comes to every cap does to one that doesn't.
func (b *bench) neighbours(ctx context.Context) (err error) {
	burner, err := b.host.engine.Compile(ctx, "burn", b.guests[guest{inC, burn}], limits.DefaultGuest())
	if err != nil {
		return err
	}
	loud, err := b.loud(ctx)
	if err != nil {
		return err
	}
	for _, handler := range []struct {
		name         string
		lasts, every time.Duration
		calls        int
	}{
		{"", 10 * time.Millisecond, 40 * time.Millisecond, b.calls},
		{"_1ms", time.Millisecond, 10 * time.Millisecond, 2 * b.calls},
	} {
		q := quietCalls{every: handler.every, calls: handler.calls}
		if q.payload, err = b.lasting(ctx, burner, handler.lasts); err != nil {
			return err
		}
		quiet()
		alone, err := b.called(ctx, burner, q, nil)
		if err != nil {
			return err
		}
		beside, err := b.called(ctx, burner, q, loud)
		if err != nil {
			return err
		}
		figures.Note("a handler of %s: alone p50 %v, p99 %v; beside the noisy tenant p50 %v, p99 %v", handler.lasts,
			figures.Median(alone), figures.Quantile(alone, 0.99), figures.Median(beside), figures.Quantile(beside, 0.99))
		figures.Print("noisy_neighbour_p99_ratio"+handler.name, float64(figures.Quantile(beside, 0.99))/float64(figures.Quantile(alone, 0.99)))
	}
	return nil
}

// loud deploys the modules of the noisy tenant.
func (b *bench) loud(ctx context.Context) (consumers []dispatcher.Consumer, err error) {
	one := int64(1)
	full := map[substrate.TopicName]substrate.Policy{{Tenant: noisyTenant, Topic: fullTopic}: {MaxDepth: &one}}
	if err := b.host.log.SetDefaults(full); err != nil {
		return nil, err
	}
	for i, name := range noisy() {
		m, found := hostile.Find(name)
		if !found {
			return nil, fmt.Errorf("there is no module %q", name)
		}
		module, err := b.host.engine.Compile(ctx, name, m.Wasm(), limits.DefaultGuest())
		if err != nil {
			return nil, err
		}
		consumers = append(consumers, dispatcher.Consumer{
			Name: "noisy-" + strconv.Itoa(i), Tenant: noisyTenant, Topic: "noise-" + strconv.Itoa(i), Guest: module,
			Limits: limits.DefaultGuest(), Publish: []string{"*"}, MaxAttempts: 1 << 20,
			Retry:   dispatcher.Retry{Base: time.Millisecond, Cap: time.Millisecond}, // at once again
			Breaker: dispatcher.Breaker{Percent: 100, Calls: 1 << 20},                // and for ever
		})
	}
	return consumers, nil
}

// quietCalls are the messages of the quiet tenant: one each so often, whatever became of the one before.
type quietCalls struct {
	payload []byte
	every   time.Duration
	calls   int
}

// called returns how long each of the calls took from its publish to its acknowledgement, beside other consumers.
func (b *bench) called(ctx context.Context, burner *runtime.Module, q quietCalls, others []dispatcher.Consumer) ([]time.Duration, error) {
	w := &latencies{left: q.calls, since: map[string]time.Time{}, end: make(chan error, 1)}
	for _, c := range others {
		if err := b.publishTo(ctx, w, c.Tenant, c.Topic, []byte(fullTopic), limits.ClaimMessages); err != nil {
			return nil, err
		}
	}
	publishing, stop := context.WithCancel(ctx)
	defer stop()
	failed := make(chan error, 1)
	go func() { failed <- b.publishCalls(publishing, w, q) }()
	consumers := append([]dispatcher.Consumer{{
		Name: "quiet", Tenant: quietTenant, Topic: quietTopic, Guest: burner, Limits: limits.DefaultGuest(),
	}}, others...)
	err := b.host.dispatch(ctx, dispatcher.Options{Consumers: consumers}, w)
	return w.took, errors.Join(err, <-failed)
}

// publishCalls publishes the calls, after the dispatcher has had a moment to begin.
func (b *bench) publishCalls(ctx context.Context, w *latencies, q quietCalls) error {
	t := time.NewTicker(q.every)
	defer t.Stop()
	for range q.calls {
		<-t.C
		if err := b.publishTo(ctx, w, quietTenant, quietTopic, q.payload, 1); err != nil {
			return err
		}
	}
	return nil
}

// publishTo publishes n messages and notes when.
func (b *bench) publishTo(ctx context.Context, w *latencies, tenant, topic string, payload []byte, n int) (err error) {
	messages := make([]substrate.Message, n)
	for i := range messages {
		m := &messages[i]
		*m = substrate.Message{ID: b.host.log.MintID(), Tenant: tenant, Topic: topic, Payload: payload}
		who := signedctx.Principal{Tenant: tenant, Subject: producer().Subject}
		if m.Envelope, err = b.host.context.Seal(who, dispatcher.Binding(*m)); err != nil {
			return err
		}
		w.published(m.ID)
	}
	_, err = b.host.log.Publish(ctx, messages...)
	return err
}

// latencies notes how long the messages of the quiet tenant take.
type latencies struct {
	deaf
	mu    sync.Mutex
	since map[string]time.Time
	took  []time.Duration
	left  int
	end   chan error
}

func (l *latencies) done() <-chan error { return l.end }

func (l *latencies) published(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.since[id] = time.Now()
}

// OnDelivery implements dispatcher.Observer.
func (l *latencies) OnDelivery(r dispatcher.Receipt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Tenant != quietTenant || l.left == 0 {
		return
	}
	l.took = append(l.took, time.Since(l.since[r.Message]))
	l.left--
	if r.Verdict != substrate.Ack.String() {
		l.left = 0
		l.end <- fmt.Errorf("a message of the quiet tenant: %s: %s", r.Verdict, r.Reason)
	} else if l.left == 0 {
		l.end <- nil
	}
}

// lasting returns a message on which the burner computes for about so long, at its best.
func (b *bench) lasting(ctx context.Context, burner *runtime.Module, d time.Duration) ([]byte, error) {
	const tries, first = 20, 1_000_000
	best := time.Hour
	for range tries {
		call := messaging.NewCall(messaging.CallOptions{
			Message: messaging.Message{Data: []byte(strconv.Itoa(first))}, Limits: limits.DefaultGuest(),
		})
		o := burner.Invoke(ctx, call)
		if o.Class != runtime.OK {
			return nil, fmt.Errorf("the quiet guest: %s: %w", o.Reason(), o.Err)
		}
		best = min(best, o.Wall)
	}
	return []byte(strconv.FormatInt(first*int64(d)/int64(best), 10)), nil
}
