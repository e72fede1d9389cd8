// Package app puts a host together and runs it: log, keys, modules, dispatcher, HTTP. It is the only place that knows all
// the parts; open says in which order they come up, and Run how they go down.
package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/longshore/longshore/cmd/host/internal/api"
	"github.com/longshore/longshore/cmd/host/internal/bearers"
	"github.com/longshore/longshore/cmd/host/internal/keys"
	"github.com/longshore/longshore/cmd/host/internal/rollout"
	"github.com/longshore/longshore/cmd/host/internal/telemetry"
	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/signedctx/bearer"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

// Options is what a host is made of. All fields but Reload, Chosen and Beside are required.
type Options struct {
	Host *config.Host
	Plan *config.Plan // the manifest, deployed at the start; one without a File is none
	// Chosen says that somebody named the manifest: see rollout.Deployer.Start.
	Chosen bool
	Logger *zap.Logger
	Build  telemetry.Build
	Reload <-chan os.Signal // each reads the signing keys again, and the host config; nil is never
	// ReadHost reads the host config again: of it, issuers, grants and caps of tenants count. nil leaves them as they are.
	ReadHost func() (*config.Host, error)
	// Compiler is the command of a process that compiles one module, see runtime.Options.
	Compiler []string
	// Beside runs while the host does, and may replace its consumers. Its error stops the host. nil is nothing.
	Beside func(ctx context.Context, follow Follow) error
}

// Follow makes a manifest what runs: see rollout.Deployer.Follow.
type Follow func(ctx context.Context, sources []rollout.Source) ([]rollout.Outcome, error)

const (
	stopHTTP        = 5 * time.Second // that requests may take to end when the host stops
	closeAfterFault = 2 * time.Second // that closing may take after a storage fault
)

// LogDir returns the folder of the log within a data folder.
func LogDir(data string) string { return filepath.Join(data, "log") }

// deploymentsDir returns the folder of what is deployed within a data folder.
func deploymentsDir(data string) string { return filepath.Join(data, "deployments") }

// cacheDir returns the folder of compiled modules.
func cacheDir(data string) string { return filepath.Join(data, "cache") }

// ErrStorageFault says that the log stopped for good: what was acknowledged is on disk, and nothing more can be.
var ErrStorageFault = errors.New("the log stopped after a storage fault; what was acknowledged is safe: " +
	"check the disk, then start the host again")

// parts are the running parts of a host.
type parts struct {
	Options
	log        *substrate.Log
	context    *signedctx.Context
	keys       *keys.Manager
	bearers    *bearers.Bearers
	engine     *runtime.Engine
	metrics    *telemetry.Metrics
	dispatcher *dispatcher.Dispatcher
	rollout    *rollout.Deployer
	deaths     chan []substrate.DeadLetter // of messages that expired, to be told of
	budgets    *budgets
	caps       atomic.Pointer[config.Host] // that the log's caps are from
	ready      readiness
	started    time.Time
}

// readiness says whether the host takes messages.
type readiness struct {
	serving atomic.Bool
	log     *substrate.Log
}

// check returns nil, or why the host takes no messages.
func (r *readiness) check() error {
	select {
	case <-r.log.Done():
		return errors.New("the log has stopped")
	default:
	}
	if !r.serving.Load() {
		return errors.New("the host is starting or stopping")
	}
	return nil
}

