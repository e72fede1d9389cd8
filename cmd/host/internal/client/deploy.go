package client

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/longshore/longshore/cmd/host/internal/wire"
)

// deployTimeout is what a host may take for a deployment, in which it compiles modules.
const deployTimeout = 15 * time.Minute

// NewRemoteAdmin returns a client of the admin interface at a URL, as the bearer of a token. Nothing is connected yet.
func NewRemoteAdmin(base, token string) (*Admin, error) {
	u, err := url.Parse(base)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || (u.Path != "" && u.Path != "/") {
		return nil, fmt.Errorf("%.200q is no address of an admin interface: want one such as https://longshore.example:7879", base)
	}
	address := u.Host
	if u.Port() == "" {
		address = net.JoinHostPort(u.Hostname(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	}
	c := newCaller(u.Scheme+"://"+u.Host, u.Scheme+"://"+u.Host, "tcp", address)
	c.token = token
	return &Admin{c}, nil
}

// deployments returns the path of a tenant's deployments, or with "" of the whole host's.
func deployments(tenant string) string {
	if tenant == "" {
		return "/admin/v1/deployments"
	}
	return "/admin/v1/tenants/" + url.PathEscape(tenant) + "/deployments"
}

// Apply makes a manifest what runs: of a tenant, or with "" of the whole host. tag, if it isn't "", must be that of what runs.
func (a *Admin) Apply(ctx context.Context, tenant, tag string, m wire.Apply) (wire.Deployed, error) {
	return a.deploy(ctx, deployments(tenant), tag, m)
}

// Rollback makes an earlier version of a tenant run again.
func (a *Admin) Rollback(ctx context.Context, tenant, tag string, r wire.Rollback) (wire.Deployed, error) {
	return a.deploy(ctx, deployments(tenant)+"/rollback", tag, r)
}

// Promote gives canaries of a tenant all messages.
func (a *Admin) Promote(ctx context.Context, tenant, tag string, p wire.Promote) (wire.Deployed, error) {
	return a.deploy(ctx, deployments(tenant)+"/promote", tag, p)
}

func (a *Admin) deploy(ctx context.Context, path, tag string, in any) (out wire.Deployed, err error) {
	out.Tag, err = a.patient().callTagged(ctx, http.MethodPost, path, tag, in, &out)
	return out, err
}

// Deployments returns what runs of all tenants, or the versions that are kept of one.
func (a *Admin) Deployments(ctx context.Context, tenant string) (out wire.VersionList, err error) {
	out.Tag, err = a.callTagged(ctx, http.MethodGet, deployments(tenant), "", nil, &out)
	return out, err
}

// MissingModules returns those modules that have to be uploaded before a tenant may name them.
func (a *Admin) MissingModules(ctx context.Context, tenant string, digests []string) ([]string, error) {
	var out wire.Modules
	err := a.call(ctx, http.MethodPost, modules(tenant)+"/missing", wire.Modules{SHA256: digests}, &out)
	return out.SHA256, err
}

// UploadModule uploads a module of a tenant.
func (a *Admin) UploadModule(ctx context.Context, tenant, digest string, wasm []byte) error {
	var out wire.Modules
	_, err := a.send(ctx, http.MethodPut, modules(tenant)+"/"+digest, http.Header{"Content-Type": {wire.ModuleContentType}}, wasm, &out)
	return err
}

func modules(tenant string) string { return "/admin/v1/tenants/" + url.PathEscape(tenant) + "/modules" }

// patient returns a caller that waits for what may take long.
func (a *Admin) patient() caller {
	c := a.caller
	c.http = &http.Client{Transport: a.http.Transport, Timeout: deployTimeout}
	return c
}

// Rehearse asks what a manifest would make of messages that are there. Nothing is deployed.
func (a *Admin) Rehearse(ctx context.Context, tenant string, q wire.Rehearse) (out wire.Rehearsed, err error) {
	_, err = a.patient().callTagged(ctx, http.MethodPost, deployments(tenant)+"/rehearse", "", q, &out)
	return out, err
}
