package rollout

import (
	"context"
	"errors"
	"maps"
	"path/filepath"

	"github.com/longshore/longshore/internal/config"
)

// Source is an entry of a manifest and the module that it is to run.
type Source struct {
	Consumer config.Consumer
	Wasm     []byte // nil: what runs under the entry's name is to go on as it is, if there is any
}

// Outcome is what became of a Source.
type Outcome struct {
	Digest  string // of the module that runs now under the entry's name; "" if there is none
	New     bool   // the module, or what the entry says, is another than what ran
	Refused error  // why the module that was given doesn't run: a config.Fault; nil if it does
}

// Follow makes a manifest what runs, as applying it to the whole host does, but for this: a module that is refused keeps no
// other from being deployed. Its consumer goes on as it ran, or is left out if it didn't. The share of a canary has no effect.
// Follow works where the host takes no other deployments. After an error what ran runs on.
func (d *Deployer) Follow(ctx context.Context, subject, file string, sources []Source) ([]Outcome, error) {
	unlock, err := d.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	f := &following{Deployer: d, sources: sources, modules: make([]string, len(sources)), outcomes: make([]Outcome, len(sources))}
	for i, s := range sources {
		if s.Wasm != nil {
			f.modules[i] = d.take(s.Consumer.Tenant, s.Wasm)
		}
	}
	before := maps.Clone(d.running)
	if err := f.deploy(ctx, Who{Subject: subject}, whatDev+" "+filepath.Base(file)); err != nil {
		return nil, err
	}
	for i := range sources {
		n := f.name(i)
		if now := d.running[n]; now != nil {
			was := before[n]
			f.outcomes[i].Digest, f.outcomes[i].New = now.entry.Module, was == nil || !was.entry.same(now.entry)
		}
	}
	return f.outcomes, nil
}

// following is one call of Follow.
type following struct {
	*Deployer
	sources  []Source
	modules  []string // their digests; "" of one that is to go on as it is
	outcomes []Outcome
}

func (f *following) name(i int) name {
	return name{f.sources[i].Consumer.Tenant, f.sources[i].Consumer.Name}
}

// replaces reports whether a source is to replace what runs under its name.
func (f *following) replaces(i int) bool { return f.modules[i] != "" && f.outcomes[i].Refused == nil }

// deploy makes what runs of all sources whose modules aren't refused, and notes those that are.
func (f *following) deploy(ctx context.Context, who Who, what string) error {
	for {
		entries, err := f.entries()
		if err != nil {
			return err
		}
		_, err = f.replace(ctx, change{who: who, next: f.versions(who, what, entries), given: f.given, unkept: true})
		var refused refusals
		if !errors.As(err, &refused) || !f.note(refused) {
			return err
		}
	}
}

// entries returns what is to run, by tenant.
func (f *following) entries() (map[string][]Entry, error) {
	all := map[string][]Entry{}
	for i := range f.sources {
		n := f.name(i)
		if f.replaces(i) {
			e, err := newEntry(n.name, f.modules[i], f.sources[i].Consumer.Entry, 0)
			if err != nil {
				return nil, err
			}
			all[n.tenant] = append(all[n.tenant], e)
		} else if now := f.running[n]; now != nil {
			all[n.tenant] = append(all[n.tenant], *now.entry)
		}
	}
	return all, nil
}

// given returns the entry at which a fault of a consumer is to be reported; nil if it is not a new one.
func (f *following) given(n name) *config.Consumer {
	for i := range f.sources {
		if f.name(i) == n && f.replaces(i) {
			return &f.sources[i].Consumer
		}
	}
	return nil
}

// note notes what was refused, and reports whether the rest can be deployed: all of it is of sources.
func (f *following) note(refused refusals) bool {
	for _, r := range refused {
		if f.given(r.of) == nil {
			return false
		}
	}
	for i := range f.sources {
		for _, r := range refused {
			if r.of == f.name(i) {
				f.outcomes[i].Refused = r.fault
			}
		}
	}
	return true
}
