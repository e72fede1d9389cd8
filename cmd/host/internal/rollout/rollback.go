package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/internal/config"
)

// ErrNoVersion says that a version is not kept, or never was.
var ErrNoVersion = errors.New("there is no such version: `longshore history` lists those that are kept")

// Rollback makes an earlier version of a tenant run again, as a new version; 0 is the last one that ran something else.
func (d *Deployer) Rollback(ctx context.Context, who Who, to int) (*wire.Deployed, error) {
	unlock, err := d.lockChange(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := d.match(who); err != nil {
		return nil, err
	}
	earlier, err := d.find(who.Tenant, to)
	if err != nil {
		return nil, err
	}
	v := d.newVersion(who, who.Tenant, whatRollback+" to version "+strconv.Itoa(earlier.Number))
	v.Entries, v.Whole = slices.Clone(earlier.Entries), d.current[who.Tenant].Whole
	for i := range v.Entries {
		v.Entries[i].Percent, v.Entries[i].Base = 0, nil
	}
	return d.replaceBy(ctx, who, v)
}

// replaceBy makes a version what runs, if it is another than that.
func (d *Deployer) replaceBy(ctx context.Context, who Who, v *Version) (*wire.Deployed, error) {
	var next []*Version
	if d.settle(v) {
		next = append(next, v)
	}
	return d.replace(ctx, change{who: who, next: next, given: func(name) *config.Consumer { return nil }})
}

// ErrNoCanary says that there is nothing to promote.
var ErrNoCanary = errors.New("no canary of that name runs: `longshore history -o json` shows canary_percent of those that do")

// Promote gives canaries of a tenant all messages: that of a consumer, or with "" all of them.
func (d *Deployer) Promote(ctx context.Context, who Who, consumer string) (*wire.Deployed, error) {
	unlock, err := d.lockChange(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := d.match(who); err != nil {
		return nil, err
	}
	now := d.current[who.Tenant]
	if now == nil {
		return nil, ErrNoCanary
	}
	v := d.newVersion(who, who.Tenant, strings.TrimSpace(whatPromote+" "+consumer))
	v.Entries, v.Whole = slices.Clone(now.Entries), now.Whole
	found := false
	for i := range v.Entries {
		if e := &v.Entries[i]; e.Base != nil && (consumer == "" || consumer == e.Name) {
			e.Percent, e.Base, found = 0, nil, true
		}
	}
	if !found {
		return nil, ErrNoCanary
	}
	return d.replaceBy(ctx, who, v)
}

// find returns a version that is kept of a tenant.
func (d *Deployer) find(tenant string, number int) (*Version, error) {
	now := d.current[tenant]
	for _, v := range slices.Backward(d.Store.Versions(tenant)) {
		if v.Number == number || number == 0 && now != nil && v.Number < now.Number && v.Digest() != now.Digest() {
			return v, nil
		}
	}
	if number == 0 {
		return nil, fmt.Errorf("%w; none before it ran anything else", ErrNoVersion)
	}
	return nil, fmt.Errorf("%w, and version %d is not among them", ErrNoVersion, number)
}

// History returns the versions that are kept of a tenant and have run, newest first. It doesn't wait for deployments.
func (d *Deployer) History(tenant string) *wire.VersionList {
	d.mu.RLock()
	defer d.mu.RUnlock()
	out := &wire.VersionList{Tag: d.tag(tenant), Versions: []wire.Version{}}
	for _, v := range slices.Backward(d.Store.Versions(tenant)) {
		if v.Number <= d.current[tenant].number() { // else it is kept, and about to run
			out.Versions = append(out.Versions, d.describe(v))
		}
	}
	return out
}

// Current returns what runs of all tenants. It doesn't wait for deployments.
func (d *Deployer) Current() *wire.VersionList {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return &wire.VersionList{Tag: d.tag(), Versions: d.seen(Who{})}
}

// Missing returns those modules that a tenant has to upload before it may name them.
func (d *Deployer) Missing(tenant string, digests []string) []string {
	out := []string{}
	for _, digest := range digests {
		if isDigest(digest) && !d.Store.Has(tenant, digest) {
			out = append(out, digest)
		}
	}
	return out
}

// describe returns a version as people see it.
func (d *Deployer) describe(v *Version) wire.Version {
	out := wire.Version{
		Tenant: v.Tenant, Version: v.Number, Digest: v.Digest(), At: v.At, By: v.By, What: v.What, Runs: d.current[v.Tenant] == v,
		Consumers: []wire.DeployedConsumer{},
	}
	for _, e := range v.Entries {
		out.Consumers = append(out.Consumers, wire.DeployedConsumer{Name: e.Name, Module: e.Module, Since: e.Since, CanaryPercent: e.Percent})
	}
	return out
}
