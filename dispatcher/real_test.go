package dispatcher

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zaptest"

	"github.com/longshore/longshore/examples/misbehaving"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

// house is the real parts: a log on disk, an engine, a keyring.
type house struct {
	t       testing.TB
	log     *substrate.Log
	engine  *runtime.Engine
	keys    []signedctx.Key // token and seal
	context *signedctx.Context
	seen    chan Receipt
}

func newHouse(tb testing.TB) *house {
	tb.Helper()
	return newHouseIn(tb, tb.TempDir())
}

func newHouseIn(tb testing.TB, dir string) *house {
	tb.Helper()
	h := &house{t: tb, seen: make(chan Receipt, 10_000)}
	var err error
	h.log, err = substrate.Open(tb.Context(), substrate.Options{Dir: dir, SegmentBytes: limits.MiB})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, h.log.Close()) })
	h.engine, err = runtime.New(tb.Context(), runtime.Options{})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, h.engine.Close(context.WithoutCancel(tb.Context()))) })
	h.context = h.contextOf(h.key(signedctx.EdDSA), h.key(signedctx.HS256))
	return h
}

func (h *house) key(a signedctx.Algorithm) signedctx.Key {
	h.t.Helper()
	k, err := signedctx.GenerateKey(a)
	require.NoError(h.t, err)
	h.keys = append(h.keys, k)
	return k
}

func (h *house) contextOf(token, seal signedctx.Key) *signedctx.Context {
	h.t.Helper()
	ring, err := signedctx.NewKeyring([]signedctx.Key{token}, []signedctx.Key{seal})
	require.NoError(h.t, err)
	c, err := signedctx.New(ring, "test-host", time.Now)
	require.NoError(h.t, err)
	return c
}

func (h *house) module(name string, wasm []byte, g limits.Guest) *runtime.Module {
	h.t.Helper()
	m, err := h.engine.Compile(h.t.Context(), name, wasm, g)
	require.NoError(h.t, err)
	return m
}

// OnDelivery makes house an Observer.
func (h *house) OnDelivery(r Receipt) { h.seen <- r }

// OnEvent makes house an Observer.
func (h *house) OnEvent(EventOutcome) {}

func (h *house) publish(topicName string, n int) {
	h.t.Helper()
	for range n {
		m := substrate.Message{ID: h.log.MintID(), Tenant: tenant, Topic: topicName, Payload: []byte("payload")}
		_, err := h.log.Publish(h.t.Context(), sealed(h.t, h.context, m))
		require.NoError(h.t, err)
	}
}

// run starts a dispatcher; the function that it returns stops it.
func (h *house) run(q Queue, consumers ...Consumer) (stop func()) {
	h.t.Helper()
	d, err := New(Options{
		Queue: q, Context: h.context, Consumers: consumers, Observer: h, Logger: zaptest.NewLogger(h.t),
		Grace: 100 * time.Millisecond,
	})
	require.NoError(h.t, err)
	return h.runs(d)
}

