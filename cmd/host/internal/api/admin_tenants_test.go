package api

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/longshore/longshore/cmd/host/internal/client"
	"github.com/longshore/longshore/cmd/host/internal/wire"
)

func TestAdminTenants(t *testing.T) {
	h := newHarness(t)
	h.furnish(t, "acme")
	h.furnish(t, "other")
	handler := NewAdmin(h.options).Remote(h.bearers, zap.NewNop())
	list := func(handler http.Handler, header ...string) (names []string) {
		w := do(t, handler, http.MethodGet, "/admin/v1/tenants", nil, header...)
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		var got wire.TenantList
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got))
		for _, x := range got.Tenants {
			names = append(names, x.Name)
		}
		return names
	}

	t.Run("TheOperatorSeesAllAndABearerHerOwn", func(t *testing.T) {
		require.Equal(t, []string{"acme", "default", "other"}, list(h.admin))
		require.Equal(t, []string{"acme"}, list(handler, h.idp.header(t, "acme", "admin")...))
		w := do(t, handler, http.MethodGet, "/admin/v1/tenants/other", nil, h.idp.header(t, "acme", "admin")...)
		require.Equal(t, http.StatusNotFound, w.Code)
	})

	t.Run("ATenantIsShownWithWhatGoesWithIt", func(t *testing.T) {
		got, err := client.NewAdmin(h.serveAdmin(t)).Tenant(t.Context(), "other")
		require.NoError(t, err)
		require.Positive(t, got.Topics)
		require.Positive(t, got.Messages)
		require.Positive(t, got.DeadLetters)
		require.Positive(t, got.Groups)
		require.Equal(t, 1, got.Versions)
		require.Empty(t, got.Consumers)
	})

	t.Run("OnlyTheOperatorDeletesOne", func(t *testing.T) {
		w := do(t, handler, http.MethodDelete, "/admin/v1/tenants/other", nil, h.idp.header(t, "other", "admin")...)
		require.Equal(t, http.StatusForbidden, w.Code, w.Body)
		require.Contains(t, list(h.admin), "other")
	})

	t.Run("ItIsGoneWithItsVersions", func(t *testing.T) {
		a := client.NewAdmin(h.serveAdmin(t))
		before := h.stateOf(t, "acme")
		gone, err := a.DeleteTenant(t.Context(), "other")
		require.NoError(t, err)
		require.Positive(t, gone.Messages)
		require.Equal(t, []string{"acme", "default"}, list(h.admin))
		require.Equal(t, "[]", h.stateOf(t, "other"))
		require.Equal(t, before, h.stateOf(t, "acme"))
		_, err = a.DeleteTenant(t.Context(), "other")
		var p *wire.Problem
		require.ErrorAs(t, err, &p)
		require.Equal(t, http.StatusNotFound, p.Status)
	})
}
