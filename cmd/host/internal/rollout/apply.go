package rollout

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/internal/config"
)

// Who is who asks for a deployment.
type Who struct {
	Subject string
	Tenant  string   // whose consumers alone it is about; "" is the whole host
	IfMatch []string // tags of which one what runs must have; nil is any
}

// ChangedError says that something else runs than whoever asks has seen.
type ChangedError struct {
	Tag string // of what runs
}

// Error implements error.
func (e *ChangedError) Error() string {
	return "something else was deployed in the meantime, with the tag " + e.Tag + ": look at it with `longshore diff`, then try again"
}

// What a version came from.
const (
	whatRun      = "run"
	whatApply    = "apply"
	whatRollback = "rollback"
	whatPromote  = "promote"
	whatDev      = "dev"
)

// Apply makes a manifest what runs. With a tenant, it replaces the consumers of that tenant and must name no other. Without, it
// replaces all that was deployed so, and the tenants that it names; what was deployed for another tenant by itself stays.
// Faults are config.Faults.
func (d *Deployer) Apply(ctx context.Context, who Who, a wire.Apply) (*wire.Deployed, error) {
	unlock, err := d.lockChange(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := d.match(who); err != nil {
		return nil, err
	}
	plan, err := d.planOf(a.File, a.Manifest)
	if err != nil {
		return nil, err
	}
	if faults := d.modulesOf(plan, who, a.Modules); len(faults) > 0 {
		return nil, faults
	}
	m := manifest{plan: plan, modules: a.Modules, what: whatApply + " " + plan.File}
	return d.deploy(ctx, who, m, a.DryRun)
}

// planOf resolves a manifest that was sent. The file is what faults call it.
func (d *Deployer) planOf(file, text string) (*config.Plan, error) {
	if file == "" {
		file = "manifest"
	}
	return config.ParseManifest(filepath.Base(file), []byte(text), d.Host)
}

// manifest is a plan with the digests of its modules, by path, and where it comes from.
type manifest struct {
	plan    *config.Plan
	modules map[string]string
	what    string
}

func (m *manifest) find(n name) *config.Consumer {
	for i := range m.plan.Consumers {
		if c := &m.plan.Consumers[i]; c.Tenant == n.tenant && c.Name == n.name {
			return c
		}
	}
	return nil
}

func (d *Deployer) match(who Who) error {
	if tag := d.tag(who.tenants()...); who.IfMatch != nil && !slices.Contains(who.IfMatch, tag) {
		return &ChangedError{tag}
	}
	return nil
}

func (w Who) tenants() []string {
	if w.Tenant == "" {
		return nil
	}
	return []string{w.Tenant}
}

// modulesOf checks that all consumers are whose they may be, and have modules that are there.
func (d *Deployer) modulesOf(plan *config.Plan, who Who, modules map[string]string) (faults config.Faults) {
	for i := range plan.Consumers {
		c := &plan.Consumers[i]
		digest := modules[c.Module.Path]
		switch {
		case who.Tenant != "" && c.Tenant != who.Tenant:
			faults = append(faults, c.Fault("tenant", "it is of tenant "+c.Tenant, "want tenant: "+who.Tenant+", whose consumers these are"))
		case digest == "":
			faults = append(faults, c.ModuleFault("its digest was not given", "want it in modules"))
		case !isDigest(digest):
			faults = append(faults, c.ModuleFault("its digest is none", "want a SHA-256 in 64 hex digits"))
		case c.Module.SHA256 != "" && c.Module.SHA256 != digest:
			faults = append(faults, c.ModuleFault("its SHA-256 is "+digest, "want "+c.Module.SHA256+", the entry's sha256"))
		case !d.Store.Has(c.Tenant, digest):
			faults = append(faults, c.ModuleFault("the host doesn't have "+digest, "want it uploaded before"))
		}
	}
	return faults
}

// deploy makes versions of a manifest and, unless that is only asked for, makes them what runs.
func (d *Deployer) deploy(ctx context.Context, who Who, m manifest, dryRun bool) (*wire.Deployed, error) {
	entries, err := m.entries()
	if err != nil {
		return nil, err
	}
	return d.replace(ctx, change{who: who, next: d.versions(who, m.what, entries), given: m.find, dryRun: dryRun})
}

// change is a deployment on its way.
type change struct {
	who   Who
	next  []*Version
	given func(name) *config.Consumer // the manifest's entry at which a fault is reported; nil if there is none
	// dryRun changes nothing. unkept goes on where the disk has no room to keep what is deployed.
	dryRun, unkept bool
}

// replace makes versions what runs.
func (d *Deployer) replace(ctx context.Context, c change) (*wire.Deployed, error) {
	pieces, err := d.prepare(ctx, c.next, c.given)
	if err != nil {
		return nil, err
	}
	out := &wire.Deployed{Changes: []wire.Change{}}
	for _, v := range c.next {
		out.Changes = append(out.Changes, changes(d.current[v.Tenant], v)...)
	}
	if c.dryRun {
		err = drop(ctx, pieces)
	} else {
		err = d.commit(ctx, pieces, c)
	}
	if err != nil {
		return nil, err
	}
	out.Tag, out.Versions = d.tag(c.who.tenants()...), d.seen(c.who)
	return out, nil
}

// seen returns the versions that run, of those that who may know of.
func (d *Deployer) seen(who Who) []wire.Version {
	out := []wire.Version{}
	for _, tenant := range slices.Sorted(maps.Keys(d.current)) {
		if who.Tenant == "" || who.Tenant == tenant {
			out = append(out, d.describe(d.current[tenant]))
		}
	}
	return out
}

// entries returns what a manifest is to run, by tenant.
func (m *manifest) entries() (map[string][]Entry, error) {
	all := map[string][]Entry{}
	for i := range m.plan.Consumers {
		c := &m.plan.Consumers[i]
		e, err := newEntry(c.Name, m.modules[c.Module.Path], c.Entry, c.CanaryPercent)
		if err != nil {
			return nil, err
		}
		all[c.Tenant] = append(all[c.Tenant], e)
	}
	return all, nil
}

// versions returns the versions that entries, by tenant, make of what runs: those of tenants of which something changes.
func (d *Deployer) versions(who Who, what string, entries map[string][]Entry) (next []*Version) {
	tenants := map[string]bool{}
	if who.Tenant != "" {
		tenants[who.Tenant] = true
	} else {
		for tenant, v := range d.current {
			tenants[tenant] = v.Whole
		}
	}
	for tenant := range entries {
		tenants[tenant] = true
	}
	for _, tenant := range slices.Sorted(maps.Keys(tenants)) {
		if !tenants[tenant] {
			continue
		}
		v := d.newVersion(who, tenant, what)
		v.Entries = append(v.Entries, entries[tenant]...)
		if d.settle(v) {
			next = append(next, v)
		}
	}
	return next
}

// newVersion begins the next version of a tenant.
func (d *Deployer) newVersion(who Who, tenant, what string) *Version {
	return &Version{
		Tenant: tenant, Number: d.numberAfter(tenant), At: time.Now().UTC().Truncate(time.Millisecond),
		By: who.Subject, What: what, Whole: who.Tenant == "", Entries: []Entry{},
	}
}

// settle says since when the entries of a version are what they are, and reports whether it differs from what runs.
func (d *Deployer) settle(v *Version) bool {
	now := d.current[v.Tenant]
	for i := range v.Entries {
		v.Entries[i].settle(now.entry(v.Entries[i].Name), v)
	}
	return now == nil && len(v.Entries) > 0 || now != nil && now.Digest() != v.Digest()
}

// Start makes what was deployed before run again. A manifest that is given is deployed if it differs; chosen says that
// somebody named it: one that merely lies there doesn't replace what was applied or rolled back.
func (d *Deployer) Start(ctx context.Context, plan *config.Plan, chosen bool, subject string) error {
	unlock, err := d.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	who := Who{Subject: subject}
	m := manifest{plan: &config.Plan{}}
	var next []*Version
	switch {
	case plan.File == "":
	case !chosen && d.wasApplied():
		d.Logger.Warn("the manifest in this folder is not read: what was applied runs; name it with --manifest to deploy it",
			zap.String("manifest", plan.File))
	default:
		m = manifest{plan: plan, what: whatRun + " " + filepath.Base(plan.File)}
		if m.modules, err = d.readModules(plan); err != nil {
			return err
		}
		entries, err := m.entries()
		if err != nil {
			return err
		}
		next = d.versions(who, m.what, entries)
	}
	_, err = d.replace(ctx, change{who: who, next: next, given: m.find, unkept: true})
	return err
}

// notKept says that what runs is not kept. A host starts on a full disk all the same: that is how it can be emptied.
func (d *Deployer) notKept(err error) {
	d.Logger.Warn("what runs can't be kept on the disk: the next start needs the manifest again", zap.Error(err))
}

// wasApplied reports whether anything was deployed for the whole host but from files beside it, by starting it.
func (d *Deployer) wasApplied() bool {
	for _, v := range d.current {
		if v.Whole && !strings.HasPrefix(v.What, whatRun+" ") && !strings.HasPrefix(v.What, whatDev+" ") {
			return true
		}
	}
	return false
}

// readModules reads the modules of a manifest on this machine, and keeps them. The error is all faults of them.
func (d *Deployer) readModules(plan *config.Plan) (map[string]string, error) {
	modules := map[string]string{}
	var faults config.Faults
	for i := range plan.Consumers {
		c := &plan.Consumers[i]
		wasm, err := c.ReadModule()
		var fault config.Fault
		if errors.As(err, &fault) {
			faults = append(faults, fault)
			continue
		}
		if err != nil {
			return nil, err
		}
		modules[c.Module.Path] = d.take(c.Tenant, wasm)
	}
	if len(faults) > 0 {
		return nil, faults
	}
	return modules, nil
}

// take keeps a module of this machine, if the disk has room for it, and returns its digest.
func (d *Deployer) take(tenant string, wasm []byte) (digest string) {
	sum := sha256.Sum256(wasm)
	digest = hex.EncodeToString(sum[:])
	if err := d.Store.PutIfNew(tenant, digest, wasm); err != nil {
		d.notKept(err)
		d.unkept[digest] = wasm
	}
	return digest
}
