package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/substrate"
)

type policyRequest struct {
	TopicPath
	Body wire.PolicyChange
}

// addPolicy registers what is about a topic's policy. Every answer is the policy that is then in force.
func (a *admin) addPolicy() {
	const route = topicRoute + "/policy"
	add(a, http.MethodGet, route, "get-policy", "The policy in force", http.StatusOK, a.getPolicy)
	add(a, http.MethodPatch, route, "set-policy", "Set the bounds that are given", http.StatusOK, a.setPolicy)
	add(a, http.MethodDelete, route, "unset-policy", "Go back to the host config's policy", http.StatusOK, a.unsetPolicy)
}

func (a *admin) getPolicy(_ context.Context, q *TopicPath) (wire.PolicyView, error) {
	if err := q.valid(); err != nil {
		return wire.PolicyView{}, err
	}
	v, err := a.Log.Policy(q.Tenant, q.Topic)
	return policyOf(v), err
}

func (a *admin) setPolicy(ctx context.Context, r *policyRequest) (wire.PolicyView, error) {
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
	if err := a.Log.SetPolicy(ctx, r.Tenant, r.Topic, p); err != nil {
		return wire.PolicyView{}, err
	}
	return a.getPolicy(ctx, &r.TopicPath)
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

func (a *admin) unsetPolicy(ctx context.Context, q *TopicPath) (wire.PolicyView, error) {
	if err := q.valid(); err != nil {
		return wire.PolicyView{}, err
	}
	if err := a.Log.UnsetPolicy(ctx, q.Tenant, q.Topic); err != nil {
		return wire.PolicyView{}, err
	}
	return a.getPolicy(ctx, q)
}