// open makes the parts in their order: the log first, because its lock says that this host is the only one. A host that
// answers on the socket is noticed before, without waiting for the lock. The returned function closes what was opened, also when there is an error.
func open(ctx context.Context, o Options) (p *parts, closeAll func() error, err error) {
	p = &parts{
		Options: o, metrics: telemetry.NewMetrics(o.Build), deaths: make(chan []substrate.DeadLetter, limits.ExpiredBatches), started: time.Now(),
	}
	p.caps.Store(o.Host)
	var closers []func() error
	closeAll = func() error {
		var errs []error
		for i := len(closers) - 1; i >= 0; i-- {
			errs = append(errs, closers[i]())
		}
		return errors.Join(errs...)
	}
	if info, err := os.Stat(o.Host.Data); err == nil && !info.IsDir() {
		return p, closeAll, config.Fault{File: o.Host.Data, Problem: "the data folder is a file", Fix: "want a folder, or a path where one can be made, in --data-dir or data"}
	}
	if _, err := api.CheckSocket(ctx, o.Host.Listen.Admin); err != nil {
		return p, closeAll, err
	}
	if err := os.MkdirAll(o.Host.Data, 0o700); err != nil {
		return p, closeAll, fmt.Errorf("data folder: %w", err)
	}
	expiries := telemetry.NewExpiries(p.metrics, o.Logger)
	closers = append(closers, func() error { expiries.Close(); return nil })
	if p.log, err = OpenLog(ctx, o.Host, p.expired(expiries)); err != nil {
		return p, closeAll, err
	}
	closers = append(closers, p.log.Close)
	reportLog(o.Logger, p.log.Recovered(), o.Host.Storage.Low, freeBytes, LogDir(o.Host.Data))
	p.ready.log = p.log
	if err = applyTopics(ctx, o.Logger, p.log, o.Host.Topics); err != nil {
		return p, closeAll, err
	}
	if p.context, err = OpenContext(o.Host); err != nil {
		return p, closeAll, err
	}
	p.keys = keys.New(keyFolder(o.Host), p.context, p.log, o.Logger)
	if p.bearers, err = bearers.New(o.Host, bearer.Options{}); err != nil {
		return p, closeAll, err
	}
	if p.engine, err = runtime.New(ctx, runtime.Options{CacheDir: cacheDir(o.Host.Data), Compiler: o.Compiler}); err != nil {
		return p, closeAll, fmt.Errorf("start the runtime: %w", err)
	}
	closers = append(closers, func() error { return p.engine.Close(context.WithoutCancel(ctx)) })
	if p.dispatcher, err = newDispatcher(p); err != nil {
		return p, closeAll, err
	}
	return p, closeAll, p.startConsumers(ctx)
}

// startConsumers deploys what was deployed before, or the manifest.
func (p *parts) startConsumers(ctx context.Context) error {
	store, err := rollout.OpenStore(deploymentsDir(p.Host.Data))
	if err != nil {
		return fmt.Errorf("open the folder of deployments: %w", err)
	}
	p.rollout = rollout.New(rollout.Options{
		Host: p.Host, Store: store, Logger: p.Logger, Held: p.Beside != nil, Consumer: consumerOf,
		Swap: p.dispatcher.Swap, Rehearse: p.dispatcher.NewRehearsal, Room: p.log.Room,
		Compile: func(ctx context.Context, c *config.Consumer, wasm []byte) (*runtime.Module, error) {
			return compileOne(ctx, p.engine, c, wasm, p.budgets)
		},
		Lanes: func(ctx context.Context, consumers []config.Consumer) error {
			return makeLanes(ctx, p.Logger, p.log, consumers)
		},
	})
	if err := p.finishDeletions(ctx); err != nil {
		return err
	}
	if p.Beside != nil {
		return nil
	}
	return p.rollout.Start(ctx, p.Plan, p.Chosen, localSubject())
}

// localSubject names whoever started the host.
func localSubject() string { return fmt.Sprintf("local:%d", os.Getuid()) }

// follow is a Follow of the manifest that the host was started with.
func (p *parts) follow(ctx context.Context, sources []rollout.Source) ([]rollout.Outcome, error) {
	return p.rollout.Follow(ctx, localSubject(), p.Plan.File, sources)
}

