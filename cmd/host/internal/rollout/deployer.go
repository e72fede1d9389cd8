package rollout

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"go.uber.org/zap"

	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/runtime"
)

// Options are what a Deployer is made of. All fields but Held and Room are required.
type Options struct {
	Host   *config.Host
	Store  *Store
	Logger *zap.Logger
	// Held says that Follow alone decides what runs: every other deployment is ErrHeld.
	Held bool
	// Room is asked while a module is uploaded, and ends that with its error where the disk has no room; nil asks nobody.
	Room func() error
	// Compile makes a module ready; a config.Fault says that it is refused.
	Compile func(ctx context.Context, c *config.Consumer, wasm []byte) (*runtime.Module, error)
	// Consumer returns an entry with its module as the dispatcher takes it.
	Consumer func(c *config.Consumer, m *runtime.Module) dispatcher.Consumer
	// Lanes makes what consumers take messages from, durably. A start of "latest" that has a time was accepted then.
	Lanes func(ctx context.Context, consumers []config.Consumer) error
	// Swap is Dispatcher.Swap.
	Swap func(ctx context.Context, consumers []dispatcher.Consumer) error
	// Rehearse is Dispatcher.NewRehearsal.
	Rehearse func(next dispatcher.Consumer) (*dispatcher.Rehearsal, error)
}

// Deployer decides what runs on a host. It is safe for concurrent use; one deployment is made at a time.
type Deployer struct {
	Options
	turn    chan struct{}       // full while what runs is looked at or changed
	current map[string]*Version // by tenant
	running map[name]*piece
	unkept  map[string][]byte // modules that the disk had no room for, by digest

	rehearsals rehearsals
}

// name tells consumers apart.
type name struct{ tenant, name string }

// piece is one consumer of what runs, or is to.
type piece struct {
	tenant   string
	entry    *Entry
	config   config.Consumer
	module   *runtime.Module
	fresh    bool // the module was compiled for this piece
	consumer dispatcher.Consumer
	base     *piece // that gets the messages which this one, a canary, doesn't; nil if it gets all
}

func (p *piece) name() name { return name{p.tenant, p.entry.Name} }

// New makes a Deployer of a host on which nothing runs yet: see Start.
func New(o Options) *Deployer {
	d := &Deployer{Options: o, turn: make(chan struct{}, 1), current: map[string]*Version{}, running: map[name]*piece{}, unkept: map[string][]byte{}}
	for _, tenant := range o.Store.Tenants() {
		d.current[tenant] = o.Store.Current(tenant)
	}
	return d
}

// Tenants returns the tenants of which versions are kept, in any order.
func (d *Deployer) Tenants() []string { return d.Store.Tenants() }

// ErrHeld says that a host takes no deployments.
var ErrHeld = errors.New("longshore dev decides what runs here: change the manifest that it watches")

// lockChange is lock for whoever wants something else to run.
func (d *Deployer) lockChange(ctx context.Context) (unlock func(), err error) {
	if d.Held {
		return nil, ErrHeld
	}
	return d.lock(ctx)
}

// lock waits for the turn.
func (d *Deployer) lock(ctx context.Context) (unlock func(), err error) {
	select {
	case d.turn <- struct{}{}:
		return func() { <-d.turn }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the deployment before: %w", context.Cause(ctx))
	}
}

// tag names what runs of some tenants, of all if there are none.
func (d *Deployer) tag(tenants ...string) string {
	if len(tenants) == 0 {
		tenants = slices.Sorted(maps.Keys(d.current))
	}
	h := sha256.New()
	for _, tenant := range tenants {
		if v := d.current[tenant]; v != nil {
			_, _ = fmt.Fprintf(h, "%s %d %s\n", tenant, v.Number, v.Digest()) // a hash takes everything
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

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

// commit makes pieces what runs, and the versions that are new what is kept. After an error what ran runs on.
func (d *Deployer) commit(ctx context.Context, pieces []*piece, c change) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, drop(ctx, pieces))
		}
	}()
	if err := d.Lanes(ctx, d.lanes(pieces)); err != nil {
		return err
	}
	kept := c.next
	if err := d.Store.AddAll(kept); err != nil {
		if !c.unkept {
			return err
		}
		d.notKept(err)
		kept = nil
	}
	consumers := make([]dispatcher.Consumer, len(pieces))
	for i, p := range pieces {
		consumers[i] = p.consumer
	}
	if err := d.Swap(ctx, consumers); err != nil {
		return errors.Join(err, d.forget(kept))
	}
	clear(d.running)
	for _, p := range pieces {
		for one := p; one != nil; one = one.base {
			one.fresh = false
		}
		d.running[p.name()] = p
	}
	for _, v := range c.next {
		d.current[v.Tenant] = v
		d.Logger.Info("consumers deployed", zap.String("tenant", v.Tenant), zap.Int("version", v.Number), zap.String("digest", v.Digest()),
			zap.String("by", v.By), zap.String("what", v.What), zap.Int("consumers", len(v.Entries)))
	}
	d.dropUnkept()
	return nil
}

// dropUnkept forgets the modules in memory that nothing runs any more.
func (d *Deployer) dropUnkept() {
	maps.DeleteFunc(d.unkept, func(digest string, _ []byte) bool {
		for _, v := range d.current {
			if slices.Contains(v.modules(), digest) {
				return false
			}
		}
		return true
	})
}

// lanes returns the consumers whose lanes may have to be made: those that don't run as they are.
func (d *Deployer) lanes(pieces []*piece) (out []config.Consumer) {
	for _, p := range pieces {
		if now := d.running[p.name()]; now != nil && now.entry.same(p.entry) {
			continue
		}
		c := p.config
		if c.Start != nil && c.Start.Kind == config.StartLatest && p.entry.Since != d.numberAfter(p.tenant) {
			c.Start = &config.Start{Kind: config.StartLatest, Time: p.entry.Accepted}
		}
		out = append(out, c)
	}
	return out
}

// numberAfter returns the number of the next version of a tenant.
func (d *Deployer) numberAfter(tenant string) int { return d.current[tenant].number() + 1 }

func (d *Deployer) forget(versions []*Version) error {
	var errs []error
	for _, v := range versions {
		errs = append(errs, d.Store.Remove(v))
	}
	return errors.Join(errs...)
}
