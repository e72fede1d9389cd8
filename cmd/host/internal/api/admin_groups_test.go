package api

import (
	"encoding/json"
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

func TestAdminGroups(t *testing.T) {
	h := newHarness(t)
	a := client.NewAdmin(h.serveAdmin(t))
	const route = "/admin/v1/tenants/default/topics/t/groups"
	post := func(path, body string) (int, string) {
		w := do(t, h.admin, http.MethodPost, path, strings.NewReader(body), "Content-Type", "application/json")
		return w.Code, w.Body.String()
	}
	t.Run("MadeIs201AndThereBeforeIs200", func(t *testing.T) {
		code, body := post(route, `{"name":"g"}`)
		require.Equal(t, http.StatusCreated, code, body)
		var made wire.GroupMade
		require.NoError(t, json.Unmarshal([]byte(body), &made))
		require.True(t, made.Made)
		require.Equal(t, "earliest none", made.Group.Start+" "+made.Group.Ordering)
		code, body = post(route, `{"name":"g","start":"latest"}`)
		require.Equal(t, http.StatusOK, code, body)
		require.Contains(t, body, `"made":false`)
	})
	t.Run("StartsAreWrittenAsTheyAreRead", func(t *testing.T) {
		for i, start := range []string{"earliest", "latest", "1", "2030-01-31T12:00:00Z", "2030-01-31T12:00:00.123Z"} {
			got, err := a.CreateGroup(t.Context(), testTenant, "t", wire.NewGroup{Name: fmt.Sprint("s", i), Start: start})
			require.NoError(t, err)
			require.Equal(t, start, got.Group.Start)
		}
		for _, start := range []string{"0", "-1", "soon", "9223372036854775808", "2030-01-31", "1969-01-01T00:00:00Z"} {
			_, err := a.ResetGroup(t.Context(), testTenant, "t", "g", start)
			var p *wire.Problem
			require.ErrorAs(t, err, &p, start)
			require.Equal(t, http.StatusBadRequest, p.Status)
			require.Contains(t, p.Detail, "want earliest, latest, a position as 4711")
		}
	})
	t.Run("APositionThatIsNotGivenYetIsRefused", func(t *testing.T) {
		code, body := post(route, `{"name":"x","start":"4711"}`)
		require.Equal(t, http.StatusBadRequest, code, body)
		require.Contains(t, body, "position 4711 is not given yet: the next is 1")
	})
	t.Run("AnotherTenantHasNoneOfThem", func(t *testing.T) {
		_, err := a.Groups(t.Context(), "other", "t")
		var p *wire.Problem
		require.ErrorAs(t, err, &p)
		require.Equal(t, http.StatusNotFound, p.Status)
		_, err = a.ResetGroup(t.Context(), "other", "t", "g", "latest")
		require.ErrorAs(t, err, &p)
		require.Equal(t, http.StatusNotFound, p.Status)
		got, err := a.DeleteGroup(t.Context(), "other", "t", "g")
		require.NoError(t, err)
		require.False(t, got.Deleted)
		list, err := a.Groups(t.Context(), testTenant, "t")
		require.NoError(t, err)
		require.Equal(t, "g", list[0].Name)
	})
	t.Run("APausedLaneIsItsOwn", func(t *testing.T) {
		require.NoError(t, a.PauseLane(t.Context(), testTenant, "t", "g", true))
		require.NoError(t, a.PauseLane(t.Context(), testTenant, "t", wire.DefaultLane, true))
		list, err := a.Groups(t.Context(), testTenant, "t")
		require.NoError(t, err)
		require.Equal(t, []bool{true, false}, []bool{list[0].Paused, list[1].Paused})
		s, err := a.Topic(t.Context(), testTenant, "t")
		require.NoError(t, err)
		require.True(t, s.LanePaused)
		require.False(t, s.Paused)
		w := do(t, h.admin, http.MethodPut, "/admin/v1/tenants/default/topics/t/paused?lane=", strings.NewReader(`{"paused":true}`), "Content-Type", "application/json")
		require.Equal(t, http.StatusUnprocessableEntity, w.Code, w.Body)
		require.Contains(t, w.Body.String(), "query.lane")
	})
	t.Run("WhatItHasIsCounted", func(t *testing.T) {
		_, err := a.Publish(t.Context(), testTenant, "t", text("1", "2", "3"))
		require.NoError(t, err)
		got, err := h.log.Claim(t.Context(), substrate.ClaimRequest{
			Tenant: testTenant, Topic: "t", Lane: "s0", MaxMessages: 2, MaxBytes: 100, Lease: time.Minute, MaxAttempts: 1,
		})
		require.NoError(t, err)
		require.NoError(t, h.log.Settle(t.Context(), []substrate.Settlement{{Lease: got.Deliveries[0].Lease, Verdict: substrate.Bury}}, nil))
		gone, err := a.DeleteGroup(t.Context(), testTenant, "t", "s0")
		require.NoError(t, err)
		require.Equal(t, wire.GroupDeleted{Deleted: true, Lag: 1, InFlight: 1, DeadLetters: 1}, gone)
	})
	t.Run("TooManyAreRefusedAsTooManyTopicsAre", func(t *testing.T) {
		var err error
		for i := 0; err == nil && i <= limits.GroupsPerTopic; i++ {
			_, err = a.CreateGroup(t.Context(), testTenant, "many", wire.NewGroup{Name: fmt.Sprint("g", i)})
		}
		var p *wire.Problem
		require.ErrorAs(t, err, &p)
		require.Equal(t, http.StatusInsufficientStorage, p.Status)
		require.Contains(t, p.Detail, "groups of a topic")
	})
}
