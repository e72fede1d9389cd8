package rollout

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

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

// Deployer decides what runs on a host. It is safe for concurrent use; one deployment is made at a time. Who lists versions
// doesn't wait for it.
type Deployer struct {
	Options
	turn    chan struct{} // full while somebody deploys, who alone may use the fields below
	running map[name]*piece
	unkept  map[string][]byte // modules that the disk had no room for, by digest

	mu      sync.RWMutex        // whoever deploys holds it to change current; others may look at current while they hold it
	current map[string]*Version // by tenant

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
	d.mu.Lock()
	for _, v := range c.next {
		d.current[v.Tenant] = v
	}
	d.mu.Unlock()
	for _, v := range c.next {
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
