package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

// host is Longshore as its users run it, without its listeners.
type host struct {
	log     *substrate.Log
	context *signedctx.Context
	engine  *runtime.Engine
	clean   map[guest]*runtime.Module // a clean instance for each message, as is the default
	warm    map[guest]*runtime.Module // one instance for all messages

	orders [][]byte // that are published again and again; nobody changes them
}

// producer is who publishes the orders.
func producer() signedctx.Principal {
	return signedctx.Principal{Tenant: tenant, Subject: "local:1000"}
}

// openHost opens a log in the folder dir, whose topics are relaxed: answered before they are on disk, where they are some
// milliseconds later.
func openHost(ctx context.Context, dir string, guests map[guest][]byte, orders [][]byte) (h *host, err error) {
	h = &host{clean: map[guest]*runtime.Module{}, warm: map[guest]*runtime.Module{}, orders: orders}
	if h.context, err = newContext(); err != nil {
		return nil, err
	}
	if h.log, err = substrate.Open(ctx, substrate.Options{Dir: dir}); err != nil {
		return nil, err
	}
	if h.engine, err = runtime.New(ctx, runtime.Options{}); err != nil {
		return nil, errors.Join(err, h.log.Close())
	}
	if err := h.relax(ordersTopic, pricedTopic); err != nil {
		return nil, errors.Join(err, h.close(ctx))
	}
	for g, wasm := range guests {
		if g.role != consumer && g.role != batch {
			continue
		}
		h.clean[g], err = h.engine.Compile(ctx, string(g.language), wasm, limits.DefaultGuest())
		if err != nil {
			return nil, errors.Join(err, h.close(ctx))
		}
		h.warm[g], err = h.engine.CompileFor(ctx, string(g.language), wasm, limits.DefaultGuest(), forever())
		if err != nil {
			return nil, errors.Join(err, h.close(ctx))
		}
	}
	return h, h.warmJournal(ctx)
}

