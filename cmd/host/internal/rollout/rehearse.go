package rollout

import (
	"context"
	"errors"
	"strconv"
	"sync"

	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/limits"
)

// ErrNoConsumer says that a manifest has no consumer of the name that is to be rehearsed.
var ErrNoConsumer = errors.New("the manifest has no consumer of that name and tenant")

// ErrRehearsing says that a rehearsal of the tenant is under way.
var ErrRehearsing = errors.New("a rehearsal of this tenant is under way: wait until it has ended")

// Rehearsal is one of the consumers of a manifest, ready to be run beside what runs. It must be closed.
type Rehearsal struct {
	*dispatcher.Rehearsal
	end func()
}

// Close ends the rehearsal.
func (r *Rehearsal) Close(ctx context.Context) {
	r.Rehearsal.Close(ctx)
	r.end()
}

// Rehearse resolves and compiles one consumer of a manifest, as Apply does, and deploys nothing: who.Tenant is its tenant. The share of a
// canary has no effect. Errors beside those of Apply are ErrNoConsumer, ErrRehearsing, a *limits.Error for too many rehearsals
// at once, and those of Options.Rehearse.
func (d *Deployer) Rehearse(ctx context.Context, who Who, q wire.Rehearse) (_ *Rehearsal, err error) {
	end, err := d.rehearsals.begin(who.Tenant)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			end()
		}
	}()
	unlock, err := d.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	p, err := d.candidate(ctx, who, q)
	if err != nil {
		return nil, err
	}
	r, err := d.Options.Rehearse(p.consumer)
	if err != nil {
		return nil, errors.Join(err, drop(ctx, []*piece{p}))
	}
	return &Rehearsal{Rehearsal: r, end: end}, nil
}

// candidate returns the consumer of a manifest that is to be rehearsed.
func (d *Deployer) candidate(ctx context.Context, who Who, q wire.Rehearse) (*piece, error) {
	plan, err := d.planOf(q.File, q.Manifest)
	if err != nil {
		return nil, err
	}
	m := manifest{plan: plan, modules: q.Modules}
	given := m.find(name{who.Tenant, q.Consumer})
	if given == nil {
		return nil, ErrNoConsumer
	}
	if faults := d.modulesOf(&config.Plan{Consumers: []config.Consumer{*given}}, who, q.Modules); len(faults) > 0 {
		return nil, faults
	}
	e, err := newEntry(given.Name, q.Modules[given.Module.Path], given.Entry, 0)
	if err != nil {
		return nil, err
	}
	p := &piece{tenant: who.Tenant, entry: &e}
	if err := d.parse([]*piece{p}); err != nil {
		return nil, err
	}
	var fault config.Fault
	if err := d.findModule(ctx, p, given); errors.As(err, &fault) {
		return nil, config.Faults{fault}
	} else if err != nil {
		return nil, err
	}
	p.consumer = d.Consumer(&p.config, p.module)
	p.consumer.Version = strconv.Itoa(d.numberAfter(who.Tenant)) // that it would be of
	return p, nil
}

// rehearsals are the tenants of which one is under way.
type rehearsals struct {
	mu sync.Mutex
	of map[string]bool
}

// begin begins one of a tenant. end is to be called when it has ended.
func (r *rehearsals) begin(tenant string) (end func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of[tenant] {
		return nil, ErrRehearsing
	}
	if err := limits.Check(limits.NameRehearsals, int64(len(r.of))+1, limits.Rehearsals); err != nil {
		return nil, err
	}
	if r.of == nil {
		r.of = map[string]bool{}
	}
	r.of[tenant] = true
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.of, tenant)
	}, nil
}
