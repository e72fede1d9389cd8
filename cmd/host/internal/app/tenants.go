package app

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/longshore/longshore/cmd/host/internal/telemetry"
	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/substrate"
)

// budgets are the bounds of tenants on what the runtime makes for them. It is safe for concurrent use.
type budgets struct {
	host      *config.Host
	mu        sync.Mutex
	instances map[string]*runtime.Budget // of the tenants that a module was compiled for
}

// newBudgets makes the budgets of a host config, in which nothing is used.
func newBudgets(h *config.Host) *budgets {
	return &budgets{host: h, instances: map[string]*runtime.Budget{}}
}

// within returns what bounds the modules of a tenant.
func (b *budgets) within(tenant string) runtime.Within {
	caps := b.host.CapsOf(tenant)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.instances[tenant] == nil {
		b.instances[tenant] = runtime.NewBudget(int(caps.Instances))
	}
	return runtime.Within{Budget: b.instances[tenant], CompileCPU: caps.CompileTime}
}

// counts returns how many instances each tenant has.
func (b *budgets) counts() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make(map[string]int, len(b.instances))
	for name, budget := range b.instances {
		out[name] = budget.Instances()
	}
	return out
}

// forget forgets a tenant that has no modules.
func (b *budgets) forget(tenant string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.instances, tenant)
}

// logCaps returns the caps that the log keeps.
func logCaps(h *config.Host) map[string]substrate.TenantCaps {
	out := map[string]substrate.TenantCaps{}
	for _, t := range h.Tenants {
		c := t.Caps
		own := substrate.TenantCaps{Messages: c.Messages, Bytes: c.Bytes, RatePerSec: c.RatePerSec, Topics: c.Topics, ValueBytes: c.ValueBytes}
		if own != (substrate.TenantCaps{}) {
			out[t.Name] = own
		}
	}
	return out
}

// guestCaps returns the caps that the dispatcher keeps.
func guestCaps(h *config.Host) map[string]dispatcher.Caps {
	out := map[string]dispatcher.Caps{}
	for _, t := range h.Tenants {
		own := dispatcher.Caps{Running: int(t.Caps.Instances), LogBytesPerSec: t.Caps.LogBytesPerSec}
		if own != (dispatcher.Caps{}) {
			out[t.Name] = own
		}
	}
	return out
}

// deleteTenant deletes all of a tenant of which nothing runs.
func (p *parts) deleteTenant(ctx context.Context, tenant string) error {
	err := p.rollout.Delete(ctx, tenant, func(versions func() error) error { return p.log.DeleteTenant(ctx, tenant, versions) })
	if err != nil {
		return fmt.Errorf("delete tenant %s: %w", tenant, err)
	}
	p.budgets.forget(tenant)
	p.metrics.Forget(tenant)
	p.Logger.Info("tenant deleted", zap.String("tenant", tenant))
	return nil
}

// finishDeletions deletes what is left outside of the log of tenants whose deletion a crash has interrupted.
func (p *parts) finishDeletions(ctx context.Context) error {
	for _, tenant := range p.log.Recovered().Deleted {
		if err := p.rollout.Forget(ctx, tenant); err != nil {
			return err
		}
		p.Logger.Info("tenant deleted: a crash had interrupted that", zap.String("tenant", tenant))
	}
	return nil
}

// tenants returns what each tenant uses and may use, for the metrics.
func (p *parts) tenants() []telemetry.Tenant {
	all := map[string]*telemetry.Tenant{}
	of := func(name string) *telemetry.Tenant {
		if all[name] == nil {
			all[name] = &telemetry.Tenant{Name: name, Used: map[string]float64{}, Caps: map[string]float64{}, Refused: map[string]float64{}}
		}
		return all[name]
	}
	for _, t := range p.log.Tenants() {
		m := of(t.Name)
		m.Used["messages"], m.Used["bytes"], m.Used["topics"] = float64(t.Messages), float64(t.Bytes), float64(t.Topics)
		m.Used["value_bytes"] = float64(t.ValueBytes)
		for name, n := range t.Refused {
			m.Refused[capLabel(name)] = float64(n)
		}
	}
	for _, t := range p.dispatcher.Tenants() {
		m := of(t.Tenant)
		m.Refused["instances"], m.Refused["log_bytes_per_sec"] = float64(t.Held), float64(t.LogBytesLost)
	}
	for _, c := range p.dispatcher.Consumers() {
		of(c.Tenant).Used["consumers"]++
	}
	for name, n := range p.budgets.counts() {
		of(name).Used["instances"] = float64(n)
	}
	list := make([]telemetry.Tenant, 0, len(all))
	for _, m := range all {
		caps, log := p.Host.CapsOf(m.Name), p.caps.Load().CapsOf(m.Name)
		caps.Messages, caps.Bytes, caps.RatePerSec, caps.Topics, caps.ValueBytes = log.Messages, log.Bytes, log.RatePerSec, log.Topics, log.ValueBytes
		m.Caps = capValues(caps)
		list = append(list, *m)
	}
	return list
}

// capLabel is what the host config calls a cap of the log.
func capLabel(name limits.Name) string {
	labels := map[limits.Name]string{
		limits.NameTenantMessages: "messages", limits.NameTenantBytes: "bytes", limits.NameTenantRate: "rate_per_sec",
		limits.NameTopics: "topics", limits.NameTenantValues: "value_bytes",
	}
	return labels[name]
}

// capValues returns the caps that are set, in base units.
func capValues(c config.Caps) map[string]float64 {
	out := map[string]float64{}
	for name, n := range map[string]int64{
		"messages": c.Messages, "bytes": c.Bytes, "rate_per_sec": c.RatePerSec, "topics": c.Topics, "consumers": c.Consumers,
		"instances": c.Instances, "log_bytes_per_sec": c.LogBytesPerSec, "value_bytes": c.ValueBytes,
		"compile_time": int64(c.CompileTime / time.Second),
	} {
		if n > 0 {
			out[name] = float64(n)
		}
	}
	return out
}