// warmJournal publishes until all of the journal's files exist, as those of a log in use do.
func (h *host) warmJournal(ctx context.Context) error {
	const payload = limits.MessageBytes
	for range limits.JournalSegments * limits.JournalSegmentBytes / payload {
		m := substrate.Message{ID: h.log.MintID(), Tenant: tenant, Topic: "warm", Payload: make([]byte, payload)}
		if _, err := h.log.Publish(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// relax sets the policy of topics.
func (h *host) relax(topics ...string) error {
	unflushed := int64(limits.PolicyMaxUnflushed)
	policies := map[substrate.TopicName]substrate.Policy{}
	for _, topic := range topics {
		policies[substrate.TopicName{Tenant: tenant, Topic: topic}] = substrate.Policy{MaxUnflushed: &unflushed}
	}
	return h.log.SetDefaults(policies)
}

// newContext makes a context with keys of its own, of the default kinds.
func newContext() (*signedctx.Context, error) {
	token, err := signedctx.GenerateKey(signedctx.EdDSA)
	if err != nil {
		return nil, err
	}
	seal, err := signedctx.GenerateKey(signedctx.HS256)
	if err != nil {
		return nil, err
	}
	ring, err := signedctx.NewKeyring([]signedctx.Key{token}, []signedctx.Key{seal})
	if err != nil {
		return nil, err
	}
	return signedctx.New(ring, "bench", time.Now)
}

// forever keeps an instance for all messages.
func forever() runtime.Instances {
	return runtime.Instances{Reuse: true, MaxMessages: 1 << 60, MaxAge: 24 * time.Hour}
}

func (h *host) close(ctx context.Context) error {
	return errors.Join(h.log.Close(), h.engine.Close(ctx))
}

// publishBatch is how many orders are published at once, where only the backlog matters.
const publishBatch = 500

// publish seals n orders and publishes them.
func (h *host) publish(ctx context.Context, n int) error {
	for at := 0; at < n; at += publishBatch {
		messages := make([]substrate.Message, min(publishBatch, n-at))
		for i := range messages {
			messages[i] = message(h.log.MintID(), ordersTopic, h.orders[(at+i)%len(h.orders)])
			if err := h.seal(producer(), &messages[i]); err != nil {
				return err
			}
		}
		if _, err := h.log.Publish(ctx, messages...); err != nil {
			return err
		}
	}
	return nil
}

// message returns a message that isn't sealed yet.
func message(id, topic string, payload []byte) substrate.Message {
	return substrate.Message{ID: id, Tenant: tenant, Topic: topic, ContentType: contentType, Payload: payload}
}

func (h *host) seal(who signedctx.Principal, m *substrate.Message) (err error) {
	m.Envelope, err = h.context.Seal(who, dispatcher.Binding(*m))
	return err
}

// drain has a consumer handle n orders that were published before, and returns once they are acknowledged, with their
// answers.
func (h *host) drain(ctx context.Context, g guest, n int) error {
	c := dispatcher.Consumer{
		Name: string(g.language), Tenant: tenant, Topic: ordersTopic, Guest: h.clean[g], Limits: limits.DefaultGuest(),
		Publish: []string{pricedTopic},
	}
	if g.role == batch {
		c.Batch.Max = limits.CallMessages
	}
	return h.dispatch(ctx, dispatcher.Options{Consumers: []dispatcher.Consumer{c}}, newCounter(n))
}

// watcher is told of every delivery, and says when there is no more to wait for.
type watcher interface {
	dispatcher.Observer
	done() <-chan error
}

// dispatch runs a dispatcher until w is done.
func (h *host) dispatch(ctx context.Context, o dispatcher.Options, w watcher) error {
	o.Queue, o.Context, o.Observer = h.log, h.context, w
	d, err := dispatcher.New(o)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	err = <-w.done()
	stop()
	return errors.Join(err, <-ended)
}

// deaf hears of no events, of which there are none.
type deaf struct{}

// OnEvent implements dispatcher.Observer.
func (deaf) OnEvent(dispatcher.EventOutcome) {}

// counter waits for so many acknowledgements, each with one answer, and for nothing else.
type counter struct {
	deaf
	mu        sync.Mutex
	n         int
	acked     int
	published int
	over      bool
	end       chan error
}

func newCounter(n int) *counter { return &counter{n: n, end: make(chan error, 1)} }

func (c *counter) done() <-chan error { return c.end }

// OnDelivery implements dispatcher.Observer.
func (c *counter) OnDelivery(r dispatcher.Receipt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	c.acked++
	c.published += r.Published
	switch {
	case r.Verdict != substrate.Ack.String() || r.Reason != "":
		c.finish(fmt.Errorf("message %s: %s: %s", r.Message, r.Verdict, r.Reason))
	case c.acked == c.n && c.published != c.n:
		c.finish(fmt.Errorf("%d orders have %d answers", c.n, c.published))
	case c.acked == c.n:
		c.finish(nil)
	}
}

func (c *counter) finish(err error) {
	c.over = true
	c.end <- err
}

// own has a module handle n orders, so many a call, back to back, without a dispatcher. What it publishes is taken and
// forgotten.
func (h *host) own(ctx context.Context, module *runtime.Module, n, together int) error {
	messages := make([]messaging.Message, together)
	for done := 0; done < n; done += together {
		for i := range messages {
			messages[i] = messaging.Message{Topic: ordersTopic, ContentType: contentType, Data: h.orders[done+i]}
		}
		call := messaging.NewCall(messaging.CallOptions{
			Message: messages[0], More: messages[1:], Limits: limits.DefaultGuest(),
			Admit: func(string, messaging.Message) (messaging.Admission, *messaging.PublishError) {
				return messaging.Admission{ID: "0000000000000-0000000000000000"}, nil
			},
		})
		if o := module.Invoke(ctx, call); o.Class != runtime.OK || len(call.Outbox()) != together {
			return fmt.Errorf("a guest: %s, with %d answers: %w", o.Reason(), len(call.Outbox()), o.Err)
		}
	}
	return nil
}
