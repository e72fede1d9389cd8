package dispatcher

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/longshore/longshore/internal/filter"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

// Binding returns what a signed context is sealed to, and verified against, for a message of the queue. Whoever publishes
// seals with it. It shares the message's bytes.
func Binding(m substrate.Message) signedctx.Binding {
	var metadata [][2]string
	if len(m.Metadata) > 0 {
		metadata = make([][2]string, len(m.Metadata))
		for i, p := range m.Metadata {
			metadata[i] = [2]string{p.Key, p.Value}
		}
	}
	return signedctx.Binding{
		MessageID:   m.ID,
		Tenant:      m.Tenant,
		Topic:       m.Topic,
		ContentType: m.ContentType,
		Metadata:    metadata,
		Payload:     m.Payload,
		Options:     m.Options.Encode(),
		Parent:      m.Parent,
		Hops:        m.Hops,
	}
}

// forGuest returns a message of the queue as the guest sees it. It shares the payload.
func forGuest(m substrate.Message) messaging.Message {
	var metadata []messaging.Pair
	if len(m.Metadata) > 0 {
		metadata = make([]messaging.Pair, len(m.Metadata))
		for i, p := range m.Metadata {
			metadata[i] = messaging.Pair(p)
		}
	}
	return messaging.Message{Topic: m.Topic, ContentType: m.ContentType, Data: m.Payload, Metadata: metadata}
}

// forFilter returns what a filter sees of a message, and of who published it; who may be nil.
func forFilter(m *substrate.Message, who *signedctx.Verified) filter.Message {
	out := filter.Message{Topic: m.Topic, ContentType: m.ContentType, Metadata: make(map[string]string, len(m.Metadata)), Claims: map[string]string{}}
	for _, p := range slices.Backward(m.Metadata) {
		out.Metadata[p.Key] = p.Value
	}
	if who != nil {
		out.Subject = who.Subject
		for _, claim := range who.Claims {
			out.Claims[claim.Key] = claim.Value
		}
	}
	return out
}

// forQueue returns a message of a guest as the queue stores it, without its id, context and reservation: published by a
// consumer of tenant while it handled parent. The topic is the one that it is published to. It shares the payload.
func forQueue(tenant, topic string, m messaging.Message, parent substrate.Message) substrate.Message {
	var metadata []substrate.Pair
	if len(m.Metadata) > 0 {
		metadata = make([]substrate.Pair, len(m.Metadata))
		for i, p := range m.Metadata {
			metadata[i] = substrate.Pair(p)
		}
	}
	return substrate.Message{
		Tenant:      tenant,
		Topic:       topic,
		ContentType: m.ContentType,
		Metadata:    metadata,
		Payload:     m.Data,
		Options:     optionsFor(m.Options),
		Parent:      parent.ID,
		Hops:        parent.Hops + 1,
	}
}

// optionsFor returns what a guest asks for as the queue stores it.
func optionsFor(o *messaging.PublishOptions) substrate.MessageOptions {
	if o == nil {
		return substrate.MessageOptions{}
	}
	return substrate.MessageOptions{
		Delay: o.Delay, TTL: o.TTL, Deadline: o.Deadline, Priority: o.Priority, IdempotencyKey: o.IdempotencyKey,
		OrderingKey: o.OrderingKey, RequiredFeatures: o.RequiredFeatures, Target: o.Target,
	}
}

// infoFor returns what the guest can learn about a delivery, beside who published it.
func infoFor(d substrate.Delivery, maxAttempts int) *messaging.Info {
	m := d.Message
	i := &messaging.Info{
		ID: m.ID, Attempt: uint32(max(d.Attempt, 0)), MaxAttempts: uint32(max(maxAttempts, 0)),
		PreviousReason: d.PreviousReason, Group: d.Lease.Lane, Published: publishedAt(m.ID), Deadline: m.Options.Deadline,
		Priority: m.Options.Priority, IdempotencyKey: m.Options.IdempotencyKey, OrderingKey: m.Options.OrderingKey,
		Parent: m.Parent, Hops: m.Hops, ReplyTo: m.Options.ReplyTo,
	}
	if m.Options.Fence.Key != "" {
		i.Fence = &messaging.Fence{Key: m.Options.Fence.Key, Token: m.Options.Fence.Token}
	}
	if m.Options.TTL > 0 {
		i.Expires = i.Published.Add(m.Options.Delay + m.Options.TTL)
	}
	return i
}

