package rehearse

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

const (
	tenant  = "acme"
	topic   = "orders"
	subject = "local:1000"
)

// guest is a guest of Go code.
type guest struct {
	name string
	do   func(ctx context.Context, call *messaging.Call) runtime.Outcome
}

// Invoke implements dispatcher.Guest.
func (g *guest) Invoke(ctx context.Context, call *messaging.Call) runtime.Outcome {
	return g.do(ctx, call)
}

// Batches implements dispatcher.Guest.
func (*guest) Batches() bool { return true }

// Digest implements dispatcher.Guest.
func (g *guest) Digest() string { return g.name }

// handles is a guest that handles everything.
func handles(name string, fuel int64) *guest {
	return &guest{name, func(context.Context, *messaging.Call) runtime.Outcome { return runtime.Outcome{FuelUsed: fuel} }}
}

// traps is a guest that handles nothing.
func traps() *guest {
	return &guest{"traps", func(context.Context, *messaging.Call) runtime.Outcome {
		return runtime.Outcome{Class: runtime.Trap, Detail: "unreachable", FuelUsed: 5}
	}}
}

func consumerOf(g *guest) dispatcher.Consumer {
	return dispatcher.Consumer{Name: "c", Tenant: tenant, Topic: topic, Guest: g, Limits: limits.DefaultGuest(), Version: g.name}
}

// rig is a log and a dispatcher that runs, on which nothing is claimed.
type rig struct {
	t     *testing.T
	parts Parts
	d     *dispatcher.Dispatcher
}

func newRig(t *testing.T, runs ...dispatcher.Consumer) *rig {
	t.Helper()
	log, err := substrate.Open(t.Context(), substrate.Options{Dir: t.TempDir(), SegmentBytes: limits.MiB})
	require.NoError(t, err)
	keys, err := signedctx.LoadOrCreate(t.TempDir())
	require.NoError(t, err)
	seals, err := signedctx.New(keys, "test", time.Now)
	require.NoError(t, err)
	require.NoError(t, log.UseDefaultLane(t.Context(), tenant, topic))
	require.NoError(t, log.Pause(t.Context(), tenant, topic, true))
	d, err := dispatcher.New(dispatcher.Options{Queue: log, Context: seals, Consumers: runs})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, log.Close())
	})
	require.Eventually(t, func() bool {
		one, err := d.NewRehearsal(consumerOf(traps()))
		if err == nil {
			one.Close(t.Context())
		}
		return err == nil
	}, 30*time.Second, time.Millisecond, "it runs")
	return &rig{t, Parts{Log: log, Context: seals, Options: func(substrate.MessageOptions) *wire.MessageOptions { return nil }}, d}
}

// publish publishes messages with these payloads.
func (r *rig) publish(payloads ...string) {
	r.t.Helper()
	for _, p := range payloads {
		m := substrate.Message{ID: r.parts.Log.MintID(), Tenant: tenant, Topic: topic, Payload: []byte(p)}
		var err error
		m.Envelope, err = r.parts.Context.Seal(signedctx.Principal{Tenant: tenant, Subject: subject}, dispatcher.Binding(m))
		require.NoError(r.t, err)
		_, err = r.parts.Log.Publish(r.t.Context(), m)
		require.NoError(r.t, err)
	}
}

// bury makes dead letters of what waits in a lane.
func (r *rig) bury(lane, reason string) {
	r.t.Helper()
	log := r.parts.Log
	require.NoError(r.t, log.Pause(r.t.Context(), tenant, topic, false))
	got, err := log.Claim(r.t.Context(), substrate.ClaimRequest{
		Tenant: tenant, Topic: topic, Lane: lane, MaxMessages: 64, MaxBytes: limits.MiB, Lease: time.Minute, MaxAttempts: 5,
	})
	require.NoError(r.t, err)
	require.NotEmpty(r.t, got.Deliveries)
	require.NoError(r.t, log.Pause(r.t.Context(), tenant, topic, true))
	for _, d := range got.Deliveries {
		require.NoError(r.t, log.Settle(r.t.Context(), []substrate.Settlement{{Lease: d.Lease, Verdict: substrate.Bury, Reason: reason}}, nil))
	}
}

// wide are bounds that nothing here reaches.
func wide() bounds {
	return bounds{messages: 100, payloadBytes: limits.MiB, duration: time.Minute, reportBytes: limits.MiB}
}

