package api

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/longshore/longshore/cmd/host/internal/rollout"
	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/substrate"
)

// Deployments decides what runs. *rollout.Deployer is one; it is safe for concurrent use.
type Deployments interface {
	Apply(ctx context.Context, who rollout.Who, a wire.Apply) (*wire.Deployed, error)
	Rollback(ctx context.Context, who rollout.Who, version int) (*wire.Deployed, error)
	Promote(ctx context.Context, who rollout.Who, consumer string) (*wire.Deployed, error)
	Rehearse(ctx context.Context, who rollout.Who, q wire.Rehearse) (*rollout.Rehearsal, error)
	Current() *wire.VersionList
	History(tenant string) *wire.VersionList
	Missing(tenant string, digests []string) []string
	Upload(tenant, digest string, module io.Reader) error
	Tenants() []string
}

// TenantPath names a tenant in a path; exported because huma fills only exported fields.
type TenantPath struct {
	Tenant string `path:"tenant" doc:"tenant"`
}

type (
	hostApply struct {
		Long
		Precondition
		Body wire.Apply
	}
	tenantApply struct {
		Long
		TenantPath
		Precondition
		Body wire.Apply
	}
	tenantRollback struct {
		Long
		TenantPath
		Precondition
		Body wire.Rollback
	}
	tenantPromote struct {
		Long
		TenantPath
		Precondition
		Body wire.Promote
	}
	tenantModules struct {
		TenantPath
		Body wire.Modules
	}
	moduleUpload struct {
		TenantPath
		SHA256 string `path:"sha256" pattern:"^[0-9a-f]{64}$" doc:"SHA-256 of the module"`
		body   io.Reader
	}
)

// Long is in requests whose answer may take longer than others.
type Long struct{}

// Resolve implements huma.Resolver.
func (*Long) Resolve(ctx huma.Context) []error {
	_, w := humago.Unwrap(ctx)
	control, at := http.NewResponseController(w), time.Now().Add(deployTimeout+writeTimeout)
	// A connection that has no deadlines, as in tests, needs none moved.
	_, _ = control.SetReadDeadline(at), control.SetWriteDeadline(at)
	return nil
}

// Resolve implements huma.Resolver: the module is read as it comes.
func (u *moduleUpload) Resolve(ctx huma.Context) []error {
	u.body = ctx.BodyReader()
	return nil
}

// addDeployments registers what is about what runs.
func (a *admin) addDeployments() {
	const route, ofTenant = "/admin/v1/deployments", "/admin/v1/tenants/{tenant}/deployments"
	runs := func(d *wire.Deployed) string { return d.Tag }
	post := func(id, path, summary string) huma.Operation {
		return huma.Operation{OperationID: id, Method: http.MethodPost, Path: path, Summary: summary}
	}
	list := func(id, path, summary string) huma.Operation {
		return huma.Operation{OperationID: id, Method: http.MethodGet, Path: path, Summary: summary}
	}
	listed := func(l *wire.VersionList) string { return l.Tag }
	registerTagged(a, list("list-deployments", route, "What runs, of all tenants"), requestTimeout, listed,
		func(context.Context, *none) (*wire.VersionList, error) { return a.Deploy.Current(), nil })
	registerTagged(a, post("apply", route, "Make a manifest what runs"), deployTimeout, runs,
		func(ctx context.Context, r *hostApply) (*wire.Deployed, error) {
			return a.apply(ctx, "", r.Precondition, r.Body)
		})
	registerTagged(a, list("list-versions", ofTenant, "The versions that are kept of a tenant's consumers"), requestTimeout, listed,
		func(_ context.Context, r *TenantPath) (*wire.VersionList, error) {
			if err := substrate.ValidTenant(r.Tenant); err != nil {
				return nil, err
			}
			return a.Deploy.History(r.Tenant), nil
		})
	registerTagged(a, post("apply-tenant", ofTenant, "Make a manifest what runs of a tenant"), deployTimeout, runs,
		func(ctx context.Context, r *tenantApply) (*wire.Deployed, error) {
			return a.apply(ctx, r.Tenant, r.Precondition, r.Body)
		})
	registerTagged(a, post("rollback", ofTenant+"/rollback", "Make an earlier version run again"), deployTimeout, runs, a.rollback)
	registerTagged(a, post("promote", ofTenant+"/promote", "Give canaries all messages"), deployTimeout, runs, a.promote)
	add(a, http.MethodPost, "/admin/v1/tenants/{tenant}/modules/missing", "missing-modules", "Which modules have to be uploaded", http.StatusOK,
		func(_ context.Context, r *tenantModules) (wire.Modules, error) {
			return wire.Modules{SHA256: a.Deploy.Missing(r.Tenant, r.Body.SHA256)}, substrate.ValidTenant(r.Tenant)
		})
	a.addUpload()
}

