package api

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/signedctx/bearer"
)

// asBearer returns a context as that of a request of a bearer.
func asBearer(ctx context.Context, tenant string) context.Context {
	return context.WithValue(ctx, credentialKey{}, &credential{Identity: bearer.Identity{Tenant: tenant}})
}

func TestStreamSlots(t *testing.T) {
	of := func(tenant string) context.Context { return asBearer(t.Context(), tenant) }
	s := newSlots(AdminStreams, AdminTenantStreams)
	var back []func()
	take := func(ctx context.Context) bool {
		give, ok := s.take(ctx)
		if ok {
			back = append(back, give)
		}
		return ok
	}
	for range AdminTenantStreams {
		require.True(t, take(of("acme")))
	}
	require.False(t, take(of("acme")), "one tenant doesn't take all")
	require.True(t, take(of("other")))
	for range AdminStreams - AdminTenantStreams - 1 {
		require.True(t, take(t.Context()), "the operator takes what there is")
	}
	require.False(t, take(t.Context()))
	require.False(t, take(of("third")))
	back[0]()
	require.True(t, take(of("acme")), "one that was closed is free")
	for _, give := range back[1:] {
		give()
	}
	require.Zero(t, s.all)
	require.Empty(t, s.byTenant)
}
