package dispatcher

import (
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

// requireChild checks that a message says, under its seal, that another led to it.
func requireChild(t *testing.T, c *signedctx.Context, child, parent substrate.Message) {
	t.Helper()
	require.Equal(t, parent.ID, child.Parent)
	require.Equal(t, parent.Hops+1, child.Hops)
	_, err := c.Verify(child.Envelope, Binding(child))
	require.NoError(t, err)
	forged := child
	forged.Hops--
	_, err = c.Verify(forged.Envelope, Binding(forged))
	require.Error(t, err, "hops are not sealed")
	forged = child
	forged.Parent = ""
	_, err = c.Verify(forged.Envelope, Binding(forged))
	require.Error(t, err, "the parent is not sealed")
}

func TestCausation(t *testing.T) {
	t.Run("WhatIsInAnOutboxIsAChild", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			deliverOnce(r, consumerOf("c", ends(ok())))
			require.Len(t, r.queue.published, 1)
			m := r.queue.published[0]
			requireChild(t, r.context, m, substrate.Message{ID: r.queue.acked[0]})
		})
	})
	t.Run("AnEventIsAChild", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, watched(ends(ok())))
			m := r.message(topic, "payload")
			m.Hops = 2
			m = sealed(t, r.context, m)
			r.queue.publish(m)
			r.runFor(time.Second)
			requireChild(t, r.context, r.eventsTo("audit/pickup")[0], m)
			requireChild(t, r.context, r.eventsTo("audit/success")[0], m)
		})
	})
	t.Run("OfSeveralParentsTheLongestChainCounts", func(t *testing.T) {
		o := newOutbox(t, newMemQueue(), substrate.Message{}, "*")
		o.parents = []substrate.Message{{ID: "a", Hops: 3}, {ID: "b", Hops: limits.Hops}}
		_, refused := o.admit("out", messaging.Message{})
		require.NotNil(t, refused, "it has both as its parents")
		require.Equal(t, messaging.HopLimit, refused.Case)
		_, refused = o.admit("out", messaging.Message{Options: &messaging.PublishOptions{Cause: "a"}})
		require.Nil(t, refused)
	})
	t.Run("AConsumerThatPublishesToItsOwnTopicEndsAfterSixteenHops", func(t *testing.T) {
		h := newHouse(t)
		c := realConsumer("loop", relayTopic, h.module("loop", relay(), limits.DefaultGuest()))
		stop := h.run(h.log, c)
		defer stop()
		h.publish(relayTopic, 1)
		for hops := range limits.Hops {
			r := h.next(func(r Receipt) bool { return r.Verdict == "ack" }) // the last one's may come before those of earlier ones
			require.Equal(t, 1, r.Published, "hop %d", hops)
		}
		dead := h.next(func(r Receipt) bool { return r.Verdict == "bury" })
		require.Equal(t, "guest-trap: unreachable", dead.Reason, "which is what this guest makes of a publish that is refused")
		require.Equal(t, uint64(limits.Hops)+1, h.stats(relayTopic).Published)
		require.Zero(t, h.stats(relayTopic).Backlog())
	})
	t.Run("TwoConsumersThatTellEachOtherOfTheirEventsEnd", func(t *testing.T) {
		h := newHouse(t)
		first, second := consumerOf("first", ends(ok())), consumerOf("second", ends(ok()))
		first.Topic, first.Events.Success = "one", "two"
		second.Topic, second.Events.Success = "two", "one"
		stop := h.run(h.log, first, second)
		h.publish("one", 1)
		h.next(func(r Receipt) bool { return r.Consumer == "second" })
		stop()
		require.EqualValues(t, 1, h.stats("one").Published)
		require.EqualValues(t, 1, h.stats("two").Published)
	})
}

// TestEveryFieldOfAMessageIsBound finds the fields by reflection, so that one that is added and not sealed fails here.
func TestEveryFieldOfAMessageIsBound(t *testing.T) {
	m := substrate.Message{
		ID: "1796039999999-0000000000000001", Tenant: tenant, Topic: topic, ContentType: "text/plain", Metadata: []substrate.Pair{{Key: "k", Value: "v"}},
		Payload: []byte("payload"), Parent: "1796039999999-0000000000000000", Hops: 3,
		Options: substrate.MessageOptions{
			Delay: time.Minute, TTL: time.Hour, Deadline: time.UnixMilli(1_900_000_000_000), IdempotencyKey: "key", Principal: "local:1000",
			Priority: 3, OrderingKey: "order", Fence: substrate.Fence{Key: "f", Token: 7}, RequiredFeatures: []string{"gzip"}, Target: "c", ReplyTo: "replies",
		},
	}
	bound := Binding(m)
	for _, name := range changedFields(t, &m, "Envelope", "Reservation", "Options") {
		require.NotEqual(t, bound, Binding(*name.changed), name.field)
	}
	o := m.Options
	for _, name := range changedFields(t, &o) {
		changed := m
		changed.Options = *name.changed
		require.NotEqual(t, bound, Binding(changed), "option %s", name.field)
	}
}

type changedField[T any] struct {
	field   string
	changed *T
}

// changedFields returns copies of a struct whose fields are all set, each with the zero value in one field.
func changedFields[T any](t *testing.T, of *T, but ...string) (all []changedField[T]) {
	t.Helper()
	typ := reflect.TypeFor[T]()
	for i := range typ.NumField() {
		name := typ.Field(i).Name
		skip := false
		for _, b := range but {
			skip = skip || b == name
		}
		if skip {
			continue
		}
		changed := *of
		field := reflect.ValueOf(&changed).Elem().Field(i)
		require.False(t, field.IsZero(), "%s is not set", name)
		field.SetZero()
		all = append(all, changedField[T]{name, &changed})
	}
	return all
}

func TestReceiptOfARealCall(t *testing.T) {
	h := newHouse(t)
	guest := h.module("relay", relay(), limits.DefaultGuest())
	c := realConsumer("c", topic, guest)
	stop := h.run(h.log, c)
	defer stop()
	h.publish(topic, 1)
	t.Run("HasEveryField", func(t *testing.T) {
		r := h.next(func(Receipt) bool { return true })
		require.Equal(t, "ack", r.Verdict)
		for i := range reflect.TypeFor[Receipt]().NumField() {
			switch name := reflect.TypeFor[Receipt]().Field(i).Name; name {
			case "Lane", "Reason", "Delay", "Batch", "Canary": // of others than this one
			default:
				require.False(t, reflect.ValueOf(r).Field(i).IsZero(), name)
			}
		}
		require.Equal(t, guest.Digest(), r.Module)
	})
}
