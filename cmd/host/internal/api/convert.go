package api

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
)

// headerOf returns what of a problem travels as headers as well.
func headerOf(p *wire.Problem) http.Header {
	h := http.Header{}
	if p.RetryAfterSeconds > 0 {
		h.Set("Retry-After", strconv.Itoa(p.RetryAfterSeconds))
	}
	if p.CurrentTag != "" {
		h.Set("ETag", quoted(p.CurrentTag))
	}
	return h
}

func statsOf(s substrate.Stats) wire.TopicStats {
	out := wire.TopicStats{
		Tenant: s.Tenant, Topic: s.Topic, Ready: s.Ready, Parked: s.Parked, Delayed: s.Delayed, Leased: s.Leased, DeadLetters: s.DeadLetters,
		Paused: s.Paused, DefaultLane: s.LaneMode.String(), LanePaused: s.LanePaused, Ordering: s.Ordering.String(),
		Groups: s.Groups, Quarantined: s.Quarantined, Skipped: s.Skipped, PinnedBytes: s.PinnedBytes,
		Unflushed: s.Unflushed, Published: s.Published, Acked: s.Acked, Buried: s.Buried, Redriven: s.Redriven, Discarded: s.Discarded,
	}
	if !s.Oldest.IsZero() {
		t := s.Oldest.UTC()
		out.OldestUnacked = &t
	}
	return out
}

func peekedOf(p substrate.Peeked) wire.Peeked {
	out := wire.Peeked{Position: p.Position, State: p.State, Attempts: p.Attempts, Message: messageOf(p.Message)}
	if !p.At.IsZero() {
		at := p.At.UTC()
		out.At = &at
	}
	return out
}

func messageOf(m substrate.Message) wire.Message {
	out := wire.Message{
		ID: m.ID, Tenant: m.Tenant, Topic: m.Topic, ContentType: m.ContentType, DataBase64: m.Payload, Parent: m.Parent, Hops: m.Hops,
	}
	out.Options = optionsOf(m.Options)
	if out.DataBase64 == nil {
		out.DataBase64 = []byte{}
	}
	for _, kv := range m.Metadata {
		out.Metadata = append(out.Metadata, wire.Pair{Key: kv.Key, Value: kv.Value})
	}
	return out
}

// optionsOf returns the options that are set, or nil.
func optionsOf(o substrate.MessageOptions) *wire.MessageOptions {
	if len(o.Encode()) == 0 {
		return nil
	}
	out := &wire.MessageOptions{
		IdempotencyKey: o.IdempotencyKey, Priority: o.Priority, OrderingKey: o.OrderingKey, RequiredFeatures: o.RequiredFeatures,
		Target: o.Target, ReplyTo: o.ReplyTo,
	}
	if o.Delay != 0 {
		out.Delay = config.FormatDuration(o.Delay)
	}
	if o.TTL != 0 {
		out.TTL = config.FormatDuration(o.TTL)
	}
	if !o.Deadline.IsZero() {
		at := o.Deadline.UTC()
		out.Deadline = &at
	}
	if o.Fence.Key != "" {
		out.Fence = &wire.MessageFence{Key: o.Fence.Key, Token: o.Fence.Token}
	}
	return out
}

func tailedOf(e substrate.TailEvent) wire.Event {
	if e.Gap != nil {
		return wire.Event{Gap: gapOf(*e.Gap)}
	}
	m := messageOf(e.Message)
	return wire.Event{Position: e.Position, Delayed: e.Delayed, Message: &m, Dropped: e.Dropped}
}

func storedOf(s substrate.Stored) wire.Event {
	m := messageOf(s.Message)
	return wire.Event{Position: s.Position, Delayed: s.Message.Options.Delay > 0, Message: &m}
}

func gapOf(g substrate.Gap) *wire.Gap { return &wire.Gap{From: g.From, To: g.To} }

func deadOf(d substrate.DeadLetter) wire.DeadLetter {
	out := wire.DeadLetter{
		ID: d.ID, Tenant: d.Tenant, Topic: d.Topic, Lane: d.Lane, Position: d.Position, Attempts: d.Attempts, Reason: d.Reason,
		Published: d.Published.UTC(), Died: d.Died.UTC(), Redriven: d.Redriven, PayloadBytes: d.PayloadBytes,
	}
	if by := signedctx.ParseOperator(d.Operator); by.Act != "" {
		out.Operator = &wire.Operator{Act: by.Act, At: by.At, Why: by.Why}
	}
	if json.Valid(d.Receipt) {
		out.Receipt = d.Receipt
	}
	return out
}

func policyOf(v substrate.PolicyView) wire.PolicyView {
	return wire.PolicyView{
		MaxDepth: policyValueOf(v.MaxDepth), MaxRatePerSec: policyValueOf(v.MaxRatePerSec), MaxMessageBytes: policyValueOf(v.MaxMessageBytes),
		MaxUnflushed: policyValueOf(v.MaxUnflushed), MaxPriority: policyValueOf(v.MaxPriority),
		IdempotencyWindow: policyTimeOf(v.IdempotencyWindowMilli), Retention: policyTimeOf(v.RetentionMilli),
		RetentionBytes: policyValueOf(v.RetentionBytes), Keep: policyTimeOf(v.KeepMilli), MaxAge: policyTimeOf(v.MaxAgeMilli),
	}
}

func policyTimeOf(v substrate.PolicyValue) wire.PolicyTime {
	out := wire.PolicyTime{Source: v.Source}
	if v.Set {
		text := config.FormatDuration(time.Duration(v.Value) * time.Millisecond)
		out.Value = &text
	}
	return out
}

func policyValueOf(v substrate.PolicyValue) wire.PolicyValue {
	out := wire.PolicyValue{Source: v.Source}
	if v.Set || v.Value > 0 {
		out.Value = &v.Value
	}
	return out
}

func consumerOf(c dispatcher.ConsumerStatus) wire.Consumer {
	out := wire.Consumer{Name: c.Name, Tenant: c.Tenant, Topic: c.Topic, Lane: c.Lane, State: string(c.State), Module: c.Module, Version: c.Version, Reason: c.Reason, InFlight: c.InFlight, Draining: c.Draining}
	if k := c.Canary; k != nil {
		out.Canary = &wire.Canary{
			Percent: k.Percent, Module: k.Module, Version: k.Version, State: string(k.State), Reason: k.Reason, InFlight: k.InFlight,
		}
	}
	return out
}
