package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/substrate"
)

type (
	policyChange struct {
		TopicPath
		Precondition
		Body wire.PolicyChange
	}
	policyReset struct {
		TopicPath
		Precondition
	}
)

// addPolicy registers what is about a topic's policy. Every answer is the policy that is then in force.
func (a *admin) addPolicy() {
	operation := func(method, id, summary string) huma.Operation {
		return huma.Operation{OperationID: id, Method: method, Path: topicRoute + "/policy", Summary: summary}
	}
	tag := func(v wire.PolicyView) string { return v.Tag }
	registerTagged(a, operation(http.MethodGet, "get-policy", "The policy in force"), requestTimeout, tag, a.getPolicy)
	registerTagged(a, operation(http.MethodPatch, "set-policy", "Set the bounds that are given"), requestTimeout, tag, a.setPolicy)
	registerTagged(a, operation(http.MethodDelete, "unset-policy", "Go back to the host config's policy"), requestTimeout, tag, a.unsetPolicy)
}

// getPolicy returns a policy, with a tag that is made of all that it says.
func (a *admin) getPolicy(_ context.Context, q *TopicPath) (wire.PolicyView, error) {
	if err := q.valid(); err != nil {
		return wire.PolicyView{}, err
	}
	p, err := a.Log.Policy(q.Tenant, q.Topic)
	if err != nil {
		return wire.PolicyView{}, err
	}
	v := policyOf(p)
	text, err := json.Marshal(v)
	if err != nil {
		return v, fmt.Errorf("encode the policy: %w", err)
	}
	sum := sha256.Sum256(text)
	v.Tag = hex.EncodeToString(sum[:8])
	return v, nil
}

func (a *admin) setPolicy(ctx context.Context, r *policyChange) (wire.PolicyView, error) {
	if err := r.valid(); err != nil {
		return wire.PolicyView{}, err
	}
	if r.Body == (wire.PolicyChange{}) {
		return wire.PolicyView{}, problem(http.StatusBadRequest, wire.CodeInvalid,
			"nothing to set; give max_depth, max_rate_per_sec, max_message_bytes, max_unflushed, max_priority, idempotency_window, "+
				"retention, retention_bytes, keep or max_age")
	}
	p, err := storedPolicy(r.Body)
	if err != nil {
		return wire.PolicyView{}, err
	}
	return a.changePolicy(ctx, &r.TopicPath, r.Precondition, func() error { return a.Log.SetPolicy(ctx, r.Tenant, r.Topic, p) })
}

func (a *admin) unsetPolicy(ctx context.Context, r *policyReset) (wire.PolicyView, error) {
	if err := r.valid(); err != nil {
		return wire.PolicyView{}, err
	}
	return a.changePolicy(ctx, &r.TopicPath, r.Precondition, func() error { return a.Log.UnsetPolicy(ctx, r.Tenant, r.Topic) })
}

// changePolicy makes a change, if the policy is the one that whoever asks has seen, and returns the policy then. One policy is
// changed at a time, so that none comes in between.
func (a *admin) changePolicy(ctx context.Context, q *TopicPath, p Precondition, change func() error) (wire.PolicyView, error) {
	tags, err := p.tags()
	if err != nil {
		return wire.PolicyView{}, err
	}
	select {
	case a.policies <- struct{}{}:
		defer func() { <-a.policies }()
	case <-ctx.Done():
		return wire.PolicyView{}, ctx.Err()
	}
	now, err := a.getPolicy(ctx, q)
	if err != nil {
		return now, err
	}
	if tags != nil && !slices.Contains(tags, now.Tag) {
		return now, changedProblem("the policy was changed in the meantime, and has the tag "+now.Tag+": look at it, then try again", now.Tag)
	}
	if err := change(); err != nil {
		return now, err
	}
	return a.getPolicy(ctx, q)
}

// storedPolicy reads a change. The log checks its bounds.
func storedPolicy(c wire.PolicyChange) (substrate.Policy, error) {
	p := substrate.Policy{
		MaxDepth: c.MaxDepth, MaxRatePerSec: c.MaxRatePerSec, MaxMessageBytes: c.MaxMessageBytes, MaxUnflushed: c.MaxUnflushed,
		MaxPriority: c.MaxPriority, RetentionBytes: c.RetentionBytes,
	}
	for _, f := range []struct {
		name string
		text *string
		into **int64
	}{
		{"idempotency_window", c.IdempotencyWindow, &p.IdempotencyWindowMilli},
		{"retention", c.Retention, &p.RetentionMilli},
		{"keep", c.Keep, &p.KeepMilli},
		{"max_age", c.MaxAge, &p.MaxAgeMilli},
	} {
		if f.text == nil {
			continue
		}
		d, err := time.ParseDuration(*f.text)
		if err != nil || d%time.Millisecond != 0 {
			return p, problem(http.StatusBadRequest, wire.CodeInvalid,
				fmt.Sprintf("%s %.40q is no duration in whole milliseconds; write 250ms, 15m or 24h", f.name, *f.text))
		}
		ms := d.Milliseconds()
		*f.into = &ms
	}
	return p, nil
}