// publishedAt reads the time from a message's id: it begins with Unix milliseconds.
func publishedAt(id string) time.Time {
	millis, _, _ := strings.Cut(id, "-")
	n, err := strconv.ParseInt(millis, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(n)
}

// claimsFor returns who published a message, as verified.
func claimsFor(v *signedctx.Verified) *messaging.Claims {
	if v == nil {
		return nil
	}
	c := &messaging.Claims{Tenant: v.Tenant, Subject: v.Subject, Issuer: v.Issuer, TokenID: v.TokenID, IssuedAt: v.IssuedAt}
	for _, claim := range v.Claims {
		c.Extra = append(c.Extra, messaging.Pair(claim))
	}
	return c
}

// refusalFor returns what the guest is told about an error of the queue's admission. The queue's own text stays here.
func refusalFor(err error) *messaging.PublishError {
	var (
		depth  *substrate.DepthError
		rate   *substrate.RateError
		name   *substrate.NameError
		option *substrate.OptionError
		bound  *limits.Error
		tenant *substrate.TenantError
	)
	switch {
	case errors.As(err, &tenant):
		return refusalForTenant(tenant)
	case errors.As(err, &depth):
		return numbers(messaging.DepthExceeded, depth.Limit, depth.Actual)
	case errors.As(err, &rate):
		e := numbers(messaging.RateExceeded, rate.PerSecond, rate.PerSecond+1)
		e.RetryAfter = &rate.RetryAfter
		return e
	case errors.As(err, &bound):
		return refusalForBound(bound)
	case errors.As(err, &name):
		return &messaging.PublishError{Case: messaging.Invalid, Text: name.Error()}
	case errors.As(err, &option):
		return &messaging.PublishError{Case: messaging.Invalid, Text: option.Error()}
	case errors.Is(err, substrate.ErrStorageFull):
		return &messaging.PublishError{Case: messaging.StorageFull}
	default:
		return &messaging.PublishError{Case: messaging.Unavailable, Text: "the queue can't take a message now"}
	}
}

// refusalForTenant tells the rate of a tenant from how much of it there may be.
func refusalForTenant(e *substrate.TenantError) *messaging.PublishError {
	if e.RetryAfter == 0 {
		return numbers(messaging.QuotaExceeded, e.Limit, e.Actual)
	}
	refused := numbers(messaging.RateExceeded, e.Limit, e.Actual)
	refused.RetryAfter = &e.RetryAfter
	return refused
}

// refusalForBound tells the size of a message, the length of its chain and its topic's name from how much there may be.
func refusalForBound(e *limits.Error) *messaging.PublishError {
	sizes := []limits.Name{
		limits.NameMessageBytes, limits.NameMetadataBytes, limits.NameMetadataPairs, limits.NameBatchBytes, limits.NameKeyBytes,
		limits.NameReplyBytes,
	}
	if slices.Contains(sizes, e.Name) {
		return numbers(messaging.TooLarge, e.Limit, e.Actual)
	}
	if e.Name == limits.NameHops {
		return numbers(messaging.HopLimit, e.Limit, e.Actual)
	}
	return numbers(messaging.QuotaExceeded, e.Limit, e.Actual)
}

func numbers(c messaging.PublishCase, limit, actual int64) *messaging.PublishError {
	return &messaging.PublishError{Case: c, Limit: unsigned(limit), Actual: unsigned(actual)}
}

func unsigned(n int64) uint64 {
	if n < 0 {
		return 0
	}
	return uint64(n)
}

// refusedBy tells an error that refuses what is published from a fault of the storage.
func refusedBy(err error) (*refusedOutbox, bool) {
	if err == nil {
		return nil, false
	}
	var (
		depth  *substrate.DepthError
		rate   *substrate.RateError
		name   *substrate.NameError
		option *substrate.OptionError
		bound  *limits.Error
		tenant *substrate.TenantError
	)
	switch {
	case errors.As(err, &tenant):
		return &refusedOutbox{why: refusalForTenant(tenant).Case, after: tenant.RetryAfter}, true
	case errors.As(err, &rate):
		return &refusedOutbox{why: messaging.RateExceeded, topic: rate.Topic, after: rate.RetryAfter}, true
	case errors.As(err, &depth):
		return &refusedOutbox{why: messaging.DepthExceeded, topic: depth.Topic}, true
	case errors.Is(err, substrate.ErrStorageFull):
		return &refusedOutbox{why: messaging.StorageFull}, true
	case errors.Is(err, substrate.ErrNotFound):
		return &refusedOutbox{why: messaging.Unavailable}, true
	case errors.As(err, &bound), errors.As(err, &name), errors.As(err, &option):
		return &refusedOutbox{why: refusalFor(err).Case, forever: true}, true
	}
	return nil, false
}
