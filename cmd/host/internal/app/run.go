package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/longshore/longshore/cmd/host/internal/api"
	"github.com/longshore/longshore/cmd/host/internal/ingest"
	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/limits"
)

// Run runs a host until ctx is done, and then stops it: no more requests, no more claims, the grace period for what runs,
// and the log closed last. It returns ErrStorageFault if the log stopped by itself, and what went wrong otherwise.
func Run(ctx context.Context, o Options) (err error) {
	o.Logger.Info("host is starting", zap.String("data", o.Host.Data), zap.String("manifest", o.Plan.File))
	p, closeAll, err := open(ctx, o)
	defer func() { err = errors.Join(err, closeParts(closeAll, errors.Is(err, ErrStorageFault))) }()
	if err != nil {
		return err
	}
	servers, addr, err := p.listen(ctx)
	if err != nil {
		return err
	}
	p.Logger.Info("host is ready", zap.String("http", addr), zap.String("admin", o.Host.Listen.Admin), zap.String("cleaning", p.engine.Cleaning()),
		zap.String("data", o.Host.Data), zap.Int("consumers", len(p.dispatcher.Consumers())), zap.String("version", o.Build.Version))
	err = p.serve(ctx, servers)
	p.Logger.Info("host has stopped", zap.Error(err))
	return err
}

// closeParts closes what was opened. After a storage fault it doesn't wait for ever: the store below the log may try to
// write what the disk refuses until the process ends, and the log is safe without.
func closeParts(closeAll func() error, faulty bool) error {
	closed := make(chan error, 1)
	go func() { closed <- closeAll() }()
	var late <-chan time.Time
	if faulty {
		late = time.After(closeAfterFault)
	}
	select {
	case err := <-closed:
		if err != nil {
			return fmt.Errorf("close: %w", err)
		}
		return nil
	case <-late:
		return nil
	}
}

// serve runs servers and dispatcher until ctx is done or one of them fails.
func (p *parts) serve(ctx context.Context, servers []*api.Server) error {
	group, ctx := errgroup.WithContext(ctx)
	p.ready.serving.Store(true) // before the first request
	for _, s := range servers {
		group.Go(s.Serve)
		group.Go(func() error {
			<-ctx.Done()
			stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopHTTP)
			defer cancel()
			return s.Stop(stop)
		})
	}
	group.Go(func() error { return p.dispatcher.Run(ctx) })
	group.Go(func() error { p.reload(ctx); return nil })
	if p.Beside != nil {
		group.Go(func() error { return p.Beside(ctx, p.follow) })
	}
	group.Go(func() error {
		select {
		case <-p.log.Done():
			return fmt.Errorf("%w: %w", ErrStorageFault, p.log.Err())
		case <-ctx.Done():
			p.ready.serving.Store(false)
			p.Logger.Info("host is stopping", zap.Duration("grace", p.Host.Grace))
			return nil
		}
	})
	return group.Wait()
}

// listen opens the listeners. It returns the address of the data listener as well: its port may have been 0.
func (p *parts) listen(ctx context.Context) ([]*api.Server, string, error) {
	var lc net.ListenConfig
	tcp, err := lc.Listen(ctx, "tcp", p.Host.Listen.HTTP)
	if err != nil {
		return nil, "", fmt.Errorf("listen for HTTP: %w; set listen.http to a free address", err)
	}
	socket, err := api.ListenSocket(ctx, p.Host.Listen.Admin)
	if err != nil {
		return nil, "", errors.Join(err, tcp.Close())
	}
	tenants, err := p.listenTenants(ctx)
	if err != nil {
		return nil, "", errors.Join(err, tcp.Close(), socket.Close())
	}
	p.metrics.Watch(p.log, p.dispatcher.Consumers)
	p.metrics.WatchTenants(p.tenants)
	p.metrics.WatchRequests(p.dispatcher.Requests)
	publisher := ingest.New(p.log, p.context)
	addr := tcp.Addr().String()
	dataHandler := api.NewData(api.DataOptions{
		Publish: publisher.Publish, Anonymous: anonymous(p.Host), Bearers: p.bearers, Keys: p.keys,
		MaxBytes: p.maxBytes, Ready: p.ready.check, Log: p.Logger,
	})
	admin := api.NewAdmin(api.AdminOptions{
		Log: p.log, Context: p.context, Publish: publisher.Publish, Consumers: p.dispatcher.Consumers, Resume: p.dispatcher.Resume, Keys: p.keys, Deploy: p.rollout, DeleteTenant: p.deleteTenant,
		Info:    wire.HostInfo{Version: p.Build.Version, PID: os.Getpid(), HTTP: addr, Data: p.Host.Data, Started: p.started.UTC()},
		Metrics: p.metrics.Handler(p.Logger), Ready: p.ready.check, Logger: p.Logger,
	})
	servers := []*api.Server{
		api.NewServer(tcp, dataHandler, api.DataConnections, p.Logger),
		api.NewServer(socket, admin.Local(), api.AdminConnections, p.Logger),
	}
	if tenants != nil {
		servers = append(servers, api.NewServer(tenants, admin.Remote(p.bearers, p.Logger), api.AdminConnections, p.Logger))
		p.Logger.Info("admin interface for bearers of tokens", zap.Stringer("address", tenants.Addr()))
	}
	return servers, addr, nil
}

// listenTenants opens the listener of the admin interface for bearers of tokens; nil if there is to be none.
func (p *parts) listenTenants(ctx context.Context) (net.Listener, error) {
	if p.Host.Listen.AdminHTTP == "" {
		return nil, nil
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", p.Host.Listen.AdminHTTP)
	if err != nil {
		return nil, fmt.Errorf("listen for the admin interface: %w; set listen.admin_http to a free address", err)
	}
	return l, nil
}

// reload reads the signing keys again, and of the host config what may change, whenever it is told to, until ctx is done.
func (p *parts) reload(ctx context.Context) {
	for {
		select {
		case <-p.Reload:
			if err := p.keys.Reload(); err != nil {
				p.Logger.Error("signing keys are not read", zap.Error(err))
			}
			if err := p.reloadTenants(); err != nil {
				p.Logger.Error("the host config is not read: what it said of tenants before holds", zap.Error(err))
			}
		case <-ctx.Done():
			return
		}
	}
}

// reloadTenants reads the host config again, and takes from it issuers, grants, and the caps that the log keeps. The rest counts
// from the next start on.
func (p *parts) reloadTenants() error {
	if p.ReadHost == nil {
		return nil
	}
	h, err := p.ReadHost()
	if err != nil {
		return err
	}
	if err := p.bearers.Reload(h); err != nil {
		return err
	}
	if err := p.log.SetTenantCaps(logCaps(h)); err != nil {
		return err
	}
	p.caps.Store(h)
	p.Logger.Info("issuers, grants and caps of tenants are read", zap.Int("tenants", len(h.Tenants)))
	return nil
}

// maxBytes returns the largest payload that a topic takes.
func (p *parts) maxBytes(tenant, topic string) int64 {
	v, err := p.log.Policy(tenant, topic)
	if err != nil || !v.MaxMessageBytes.Set {
		return limits.MessageBytes
	}
	return v.MaxMessageBytes.Value
}

// anonymous returns who may publish without saying who they are: see api.DataOptions.
func anonymous(h *config.Host) func(named, topic string) (string, bool) {
	return func(named, topic string) (string, bool) {
		if named == "" {
			return h.AnonymousTenant(topic)
		}
		return named, h.AnonymousAllowed(named, topic)
	}
}