func (r *rig) rehearse(next dispatcher.Consumer, q wire.Rehearse, b bounds) (*wire.Rehearsed, error) {
	r.t.Helper()
	one, err := r.d.NewRehearsal(next)
	require.NoError(r.t, err)
	defer one.Close(r.t.Context())
	return r.parts.run(r.t.Context(), one, subject, q, b)
}

// must is rehearse without an error.
func (r *rig) must(next dispatcher.Consumer, q wire.Rehearse, b bounds) *wire.Rehearsed {
	r.t.Helper()
	out, err := r.rehearse(next, q, b)
	require.NoError(r.t, err)
	require.Equal(r.t, len(out.Messages), out.Summary.Messages)
	return out
}

func TestRun(t *testing.T) {
	t.Run("ComparesAndSumsUp", func(t *testing.T) {
		r := newRig(t, consumerOf(&guest{"was", func(ctx context.Context, call *messaging.Call) runtime.Outcome {
			if string(call.Messages()[0].Data) == "bad" {
				return traps().do(ctx, call)
			}
			return runtime.Outcome{FuelUsed: int64(100 * len(call.Messages()[0].Data))}
		}}))
		r.publish("a", "bb", "bad")
		out := r.must(consumerOf(handles("next", 200)), wire.Rehearse{From: 1}, wide())
		require.Equal(t, wire.RehearsedVersion{Module: "was", Version: "was"}, *out.Before)
		require.Equal(t, wire.RehearsedVersion{Module: "next", Version: "next"}, out.After)
		mean, worst := 1.414, 2.0
		require.InDelta(t, mean, *out.Summary.FuelRatio, 0.001)
		require.InDelta(t, worst, *out.Summary.FuelWorst, 0.001)
		require.Equal(t, out.Messages[0].ID, out.Summary.FuelWorstID)
		out.Summary.FuelRatio, out.Summary.FuelWorst, out.Summary.FuelWorstID = nil, nil, ""
		require.Equal(t, wire.RehearsalSummary{
			Messages: 3, Same: 2, VerdictChanged: 1, Better: 1, HandledBefore: 2, HandledAfter: 3, Ended: wire.EndedAll, FuelMessages: 2,
		}, out.Summary)
		out = r.must(consumerOf(traps()), wire.Rehearse{From: 1}, wide())
		require.Equal(t, 2, out.Summary.Worse)
		require.Nil(t, out.Summary.FuelRatio)
	})
	t.Run("DeadLettersAreThoseOfTheLaneAsIfRedrivenNow", func(t *testing.T) {
		r := newRig(t)
		_, _, err := r.parts.Log.CreateGroup(t.Context(), tenant, topic, "audit", substrate.GroupOptions{})
		require.NoError(t, err)
		r.publish("1", "2")
		r.bury("", "guest-trap: unreachable")
		r.publish("3")
		r.bury("", "out-of-fuel")
		r.bury("audit", "timeout")
		c := consumerOf(handles("next", 1))
		out := r.must(c, wire.Rehearse{}, wide())
		require.Nil(t, out.Before)
		require.Len(t, out.Messages, 3)
		out = r.must(c, wire.Rehearse{Reason: "fuel"}, wide())
		require.Len(t, out.Messages, 1)
		require.Equal(t, "out-of-fuel", out.Messages[0].DeadReason)
		c.Lane = "audit"
		out = r.must(c, wire.Rehearse{}, wide())
		require.Equal(t, "audit", out.Lane)
		require.Len(t, out.Messages, 3)
		require.Equal(t, "timeout", out.Messages[0].DeadReason)

		w := &work{Parts: r.parts, lane: "audit", subject: subject, bounds: wide(), out: out}
		for m, err := range w.read(t.Context(), wire.Rehearse{}) {
			require.NoError(t, err)
			by, err := r.parts.Context.VerifyOperator(m.delivery.Operator, m.delivery.Message.Envelope, dispatcher.Binding(m.delivery.Message))
			require.NoError(t, err)
			require.Equal(t, subject, by.Act)
			require.WithinDuration(t, time.Now(), by.At, time.Minute)
		}
	})
	t.Run("EachBoundEndsItEarlyAndIsNamed", func(t *testing.T) {
		r := newRig(t)
		r.publish(strings.Split(strings.Repeat("x", 10), "")...)
		for ended, narrow := range map[string]func(b *bounds){
			wire.EndedMax:    func(b *bounds) { b.messages = 3 },
			wire.EndedBytes:  func(b *bounds) { b.payloadBytes = 3 },
			wire.EndedReport: func(b *bounds) { b.reportBytes = 1 },
		} {
			b := wide()
			narrow(&b)
			out := r.must(consumerOf(handles("next", 1)), wire.Rehearse{From: 1}, b)
			require.Equal(t, ended, out.Summary.Ended)
			if ended == wire.EndedReport {
				require.Len(t, out.Messages, 1, "what is over the bound is reported, and no more is run")
			} else {
				require.Len(t, out.Messages, 3)
			}
		}
		b, calls := wide(), 0
		b.duration = 200 * time.Millisecond
		out := r.must(consumerOf(&guest{"stops", func(ctx context.Context, _ *messaging.Call) runtime.Outcome {
			if calls++; calls > 2 {
				<-ctx.Done()
				return runtime.Outcome{Class: runtime.Interrupted}
			}
			return runtime.Outcome{}
		}}), wire.Rehearse{From: 1}, b)
		require.Equal(t, wire.EndedTime, out.Summary.Ended)
		require.LessOrEqual(t, len(out.Messages), 2, "one that was cut is not told of")
		b = wide()
		b.messages = 10
		require.Equal(t, wire.EndedAll, r.must(consumerOf(handles("next", 1)), wire.Rehearse{From: 1}, b).Summary.Ended, "exactly as many")
	})
	t.Run("NumbersThatNobodyGivesAreTheLimits", func(t *testing.T) {
		r := newRig(t)
		var many []string
		for i := range limits.RehearsalFewMessages + 1 {
			many = append(many, fmt.Sprint(i))
		}
		r.publish(many...)
		one, err := r.d.NewRehearsal(consumerOf(handles("next", 1)))
		require.NoError(t, err)
		defer one.Close(t.Context())
		out, err := r.parts.Run(t.Context(), one, subject, wire.Rehearse{From: 1})
		require.NoError(t, err)
		require.Len(t, out.Messages, limits.RehearsalFewMessages)
		require.Equal(t, wire.EndedMax, out.Summary.Ended)
	})
	t.Run("ABatchIsRunAsAClaimIs", func(t *testing.T) {
		r := newRig(t)
		r.publish("1", "2", "3", "4", "5")
		var sizes []int
		c := consumerOf(&guest{"batches", func(_ context.Context, call *messaging.Call) runtime.Outcome {
			sizes = append(sizes, len(call.Messages()))
			return runtime.Outcome{FuelUsed: 100}
		}})
		c.Batch = dispatcher.Batch{Max: 2}
		out := r.must(c, wire.Rehearse{From: 1}, wide())
		require.Equal(t, []int{2, 2, 1}, sizes)
		require.Equal(t, 2, out.Messages[0].After.Batch)
		require.EqualValues(t, 50, out.Messages[0].After.Fuel)
	})
	t.Run("WhoeverIsGoneGetsAnError", func(t *testing.T) {
		r := newRig(t)
		r.publish("1")
		ctx, cancel := context.WithCancel(t.Context())
		one, err := r.d.NewRehearsal(consumerOf(&guest{"waits", func(ctx context.Context, _ *messaging.Call) runtime.Outcome {
			cancel()
			<-ctx.Done()
			return runtime.Outcome{Class: runtime.Interrupted}
		}}))
		require.NoError(t, err)
		defer one.Close(t.Context())
		_, err = r.parts.run(ctx, one, subject, wire.Rehearse{From: 1}, wide())
		require.ErrorIs(t, err, context.Canceled)
	})
	t.Run("WhatCannotBeReadIsAnError", func(t *testing.T) {
		r := newRig(t)
		for says, q := range map[string]wire.Rehearse{
			"give one of them":     {From: 1, Since: "2030-01-31T12:00:00Z"},
			"reason is of dead":    {From: 1, Reason: "x"},
			"since is no time":     {Since: "yesterday"},
			"999 is not given yet": {From: 999},
		} {
			_, err := r.rehearse(consumerOf(handles("next", 1)), q, wide())
			require.ErrorContains(t, err, says)
		}
		c := consumerOf(handles("next", 1))
		c.Topic = "nothing"
		_, err := r.rehearse(c, wire.Rehearse{}, wide())
		require.ErrorIs(t, err, substrate.ErrNotFound)
	})
}

