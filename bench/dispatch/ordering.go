package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/longshore/longshore/bench/internal/figures"
	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
)

// How the messages of the ordered topics are.
const (
	orderedKeys  = 1_000 // each with one message
	laterPercent = 1     // of the keys: their message is handled at its second attempt
)

// ordering measures what an order by key saves over an order of the whole topic: how long it takes until all messages are
// handled that are handled at their first attempt.
func (b *bench) ordering(ctx context.Context) error {
	module, err := b.host.engine.Compile(ctx, "later", b.guests[guest{inC, later}], limits.DefaultGuest())
	if err != nil {
		return err
	}
	byKey, err := b.ordered(ctx, module, "by-key", substrate.OrderKey)
	if err != nil {
		return err
	}
	byTopic, err := b.ordered(ctx, module, "by-topic", substrate.OrderTopic)
	if err != nil {
		return err
	}
	figures.Note("%d keys, of which %d wait for a second attempt: all others are handled after %v by key, %v by topic", orderedKeys,
		orderedKeys*laterPercent/100, byKey.Round(time.Millisecond), byTopic.Round(time.Millisecond))
	figures.Print("ordered_keys_speedup", float64(byTopic)/float64(byKey))
	return nil
}

// ordered handles the messages in an order, and returns how long the others took.
func (b *bench) ordered(ctx context.Context, module *runtime.Module, topic string, o substrate.Ordering) (time.Duration, error) {
	const topicTenant = tenant
	messages := make([]substrate.Message, orderedKeys)
	late := map[string]bool{}
	for i := range messages {
		m := &messages[i]
		*m = substrate.Message{ID: b.host.log.MintID(), Tenant: topicTenant, Topic: topic, Payload: []byte("now")}
		m.Options.OrderingKey = strconv.Itoa(i)
		if i%(100/laterPercent) == 0 {
			m.Payload = []byte("later")
			late[m.ID] = true
		}
		var err error
		if m.Envelope, err = b.host.context.Seal(signedctx.Principal{Tenant: topicTenant, Subject: "local:1000"}, dispatcher.Binding(*m)); err != nil {
			return 0, err
		}
	}
	if _, err := b.host.log.SetLaneMode(ctx, topicTenant, topic, substrate.LaneOn); err != nil {
		return 0, err
	}
	if err := b.host.log.SetOrdering(ctx, topicTenant, topic, "", o); err != nil {
		return 0, err
	}
	if _, err := b.host.log.Publish(ctx, messages...); err != nil {
		return 0, err
	}
	quiet()
	c := dispatcher.Consumer{Name: topic, Tenant: topicTenant, Topic: topic, Guest: module, Limits: limits.DefaultGuest()}
	w := &others{began: time.Now(), late: late, left: orderedKeys, end: make(chan error, 1)}
	err := b.host.dispatch(ctx, dispatcher.Options{Consumers: []dispatcher.Consumer{c}}, w)
	return w.after, err
}

// others waits for all messages, and notes when the last of those was handled that are not late.
type others struct {
	deaf
	began time.Time
	mu    sync.Mutex
	late  map[string]bool
	left  int
	after time.Duration
	end   chan error
}

func (o *others) done() <-chan error { return o.end }

// OnDelivery implements dispatcher.Observer.
func (o *others) OnDelivery(r dispatcher.Receipt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case r.Verdict == substrate.Retry.String() && o.late[r.Message]:
		return
	case r.Verdict != substrate.Ack.String():
		o.end <- fmt.Errorf("message %s: %s: %s", r.Message, r.Verdict, r.Reason)
		return
	}
	if !o.late[r.Message] {
		o.after = time.Since(o.began)
	}
	if o.left--; o.left == 0 {
		o.end <- nil
	}
}
