package api

import (
	"context"
	"sync"
)

// AdminTenantStreams bounds those of AdminStreams that the bearers of one tenant have at once, so that none takes all.
const AdminTenantStreams = AdminStreams / 4

// slots counts the streams that are open. It is safe for concurrent use.
type slots struct {
	mu       sync.Mutex
	all      int
	byTenant map[string]int // of bearers
}

func newSlots() *slots { return &slots{byTenant: map[string]int{}} }

// take opens a stream for whoever asks, if there may be one more. What it returns closes it.
func (s *slots) take(ctx context.Context) (giveBack func(), ok bool) {
	tenant, bounded := "", false
	if c := credentialOf(ctx); c != nil {
		tenant, bounded = c.Tenant, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == AdminStreams || bounded && s.byTenant[tenant] == AdminTenantStreams {
		return nil, false
	}
	s.all++
	if bounded {
		s.byTenant[tenant]++
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all--
		if !bounded {
			return
		}
		if s.byTenant[tenant]--; s.byTenant[tenant] == 0 {
			delete(s.byTenant, tenant)
		}
	}, true
}