func TestCompare(t *testing.T) {
	output := func(change func(m *substrate.Message)) []substrate.Message {
		m := substrate.Message{ID: "id", Topic: "t", ContentType: "c", Metadata: []substrate.Pair{{Key: "k", Value: "v"}}, Payload: []byte("p")}
		change(&m)
		return []substrate.Message{m, m}
	}
	same := func(*substrate.Message) {}
	ends := func(verdict, reason string, handled bool) dispatcher.Rehearsed {
		return dispatcher.Rehearsed{Receipt: dispatcher.Receipt{Verdict: verdict, Reason: reason}, Handled: handled}
	}
	handled := ends("ack", "", true)
	with := func(outputs []substrate.Message) dispatcher.Rehearsed {
		r := handled
		r.Outputs = outputs
		return r
	}
	replies := func(text string) dispatcher.Rehearsed {
		r := handled
		r.Replies = []messaging.Message{{Data: []byte(text)}}
		return r
	}
	values := func(w ...substrate.ValueWrite) dispatcher.Rehearsed {
		r := handled
		r.Values = w
		return r
	}
	for name, c := range map[string]struct {
		before, after dispatcher.Rehearsed
		change        string
		differs       []string
		better, worse bool
	}{
		"same":         {with(output(same)), with(output(func(m *substrate.Message) { m.ID = "other" })), wire.SameEnd, nil, false, false},
		"count":        {with(output(same)), with(output(same)[:1]), wire.OtherOutputs, []string{"outputs"}, false, false},
		"topic":        {with(output(same)), with(output(func(m *substrate.Message) { m.Topic = "u" })), wire.OtherOutputs, []string{"topic"}, false, false},
		"content type": {with(output(same)), with(output(func(m *substrate.Message) { m.ContentType = "" })), wire.OtherOutputs, []string{"content-type"}, false, false},
		"metadata":     {with(output(same)), with(output(func(m *substrate.Message) { m.Metadata = nil })), wire.OtherOutputs, []string{"metadata"}, false, false},
		"payload":      {with(output(same)), with(output(func(m *substrate.Message) { m.Payload = nil })), wire.OtherOutputs, []string{"payload"}, false, false},
		"options": {
			with(output(same)), with(output(func(m *substrate.Message) { m.Options.Priority = 1 })), wire.OtherOutputs, []string{"options"}, false, false,
		},
		"replies": {replies("a"), replies("b"), wire.OtherOutputs, []string{"replies"}, false, false},
		"values": {
			values(substrate.ValueWrite{Key: "k", Data: []byte("1")}), values(substrate.ValueWrite{Key: "k", Delete: true}),
			wire.OtherOutputs,
			[]string{"values"},
			false, false,
		},
		"reason":  {ends("bury", "timeout", false), ends("bury", "out-of-fuel", false), wire.OtherVerdict, []string{"reason"}, false, false},
		"fixed":   {ends("bury", "timeout", false), handled, wire.OtherVerdict, []string{"verdict", "reason"}, true, false},
		"broken":  {with(output(same)), ends("retry", "timeout", false), wire.OtherVerdict, []string{"outputs", "verdict", "reason"}, false, true},
		"passed":  {handled, ends("ack", "filtered", false), wire.OtherVerdict, []string{"reason"}, false, true},
		"retried": {ends("bury", "timeout", false), ends("release", "skipped 1", false), wire.OtherVerdict, []string{"verdict", "reason"}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			var m wire.RehearsedMessage
			compare(&m, c.before, c.after)
			require.Equal(t, wire.RehearsedMessage{Change: c.change, Differs: c.differs, Better: c.better, Worse: c.worse}, m)
		})
	}
}

