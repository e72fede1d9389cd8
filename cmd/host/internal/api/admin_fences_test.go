package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/cmd/host/internal/client"
	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate"
)

func TestAdminFences(t *testing.T) {
	h := newHarness(t)
	a := client.NewAdmin(h.serveAdmin(t))
	_, err := a.Publish(t.Context(), testTenant, "jobs", text("one"))
	require.NoError(t, err)
	got, err := h.log.Claim(t.Context(), substrate.ClaimRequest{
		Tenant: testTenant, Topic: "jobs", MaxMessages: 1, MaxBytes: 1, Lease: time.Minute, MaxAttempts: 1,
	})
	require.NoError(t, err)
	for i := range limits.FencePage + 1 {
		require.NoError(t, h.log.RaiseFence(t.Context(), got.Deliveries[0].Lease, substrate.Fence{Key: fmt.Sprintf("k%04d", i), Token: 3}))
	}

	t.Run("ListsAllPages", func(t *testing.T) {
		list, err := a.Fences(t.Context(), testTenant, "jobs", wire.DefaultLane)
		require.NoError(t, err)
		require.Len(t, list, limits.FencePage+1)
		require.Equal(t, "k1000", list[limits.FencePage].Key)
		require.WithinDuration(t, time.Now(), list[0].Raised, time.Minute)
	})
	t.Run("AResetNamesAKeyOrAll", func(t *testing.T) {
		for _, body := range []string{`{}`, `{"key":"k0001","all":true}`} {
			w := do(t, h.admin, http.MethodPost, "/admin/v1/tenants/default/topics/jobs/fences/reset", strings.NewReader(body), "Content-Type", "application/json")
			require.Equal(t, http.StatusBadRequest, w.Code, w.Body)
			require.Contains(t, w.Body.String(), "key or all")
		}
		w := do(t, h.admin, http.MethodPost, "/admin/v1/tenants/default/topics/jobs/fences/reset", strings.NewReader(`{"key":""}`), "Content-Type", "application/json")
		require.Equal(t, http.StatusUnprocessableEntity, w.Code, w.Body)
		moved, err := a.ResetFences(t.Context(), testTenant, "jobs", wire.FenceReset{Key: "k0001"})
		require.NoError(t, err)
		require.Equal(t, 1, moved.Count)
		moved, err = a.ResetFences(t.Context(), testTenant, "jobs", wire.FenceReset{All: true})
		require.NoError(t, err)
		require.Equal(t, limits.FencePage, moved.Count)
	})
	t.Run("AnUnknownTopicIsNotFound", func(t *testing.T) {
		_, err := a.Fences(t.Context(), testTenant, "unknown", wire.DefaultLane)
		var p *wire.Problem
		require.ErrorAs(t, err, &p)
		require.Equal(t, wire.CodeNotFound, p.Code)
	})
}
