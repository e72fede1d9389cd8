package api

import (
	"context"
	"sync"
)

// AdminTenantStreams bounds those of AdminStreams that the bearers of one tenant have at once, so that none takes all.
const AdminTenantStreams = AdminStreams / 4

// slots counts what is under way of something, such as streams that are open. It is safe for concurrent use.
type slots struct {
	most         int // at once; 0 is any number
	mostOfTenant int // of the bearers of one tenant

	mu       sync.Mutex
	all      int
	byTenant map[string]int // of bearers
}

func newSlots(most, mostOfTenant int) *slots {
	return &slots{most: most, mostOfTenant: mostOfTenant, byTenant: map[string]int{}}
}

// take begins one for whoever asks, if there may be one more. What it returns ends it.
func (s *slots) take(ctx context.Context) (giveBack func(), ok bool) {
	tenant, bounded := "", false
	if c := credentialOf(ctx); c != nil {
		tenant, bounded = c.Tenant, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.most > 0 && s.all == s.most || bounded && s.byTenant[tenant] == s.mostOfTenant {
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