// runs starts a dispatcher that was made; the function that it returns stops it.
func (h *house) runs(d *Dispatcher) (stop func()) {
	h.t.Helper()
	ctx, cancel := context.WithCancel(h.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	return func() {
		cancel()
		require.NoError(h.t, <-ended)
	}
}

// next waits for a receipt that is wanted.
func (h *house) next(wanted func(Receipt) bool) Receipt {
	h.t.Helper()
	patience := time.After(30 * time.Second)
	for {
		select {
		case r := <-h.seen:
			if wanted(r) {
				return r
			}
		case <-patience:
			require.FailNow(h.t, "the receipt didn't come")
		}
	}
}

func (h *house) stats(topicName string) substrate.Stats {
	h.t.Helper()
	s, _ := h.log.Stats(tenant, topicName)
	return s
}

func realConsumer(name, topicName string, g Guest) Consumer {
	c := consumerOf(name, g)
	c.Topic = topicName
	c.MaxAttempts = 2
	c.Retry = Retry{Base: time.Millisecond, Cap: time.Millisecond}
	return c
}

func TestRealParts(t *testing.T) {
	t.Run("EachMisbehavingModuleDeadLettersWithItsReasonWhileAnotherGoesOn", func(t *testing.T) {
		h := newHouse(t)
		good := realConsumer("good", "good", h.module("good", relay(), limits.DefaultGuest()))
		good.Concurrency = 4
		consumers := []Consumer{good}
		modules := map[string]misbehaving.Module{}
		for _, m := range misbehaving.All() {
			modules[m.Name] = m
			if m.Limit != limits.NameCallDuration {
				m.Limits.CallDuration = 20 * time.Second // time is not what ends it, on a machine however busy
			}
			c := realConsumer(m.Name, "bad/"+m.Name, h.module(m.Name, m.Wasm, m.Limits))
			c.Limits = m.Limits
			consumers = append(consumers, c)
			h.publish(c.Topic, 1)
		}
		h.publish("good", 50)
		stop := h.run(h.log, consumers...)
		defer stop()
		acked, dead := 0, 0
		for acked < 50 || dead < len(modules) {
			switch r := h.next(func(Receipt) bool { return true }); {
			case r.Consumer == "good":
				require.Equal(t, "ack", r.Verdict, r.Reason)
				require.Equal(t, 1, r.Published)
				acked++
			case r.Verdict == "bury":
				require.Equal(t, modules[r.Consumer].Reason, r.Reason)
				dead++
			}
		}
		for name, m := range modules {
			letters, err := h.log.DeadLetters(t.Context(), tenant, "bad/"+name, substrate.DeadLetterFilter{})
			require.NoError(t, err)
			require.Len(t, letters, 1, name)
			require.Equal(t, m.Reason, letters[0].Reason)
			require.Equal(t, 2, letters[0].Attempts)
			var last Receipt
			require.NoError(t, json.Unmarshal(letters[0].Receipt, &last))
			require.Equal(t, 2, last.Attempt)
			require.Len(t, last.Module, 64)
		}
		require.Zero(t, h.stats(misbehaving.Topic).Published, "who published and then failed has published nothing")
		require.EqualValues(t, 50, h.stats(relayTopic).Published, "who succeeded has published once")
	})
	t.Run("WhatAGuestPublishesIsVerifiedByTheNextConsumer", func(t *testing.T) {
		h := newHouse(t)
		first := realConsumer("first", "a", h.module("first", relay(), limits.DefaultGuest()))
		second := realConsumer("second", relayTopic, ends(ok()))
		h.publish("a", 1)
		stop := h.run(h.log, first, second)
		r := h.next(func(r Receipt) bool { return r.Consumer == "second" })
		stop()
		require.Equal(t, "ack", r.Verdict, r.Reason)
	})
	t.Run("AStaleHoldersSettleChangesNothing", func(t *testing.T) {
		h := newHouse(t)
		module := h.module("relay", relay(), limits.DefaultGuest())
		var calls atomic.Int64
		began, secondAcked := make(chan struct{}), make(chan struct{})
		letGo := sync.OnceFunc(func() { close(secondAcked) })
		slow := guestFunc(func(ctx context.Context, call *messaging.Call) runtime.Outcome {
			out := module.Invoke(ctx, call)
			if calls.Add(1) == 1 {
				close(began)
				<-secondAcked
			}
			return out
		})
		c := realConsumer("c", topic, slow)
		c.Lease, c.Limits.CallDuration = time.Second, 999*time.Millisecond
		c.Concurrency = 1 // who has not settled claims nothing more
		h.publish(topic, 1)
		stopStale := h.run(liar{h.log}, c)
		defer stopStale()
		<-began
		c.Name = "second"
		stop := h.run(h.log, c)
		defer stop()
		defer letGo()
		first := h.next(func(r Receipt) bool { return r.Verdict == "ack" })
		require.Equal(t, 2, first.Attempt)
		letGo()
		stale := h.next(func(r Receipt) bool { return r.Verdict == "discard" })
		require.Equal(t, "lease-lost", stale.Reason)
		require.Equal(t, 1, stale.Attempt)
		s := h.stats(topic)
		require.EqualValues(t, 1, s.Acked)
		require.Zero(t, s.Backlog()+s.DeadLetters)
		require.EqualValues(t, 1, h.stats(relayTopic).Published, "the stale holder published nothing")
	})
	t.Run("AForgedContextIsBuriedAndAnUnknownKeyIsNot", func(t *testing.T) {
		h := newHouse(t)
		token, seal := h.key(signedctx.EdDSA), h.key(signedctx.HS256)
		token.ID, seal.ID = h.keys[0].ID, h.keys[1].ID
		forger, stranger := h.contextOf(token, seal), h.contextOf(h.key(signedctx.EdDSA), h.key(signedctx.HS256))
		for topicName, who := range map[string]*signedctx.Context{"forged": forger, "unknown": stranger} {
			m := substrate.Message{ID: h.log.MintID(), Tenant: tenant, Topic: topicName, Payload: []byte("payload")}
			_, err := h.log.Publish(t.Context(), sealed(t, who, m))
			require.NoError(t, err)
		}
		stop := h.run(h.log, realConsumer("f", "forged", ends(ok())), realConsumer("u", "unknown", ends(ok())))
		defer stop()
		reasons := map[string]string{}
		for len(reasons) < 2 {
			r := h.next(func(Receipt) bool { return true })
			reasons[r.Consumer] = r.Verdict + " " + r.Reason
		}
		require.Equal(t, map[string]string{"f": "bury context-forged", "u": "release context-unknown-key"}, reasons)
		require.EqualValues(t, 1, h.stats("unknown").Ready+h.stats("unknown").Delayed)
	})
	t.Run("AGuestThatSpinsIsCutAtTheEndOfTheGraceAndNotCharged", func(t *testing.T) {
		h := newHouse(t)
		var spinning misbehaving.Module
		for _, m := range misbehaving.All() {
			if m.Name == "stall" {
				spinning = m
			}
		}
		spinning.Limits.CallDuration = 20 * time.Second
		module := h.module("stall", spinning.Wasm, spinning.Limits)
		began := make(chan struct{})
		c := realConsumer("c", topic, guestFunc(func(ctx context.Context, call *messaging.Call) runtime.Outcome {
			close(began)
			return module.Invoke(ctx, call)
		}))
		c.Limits = spinning.Limits
		h.publish(topic, 1)
		stop := h.run(h.log, c)
		<-began
		stopping := time.Now()
		stop()
		require.Less(t, time.Since(stopping), 10*time.Second)
		r := h.next(func(Receipt) bool { return true })
		require.Equal(t, "release", r.Verdict)
		require.Equal(t, "interrupted", r.Reason)
		again, err := h.log.Claim(t.Context(), substrate.ClaimRequest{
			Tenant: tenant, Topic: topic, MaxMessages: 1, MaxBytes: 1, Lease: time.Second, MaxAttempts: 1,
		})
		require.NoError(t, err)
		require.Len(t, again.Deliveries, 1)
		require.Equal(t, 1, again.Deliveries[0].Attempt)
	})
	t.Run("AFullTopicDownstreamHoldsTheConsumerAndChargesNothing", func(t *testing.T) {
		h := newHouse(t)
		depth := int64(2)
		require.NoError(t, h.log.SetPolicy(t.Context(), tenant, relayTopic, substrate.Policy{MaxDepth: &depth}))
		c := realConsumer("c", topic, h.module("relay", relay(), limits.DefaultGuest()))
		c.MaxAttempts = 1
		h.publish(topic, 5)
		stop := h.run(h.log, c)
		defer stop()
		for range 3 { // the relay has no memory for the text of the error, and traps
			r := h.next(func(r Receipt) bool { return r.Verdict == "release" })
			require.Equal(t, "outbox-refused: depth-exceeded", r.Reason)
		}
		require.Eventually(t, func() bool { return h.stats(topic).Acked == 2 }, 10*time.Second, time.Millisecond, "the two that fit")
		for h.stats(relayTopic).Acked < 5 {
			require.NoError(t, h.log.WaitReady(t.Context(), tenant, relayTopic, ""))
			got, err := h.log.Claim(t.Context(), substrate.ClaimRequest{
				Tenant: tenant, Topic: relayTopic, MaxMessages: 2, MaxBytes: 100, Lease: time.Minute, MaxAttempts: 1,
			})
			require.NoError(t, err)
			for _, one := range got.Deliveries {
				require.NoError(t, h.log.Settle(t.Context(), []substrate.Settlement{{Lease: one.Lease, Verdict: substrate.Ack}}, nil))
			}
		}
		require.Zero(t, h.stats(topic).DeadLetters, "with one attempt, none was charged")
		require.EqualValues(t, 5, h.stats(topic).Acked)
	})
	t.Run("ReservationsAreGivenBackWhenTheCallFails", func(t *testing.T) {
		h := newHouse(t)
		depth := int64(1)
		require.NoError(t, h.log.SetPolicy(t.Context(), tenant, misbehaving.Topic, substrate.Policy{MaxDepth: &depth}))
		var wasm []byte
		for _, m := range misbehaving.All() {
			if m.Name == "publish-then-trap" {
				wasm = m.Wasm
			}
		}
		c := realConsumer("c", topic, h.module("publish-then-trap", wasm, limits.DefaultGuest()))
		h.publish(topic, 1)
		stop := h.run(h.log, c)
		h.next(func(r Receipt) bool { return r.Verdict == "bury" })
		stop()
		r, err := h.log.Reserve(tenant, misbehaving.Topic, 1)
		require.NoError(t, err, "the room is free again")
		r.Release()
	})
}

// liar is a log that says it extends leases and doesn't, like one that a network lost on the way.
type liar struct{ *substrate.Log }

func (liar) Extend(_ context.Context, _ substrate.Lease, d time.Duration) (time.Time, error) {
	return time.Now().Add(d), nil
}
