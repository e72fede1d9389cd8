package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/longshore/longshore/cmd/host/internal/rehearse"
	"github.com/longshore/longshore/cmd/host/internal/rollout"
	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/dispatcher"
)

type tenantRehearse struct {
	Long
	TenantPath
	Body wire.Rehearse
}

// addRehearsals registers what is about versions that are not deployed.
func (a *admin) addRehearsals() {
	registerFor(a, huma.Operation{
		OperationID: "rehearse", Method: http.MethodPost, Path: "/admin/v1/tenants/{tenant}/deployments/rehearse",
		Summary: "What a manifest's consumer would make of messages that are there", DefaultStatus: http.StatusOK,
	}, deployTimeout, func(*wire.Rehearsed) int { return http.StatusOK }, a.rehearse)
}

// rehearse ends when its client is gone, and when the server stops.
func (a *admin) rehearse(ctx context.Context, r *tenantRehearse) (*wire.Rehearsed, error) {
	until, cancel := untilStop(ctx)
	defer cancel()
	out, err := a.rehearseUntil(until, r)
	if err != nil && until.Err() != nil && ctx.Err() == nil {
		return nil, dispatcher.ErrStopped
	}
	return out, err
}

func (a *admin) rehearseUntil(ctx context.Context, r *tenantRehearse) (*wire.Rehearsed, error) {
	var subject string
	one, err := deploy(ctx, a, r.Tenant, Precondition{}, func(w rollout.Who) (*rollout.Rehearsal, error) {
		subject = w.Subject
		return a.Deploy.Rehearse(ctx, w, r.Body)
	})
	if err != nil {
		return nil, err
	}
	defer one.Close(ctx)
	parts := rehearse.Parts{Log: a.Log, Context: a.Context, Options: optionsOf}
	return parts.Run(ctx, one.Rehearsal, subject, r.Body)
}