// OpenLog opens the log of a host with its topics' policies, to tell expired, which may be nil, of messages that expire: see
// substrate.Options. No other process may have it open.
func OpenLog(ctx context.Context, h *config.Host, expired func([]substrate.DeadLetter)) (*substrate.Log, error) {
	log, err := substrate.Open(ctx, substrate.Options{
		Dir: LogDir(h.Data), Expired: expired,
		StorageLowBytes: uint64(h.Storage.Low), StorageReserveBytes: uint64(h.Storage.Reserve),
	})
	if err != nil {
		return nil, openError(LogDir(h.Data), err)
	}
	if err := errors.Join(log.SetDefaults(policies(h)), log.SetTenantCaps(logCaps(h))); err != nil {
		return nil, errors.Join(fmt.Errorf("set the policies of the host config: %w", err), log.Close())
	}
	return log, nil
}

// OpenContext loads the host's keys, or makes them on the first start.
func OpenContext(h *config.Host) (*signedctx.Context, error) {
	k, err := keyFolder(h).Load()
	if err != nil {
		return nil, fmt.Errorf("load the signing keys in %s: %w", h.Keys, err)
	}
	return signedctx.New(k, h.Issuer, time.Now)
}

// keyFolder returns where the host's keys are, and which are made.
func keyFolder(h *config.Host) signedctx.Folder {
	seal := signedctx.HS256
	if h.Seal == config.SealJWS {
		seal = signedctx.EdDSA
	}
	return signedctx.Folder{Dir: h.Keys, Seal: seal, Trust: h.Trust}
}

// maxAge returns how old a message of a topic may be when it is delivered; 0 is any age.
func (p *parts) maxAge(tenant, topic string) time.Duration {
	v, err := p.log.Policy(tenant, topic)
	if err != nil || !v.MaxAgeMilli.Set {
		return 0
	}
	return time.Duration(v.MaxAgeMilli.Value) * time.Millisecond
}

// newDispatcher makes a dispatcher without consumers.
func newDispatcher(p *parts) (*dispatcher.Dispatcher, error) {
	p.budgets = newBudgets(p.Host)
	shares := make(map[string]dispatcher.Share, len(p.Host.Shares))
	for _, s := range p.Host.Shares {
		shares[s.Tenant] = dispatcher.Share{Weight: s.Weight, FloorPercent: s.FloorPercent}
	}
	d, err := dispatcher.New(dispatcher.Options{
		Shares: shares, Caps: guestCaps(p.Host), MaxAge: p.maxAge, Expired: p.deaths,
		Queue: p.log, Context: p.context, Logger: p.Logger, Observer: p.metrics, Grace: p.Host.Grace,
	})
	if err != nil {
		return nil, fmt.Errorf("make the dispatcher: %w", err)
	}
	return d, nil
}

// consumerOf returns an entry of the manifest as the dispatcher takes it.
func consumerOf(c *config.Consumer, module *runtime.Module) dispatcher.Consumer {
	consumer := dispatcher.Consumer{
		Name: c.Name, Tenant: c.Tenant, Topic: c.Topic, Lane: c.Group, Guest: module, Limits: c.Guest,
		Concurrency: c.Concurrency, MaxAttempts: c.MaxAttempts, Lease: c.Lease,
		Retry:           dispatcher.Retry{Base: c.Retry.Base, Cap: c.Retry.Cap},
		ContextOptional: !c.ContextRequired, Publish: c.Publish, Immediate: c.Immediate, Clients: c.Clients, Buckets: c.Buckets, NonRetryable: c.NonRetryable,
		Batch:   dispatcher.Batch{Max: c.Batch.Max, Window: c.Batch.Window, Latest: c.Batch.Latest},
		Breaker: dispatcher.Breaker{Percent: c.Breaker.Percent, Window: c.Breaker.Window, Calls: c.Breaker.Calls},
		Events:  dispatcher.Events(c.Events),
		Filter:  c.Filter, Features: c.Features,
	}
	for _, p := range c.Config {
		consumer.Config = append(consumer.Config, messaging.Pair{Key: p[0], Value: p[1]})
	}
	return consumer
}
