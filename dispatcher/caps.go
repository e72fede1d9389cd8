package dispatcher

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"golang.org/x/time/rate"

	"github.com/longshore/longshore/limits"
)

// Caps bound what the guests of one tenant may take, over all of its consumers. A field of 0 is no bound beside the host's own.
type Caps struct {
	Running        int   // guests that run, or wait for replies, at once; the others wait for their turn
	LogBytesPerSec int64 // that they write to the log, with a burst of one second's worth; at least limits.GuestLogLineBytes
}

// turns is how many turns there may be at once.
func (c Caps) turns() int {
	if c.Running == 0 {
		return math.MaxInt
	}
	return c.Running
}

// logBytes makes the bucket that the tenant's log is drawn from.
func (c Caps) logBytes() *rate.Limiter {
	if c.LogBytesPerSec == 0 {
		return rate.NewLimiter(rate.Inf, 0)
	}
	return rate.NewLimiter(rate.Limit(c.LogBytesPerSec), int(c.LogBytesPerSec))
}

// capFaults lists what is wrong with caps, in the order of the tenants.
func capFaults(caps map[string]Caps) (faults []error) {
	for _, tenant := range slices.Sorted(maps.Keys(caps)) {
		c := caps[tenant]
		if c.Running < 0 {
			faults = append(faults, fmt.Errorf("dispatcher: caps of tenant %q: %d guests at once: want 1 or more", tenant, c.Running))
		}
		if c.LogBytesPerSec != 0 && c.LogBytesPerSec < limits.GuestLogLineBytes {
			faults = append(faults, fmt.Errorf("dispatcher: caps of tenant %q: %d log bytes a second: want at least %d, one line",
				tenant, c.LogBytesPerSec, limits.GuestLogLineBytes))
		}
	}
	return faults
}

// isFull reports whether the tenant may have no more turns than it has. Those that left their worker may come back.
func (tt *tenantTurns) isFull() bool { return tt.used.running+tt.away >= tt.most }

// mayRun reports whether one of the tenant's turns may begin, or go on.
func (tt *tenantTurns) mayRun() bool { return !tt.isFull() || tt.longest() >= 0 }

// mayLeave returns how many guests of a tenant may wait for replies at once. It leaves room for one that replies.
func (w *workers) mayLeave(tenant string) int {
	return min(limits.TenantWaiting, w.caps[tenant].turns()-1)
}

// TenantStatus says what the guests of one tenant were held back from, since the dispatcher was made.
type TenantStatus struct {
	Tenant       string
	Running      int    // guests
	Held         uint64 // times that a worker went to another tenant, or to none, because of Caps.Running
	LogBytesLost int64  // of lines that were not logged, whatever for
}

// Tenants returns the state of every tenant that has consumers, by name.
func (d *Dispatcher) Tenants() []TenantStatus {
	d.mu.Lock()
	logs := d.logs // which is replaced, never changed
	d.mu.Unlock()
	list := make([]TenantStatus, 0, len(logs))
	for _, name := range slices.Sorted(maps.Keys(logs)) {
		s := TenantStatus{Tenant: name, LogBytesLost: logs[name].lost.Load()}
		s.Running, s.Held = d.shared.workers.ofTenant(name)
		list = append(list, s)
	}
	return list
}

// ofTenant returns how many turns a tenant has, and how often it was held.
func (w *workers) ofTenant(tenant string) (running int, held uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if tt := w.tenants[tenant]; tt != nil {
		return tt.used.running, tt.held
	}
	return 0, 0
}
