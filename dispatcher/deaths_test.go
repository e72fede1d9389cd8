package dispatcher

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
)

func TestDeathsByTheQueue(t *testing.T) {
	t.Run("InAClaimAreToldOf", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, watched(ends(ok())))
			ids := r.publish(2)
			r.queue.messages[0].attempts = 3
			r.runFor(time.Minute)
			told := r.eventsTo("audit/death")
			require.Len(t, told, 1)
			require.Equal(t, ids[0], told[0].Parent)
			require.EqualValues(t, 1, told[0].Hops)
			require.Equal(t, eventData{
				Tenant: tenant, Topic: topic, Message: ids[0], Consumer: "c", Attempt: 3, Verdict: "bury", Reason: ReasonMaxAttempts,
			}, dataOf(t, told[0]))
			require.Equal(t, ids[1:], r.queue.acked)
		})
	})
	t.Run("OfAnEventAreNot", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, watched(ends(ok())))
			m := r.message(topic, "payload")
			who := signedctx.Principal{Tenant: tenant, Subject: "consumer:d", Claims: []signedctx.Claim{{Key: "event", Value: "death"}}}
			envelope, err := r.context.Seal(who, Binding(m))
			require.NoError(t, err)
			m.Envelope = envelope
			r.queue.publish(m)
			r.queue.messages[0].attempts = 3
			r.runFor(time.Minute)
			require.Empty(t, r.queue.alone)
			require.Empty(t, r.outcomes(EventDeath))
		})
	})
	t.Run("ThatCannotBeReadAnyMoreAreCounted", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, watched(ends(ok())))
			d, err := New(r.options)
			require.NoError(t, err)
			d.tellDeaths(t.Context(), []substrate.DeadLetter{{ID: "gone", Tenant: tenant, Topic: topic}})
			require.Equal(t, []string{EventMessageGone}, r.outcomes(EventDeath))
		})
	})
	t.Run("AreToldByOneConsumerOfTheirLane", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			twin, silent, group := watched(ends(ok())), consumerOf("silent", ends(ok())), watched(ends(ok()))
			twin.Name, group.Name, group.Lane = "twin", "group", "g"
			r := newRig(t, silent, watched(ends(ok())), twin, group)
			r.queue.dead["m"] = substrate.Message{ID: "m", Tenant: tenant, Topic: topic}
			d, err := New(r.options)
			require.NoError(t, err)
			letter := substrate.DeadLetter{ID: "m", Tenant: tenant, Topic: topic, Reason: ReasonTTLExpired}
			d.tellDeaths(t.Context(), []substrate.DeadLetter{letter})
			require.Len(t, r.queue.alone, 1)
			require.Equal(t, "c", dataOf(t, r.queue.alone[0]).Consumer)
			letter.Lane = "g"
			d.tellDeaths(t.Context(), []substrate.DeadLetter{letter})
			require.Len(t, r.queue.alone, 2)
			require.Equal(t, "g", dataOf(t, r.queue.alone[1]).Group)
			letter.Lane = "nobody's"
			d.tellDeaths(t.Context(), []substrate.DeadLetter{letter})
			require.Len(t, r.queue.alone, 2)
		})
	})
	t.Run("WhatWasThereAtTheStopIsTold", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, watched(ends(ok())))
			expired := make(chan []substrate.DeadLetter, 2)
			r.options.Expired = expired
			r.queue.dead["m"] = substrate.Message{ID: "m", Tenant: tenant, Topic: topic}
			r.run()
			r.stop()
			for range cap(expired) {
				expired <- []substrate.DeadLetter{{ID: "m", Tenant: tenant, Topic: topic}}
			}
			r.halt()
			require.Empty(t, expired)
			require.Len(t, r.queue.alone, 2)
		})
	})
}

// TestExpiredMessagesAreToldOf lets a real log bury what nobody claims, and reads the event as a consumer of it would.
func TestExpiredMessagesAreToldOf(t *testing.T) {
	h := newHouse(t)
	expired := make(chan []substrate.DeadLetter, 1)
	log, err := substrate.Open(t.Context(), substrate.Options{
		Dir: t.TempDir(), SegmentBytes: limits.MiB, Expired: func(l []substrate.DeadLetter) { expired <- l },
	})
	require.NoError(t, err)
	defer func() { require.NoError(t, log.Close()) }()
	require.NoError(t, log.Pause(t.Context(), tenant, topic, true))
	m := substrate.Message{ID: log.MintID(), Tenant: tenant, Topic: topic, Options: substrate.MessageOptions{TTL: time.Millisecond}, Hops: 2}
	_, err = log.Publish(t.Context(), sealed(t, h.context, m))
	require.NoError(t, err)
	d, err := New(Options{Queue: log, Context: h.context, Consumers: []Consumer{watched(ends(ok()))}, Observer: h, Expired: expired})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	defer func() {
		stop()
		require.NoError(t, <-ended)
	}()
	require.NoError(t, log.WaitReady(t.Context(), tenant, "audit/death", ""))
	got, err := log.Claim(t.Context(), substrate.ClaimRequest{
		Tenant: tenant, Topic: "audit/death", MaxMessages: 1, MaxBytes: 1, Lease: time.Minute, MaxAttempts: 1,
	})
	require.NoError(t, err)
	require.Len(t, got.Deliveries, 1)
	event := got.Deliveries[0].Message
	require.Equal(t, m.ID, event.Parent)
	require.EqualValues(t, 3, event.Hops)
	require.Equal(t, ReasonTTLExpired, dataOf(t, event).Reason)
	who, err := h.context.Verify(event.Envelope, Binding(event))
	require.NoError(t, err)
	require.True(t, isEvent(&who))
}