func TestSide(t *testing.T) {
	w := &work{Parts: Parts{Options: func(substrate.MessageOptions) *wire.MessageOptions { return &wire.MessageOptions{Priority: 3} }}}
	payload := bytes.Repeat([]byte("x"), limits.RehearsalPayloadBytes+1)
	s := w.side(dispatcher.Rehearsed{
		Outputs: []substrate.Message{{Topic: "t", Metadata: []substrate.Pair{{Key: "k", Value: "v"}}, Payload: payload}},
		Values:  []substrate.ValueWrite{{Bucket: "b", Key: "k", Data: []byte("v")}, {Bucket: "b", Key: "gone", Delete: true}},
	})
	require.Equal(t, []wire.RehearsedOutput{{
		Topic: "t", Metadata: []wire.Pair{{Key: "k", Value: "v"}}, Options: &wire.MessageOptions{Priority: 3},
		PayloadBytes: len(payload), PayloadSHA256: digestOf(payload), PayloadBase64: payload[:limits.RehearsalPayloadBytes],
	}}, s.Outputs)
	require.Equal(t, []wire.RehearsedValue{
		{Bucket: "b", Key: "k", Bytes: 1, SHA256: digestOf([]byte("v"))}, {Bucket: "b", Key: "gone", Delete: true},
	}, s.Values)
}
