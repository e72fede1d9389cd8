package telemetry

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/substrate"
)

// scrape returns the metrics as Prometheus reads them.
func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler(zap.NewNop()).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	require.Equal(t, 200, w.Code)
	return w.Body.String()
}

func TestMetrics(t *testing.T) {
	t.Run("CountOutcomesByVerdictAndReason", func(t *testing.T) {
		m := NewMetrics(Build{Version: "v1", Go: "go1"})
		for _, r := range []dispatcher.Receipt{
			{Verdict: "ack", Fuel: 10, Wall: time.Millisecond},
			{Verdict: "ack", Reason: "stale-fence"},
			{Verdict: "retry", Reason: "timeout", Fuel: 5, Wall: time.Second},
			{Verdict: "bury", Reason: "exit 3"},
			{Verdict: "bury", Reason: "exit 4"},
			{Verdict: "bury", Reason: "guest-trap: unreachable"},
		} {
			r.Tenant, r.Consumer = "default", "c"
			m.OnDelivery(r)
		}
		got := scrape(t, m)
		for _, line := range []string{
			`longshore_deliveries_total{consumer="c",tenant="default",verdict="ack"} 2`,
			`longshore_messages_skipped_total{consumer="c",reason="stale-fence",tenant="default"} 1`,
			`longshore_deliveries_total{consumer="c",tenant="default",verdict="bury"} 3`,
			`longshore_messages_buried_total{consumer="c",reason="exit",tenant="default"} 2`,
			`longshore_messages_buried_total{consumer="c",reason="guest-trap: unreachable",tenant="default"} 1`,
			`longshore_fuel_total{consumer="c",tenant="default"} 15`,
			`longshore_guest_call_duration_seconds_count{consumer="c",tenant="default"} 2`,
			`longshore_build_info{go="go1",revision="",version="v1"} 1`,
		} {
			require.Contains(t, got, line)
		}
	})
	t.Run("CountEventsByKindAndReason", func(t *testing.T) {
		m := NewMetrics(Build{})
		for _, failure := range []string{"", "", "hop-limit"} {
			m.OnEvent(dispatcher.EventOutcome{Tenant: "default", Consumer: "c", Kind: dispatcher.EventDeath, Failure: failure})
		}
		got := scrape(t, m)
		require.Contains(t, got, `longshore_events_published_total{consumer="c",event="death",tenant="default"} 2`)
		require.Contains(t, got, `longshore_events_failed_total{consumer="c",event="death",reason="hop-limit",tenant="default"} 1`)
	})
	t.Run("SayWhatTenantsUseAndMayUse", func(t *testing.T) {
		m := NewMetrics(Build{})
		m.WatchTenants(func() []Tenant {
			return []Tenant{{
				Name: "acme", Used: map[string]float64{"messages": 3}, Caps: map[string]float64{"messages": 5}, Refused: map[string]float64{"rate_per_sec": 7},
			}}
		})
		got := scrape(t, m)
		for _, line := range []string{
			`longshore_tenant_used{cap="messages",tenant="acme"} 3`,
			`longshore_tenant_cap{cap="messages",tenant="acme"} 5`,
			`longshore_tenant_refusals_total{cap="rate_per_sec",tenant="acme"} 7`,
		} {
			require.Contains(t, got, line)
		}
	})
	t.Run("SayWhatBecameOfRequests", func(t *testing.T) {
		m := NewMetrics(Build{})
		m.WatchRequests(func() dispatcher.RequestStats {
			return dispatcher.RequestStats{Waiting: 1, Answered: 2, Unanswered: 3, Dropped: 4, Refused: 5}
		})
		got := scrape(t, m)
		for _, line := range []string{
			`longshore_waiting_requests 1`,
			`longshore_requests_total{outcome="answered"} 2`,
			`longshore_requests_total{outcome="unanswered"} 3`,
			`longshore_replies_lost_total{outcome="dropped"} 4`,
			`longshore_replies_lost_total{outcome="refused"} 5`,
		} {
			require.Contains(t, got, line)
		}
	})
	t.Run("ReadTheLogAndTheConsumers", func(t *testing.T) {
		log, err := substrate.Open(t.Context(), substrate.Options{Dir: t.TempDir()})
		require.NoError(t, err)
		defer func() { require.NoError(t, log.Close()) }()
		m := NewMetrics(Build{})
		m.Watch(log, func() []dispatcher.ConsumerStatus {
			return []dispatcher.ConsumerStatus{{Name: "c", Tenant: "default", State: "paused", InFlight: 3}}
		})
		_, err = log.Publish(t.Context(), substrate.Message{ID: log.MintID(), Tenant: "default", Topic: "a/b", Payload: []byte("x")})
		require.NoError(t, err)
		for _, group := range []string{"g", "h"} {
			_, _, err := log.CreateGroup(t.Context(), "default", "a/b", group, substrate.GroupOptions{})
			require.NoError(t, err)
		}
		claimed, err := log.Claim(t.Context(), substrate.ClaimRequest{
			Tenant: "default", Topic: "a/b", Lane: "h", MaxMessages: 1, MaxBytes: 1, Lease: time.Minute, MaxAttempts: 1,
		})
		require.NoError(t, err)
		require.NoError(t, log.Settle(t.Context(), []substrate.Settlement{{Lease: claimed.Deliveries[0].Lease, Verdict: substrate.Bury}}, nil))
		got := scrape(t, m)
		for _, line := range []string{
			`longshore_group_lag_messages{group="g",tenant="default",topic="a/b"} 1`,
			`longshore_group_in_flight_messages{group="g",tenant="default",topic="a/b"} 0`,
			`longshore_group_lag_messages{group="h",tenant="default",topic="a/b"} 0`,
			`longshore_group_dead_letters{group="h",tenant="default",topic="a/b"} 1`,
			`longshore_group_oldest_unacknowledged_age_seconds{group="h",tenant="default",topic="a/b"} 0`,
			`longshore_messages_published_total{tenant="default",topic="a/b"} 1`,
			`longshore_backlog_messages{tenant="default",topic="a/b"} 1`,
			`longshore_dead_letters{tenant="default",topic="a/b"} 1`,
			`longshore_unflushed{tenant="default",topic="a/b"} 0`,
			`longshore_in_flight_messages{consumer="c",tenant="default"} 3`,
			`longshore_consumer_state{consumer="c",state="paused",tenant="default"} 1`,
		} {
			require.Contains(t, got, line)
		}
		require.Regexp(t, `longshore_group_oldest_unacknowledged_age_seconds\{group="g",tenant="default",topic="a/b"\} [0-9.e-]*[1-9]`, got)
		require.Regexp(t, `longshore_journal_fsync_duration_seconds_count [1-9]`, got)
	})
	t.Run("AgeOfTheOldestIsNeverNegative", func(t *testing.T) {
		now := time.Now()
		require.Zero(t, oldestAge(substrate.Stats{}, now))
		require.Zero(t, oldestAge(substrate.Stats{Oldest: now.Add(time.Hour)}, now))
		require.InDelta(t, 60, oldestAge(substrate.Stats{Oldest: now.Add(-time.Minute)}, now), 0.001)
	})
}
