package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/internal/config"
)

// prepare resolves and compiles what is to run: the versions that are given, and what runs of the other tenants. given returns
// the entry of the manifest that a fault of a new consumer is to be reported at; nil if there is none. What it returns has
// to be committed or dropped. The error is refusals if consumers can't be deployed.
func (d *Deployer) prepare(ctx context.Context, next []*Version, given func(name) *config.Consumer) ([]*piece, error) {
	pieces, err := d.resolve(next)
	if err != nil {
		return nil, err
	}
	var refused refusals
	for _, p := range pieces {
		err := d.fill(ctx, p, given(p.name()))
		var fault config.Fault
		if errors.As(err, &fault) {
			refused = append(refused, refusal{p.name(), fault})
		} else if err != nil {
			return nil, errors.Join(err, drop(ctx, pieces))
		}
	}
	if len(refused) > 0 {
		return nil, errors.Join(refused, drop(ctx, pieces))
	}
	return pieces, nil
}

// refusals are all that keeps consumers from being deployed. They unwrap to config.Faults.
type refusals []refusal

type refusal struct {
	of    name
	fault config.Fault
}

func (r refusals) faults() (out config.Faults) {
	for _, one := range r {
		out = append(out, one.fault)
	}
	return out
}

// Error implements error.
func (r refusals) Error() string { return r.faults().Error() }

// Unwrap returns the faults.
func (r refusals) Unwrap() error { return r.faults() }

// resolve returns what is to run, without modules.
func (d *Deployer) resolve(next []*Version) (pieces []*piece, err error) {
	all := maps.Clone(d.current)
	for _, v := range next {
		all[v.Tenant] = v
	}
	var bases []*piece
	for _, tenant := range slices.Sorted(maps.Keys(all)) {
		for i := range all[tenant].Entries {
			p := &piece{tenant: tenant, entry: &all[tenant].Entries[i]}
			if p.entry.Base != nil {
				p.base = &piece{tenant: tenant, entry: p.entry.Base}
				bases = append(bases, p.base)
			}
			pieces = append(pieces, p)
		}
	}
	return pieces, errors.Join(d.parse(pieces), d.parse(bases))
}

// parse resolves the entries of pieces under the host config.
func (d *Deployer) parse(pieces []*piece) error {
	entries := make([]json.RawMessage, len(pieces))
	for i, p := range pieces {
		var err error
		if entries[i], err = p.entry.resolvable(p.tenant); err != nil {
			return err
		}
	}
	plan, err := config.ParseEntries("deployed consumers", entries, d.Host)
	if err != nil {
		return err
	}
	for i, p := range pieces {
		p.config = plan.Consumers[i]
	}
	return nil
}

// fill gives a piece its module, and that of its base.
func (d *Deployer) fill(ctx context.Context, p *piece, given *config.Consumer) error {
	if given == nil {
		given = &p.config
	}
	if err := d.findModule(ctx, p, given); err != nil {
		return err
	}
	p.consumer = d.Consumer(&p.config, p.module)
	p.consumer.Version = strconv.Itoa(p.entry.Since)
	if p.base == nil {
		return nil
	}
	if key := differsInLane(&p.config, &p.base.config); key != "" {
		return given.Fault(key, "it differs from the version beside which it is a canary", "want the same, or no canary")
	}
	if err := d.fill(ctx, p.base, nil); err != nil {
		return err
	}
	canary := p.consumer
	p.consumer = p.base.consumer
	p.consumer.Canary = &dispatcher.Canary{Percent: p.entry.Percent, Consumer: canary}
	return nil
}

// differsInLane returns a key that has to be the same in two versions of a consumer that run beside each other; "" if all are.
func differsInLane(a, b *config.Consumer) string {
	for _, of := range []struct {
		key  string
		same bool
	}{
		{"topic", a.Topic == b.Topic},
		{"group", a.Group == b.Group},
		{"ordering", a.Ordering == b.Ordering},
		{"concurrency", a.Concurrency == b.Concurrency},
		{"max_attempts", a.MaxAttempts == b.MaxAttempts},
		{"lease", a.Lease == b.Lease},
		{"batch", a.Batch == b.Batch},
	} {
		if !of.same {
			return of.key
		}
	}
	return ""
}

// findModule gives a piece its module: that which runs, if it is the same.
func (d *Deployer) findModule(ctx context.Context, p *piece, given *config.Consumer) error {
	for now := d.running[p.name()]; now != nil; now = now.base {
		if now.runsOn(p) {
			p.module = now.module
			return nil
		}
	}
	wasm, err := d.read(p.entry.Module)
	if err != nil {
		return fmt.Errorf("read the module of consumer %s of tenant %s: %w", p.entry.Name, p.tenant, err)
	}
	if p.module, err = d.Compile(ctx, given, wasm); err != nil {
		return err
	}
	p.fresh = true
	return nil
}

func (d *Deployer) read(digest string) ([]byte, error) {
	if wasm := d.unkept[digest]; wasm != nil {
		return wasm, nil
	}
	return d.Store.Read(digest)
}

// runsOn reports whether other can run on the module of p.
func (p *piece) runsOn(other *piece) bool {
	return p.entry.Module == other.entry.Module && p.config.Guest == other.config.Guest && p.config.Instances == other.config.Instances
}

// drop gives back the modules that were compiled for nothing.
func drop(ctx context.Context, pieces []*piece) error {
	var errs []error
	for _, p := range pieces {
		for ; p != nil; p = p.base {
			if p.fresh {
				errs = append(errs, p.module.Close(context.WithoutCancel(ctx)))
			}
		}
	}
	return errors.Join(errs...)
}
