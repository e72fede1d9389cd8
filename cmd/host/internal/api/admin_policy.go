package api

import (
	"context"
	"net/http"

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
	p := substrate.Policy{
		MaxDepth: r.Body.MaxDepth, MaxRatePerSec: r.Body.MaxRatePerSec, MaxMessageBytes: r.Body.MaxMessageBytes,
		MaxUnflushed: r.Body.MaxUnflushed,
	}
	if p == (substrate.Policy{}) {
		return wire.PolicyView{}, problem(http.StatusBadRequest, wire.CodeInvalid,
			"nothing to set; give max_depth, max_rate_per_sec, max_message_bytes or max_unflushed")
	}
	if err := a.Log.SetPolicy(ctx, r.Tenant, r.Topic, p); err != nil {
		return wire.PolicyView{}, err
	}
	return a.getPolicy(ctx, &r.TopicPath)
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