// uploadModule is the operation whose body is no JSON.
const uploadModule = "upload-module"

// addUpload registers the upload of modules, a few at once.
func (a *admin) addUpload() {
	turns := newUploadTurns()
	register(a, huma.Operation{
		OperationID: uploadModule, Method: http.MethodPut, Path: "/admin/v1/tenants/{tenant}/modules/{sha256}",
		Summary: "Upload a module", DefaultStatus: http.StatusCreated,
		RequestBody: &huma.RequestBody{Content: map[string]*huma.MediaType{
			wire.ModuleContentType: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}},
		}},
	}, func(wire.Modules) int { return http.StatusCreated }, func(ctx context.Context, r *moduleUpload) (wire.Modules, error) {
		if err := substrate.ValidTenant(r.Tenant); err != nil {
			return wire.Modules{}, err
		}
		giveBack, err := turns.take(ctx)
		if err != nil {
			return wire.Modules{}, err
		}
		defer giveBack()
		return wire.Modules{SHA256: []string{r.SHA256}}, a.Deploy.Upload(r.Tenant, r.SHA256, r.body)
	})
}

// who says who asks, about a tenant's consumers or, with "", all.
func who(ctx context.Context, tenant string, p Precondition) (rollout.Who, error) {
	if tenant != "" {
		if err := substrate.ValidTenant(tenant); err != nil {
			return rollout.Who{}, err
		}
	}
	tags, err := p.tags()
	if err != nil {
		return rollout.Who{}, err
	}
	subject, err := subjectOf(ctx)
	return rollout.Who{Subject: subject, Tenant: tenant, IfMatch: tags}, err
}

// deploy has a deployment made, or a version compiled that isn't deployed. The bearers of a tenant have one at a time under way,
// with what waits, so that another tenant waits for one of each at most, and the operator can take back what a tenant deploys.
func deploy[T any](ctx context.Context, a *admin, tenant string, p Precondition, do func(who rollout.Who) (T, error)) (out T, err error) {
	w, err := who(ctx, tenant, p)
	if err != nil {
		return out, err
	}
	end, ok := a.deployments.take(ctx)
	if !ok {
		return out, later(problem(http.StatusConflict, wire.CodeConflict,
			"another deployment of this tenant is under way, or waits for its turn: wait until it has ended"), time.Second)
	}
	defer end()
	return do(w)
}

func (a *admin) apply(ctx context.Context, tenant string, p Precondition, r wire.Apply) (*wire.Deployed, error) {
	return deploy(ctx, a, tenant, p, func(w rollout.Who) (*wire.Deployed, error) { return a.Deploy.Apply(ctx, w, r) })
}

func (a *admin) rollback(ctx context.Context, r *tenantRollback) (*wire.Deployed, error) {
	return deploy(ctx, a, r.Tenant, r.Precondition, func(w rollout.Who) (*wire.Deployed, error) {
		return a.Deploy.Rollback(ctx, w, r.Body.Version)
	})
}

func (a *admin) promote(ctx context.Context, r *tenantPromote) (*wire.Deployed, error) {
	return deploy(ctx, a, r.Tenant, r.Precondition, func(w rollout.Who) (*wire.Deployed, error) {
		return a.Deploy.Promote(ctx, w, r.Body.Consumer)
	})
}
