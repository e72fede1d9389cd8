package app

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/substrate"
)

func parseHost(t *testing.T, text string) *config.Host {
	t.Helper()
	h, err := config.ParseHost("h.yaml", []byte(text), config.Overrides{})
	require.NoError(t, err)
	return h
}

func openTestLog(t *testing.T) *substrate.Log {
	t.Helper()
	log, err := substrate.Open(t.Context(), substrate.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, log.Close()) })
	return log
}

func TestPoliciesOfTheHostConfigAreThoseOfTheLog(t *testing.T) {
	log := openTestLog(t)
	require.NoError(t, log.SetDefaults(policies(parseHost(t, `topics: [{topic: a, max_depth: 1, max_rate_per_sec: 2, max_message_bytes: 3,
  max_unflushed: 4, max_priority: 5, idempotency_window: 6s, retention: 7s, retention_bytes: 8, keep: 9s, max_age: 10s}]`))))
	got, err := log.Policy("default", "a")
	require.NoError(t, err)
	is := func(n int64) substrate.PolicyValue {
		return substrate.PolicyValue{Value: n, Set: true, Source: "config"}
	}
	require.Equal(t, substrate.PolicyView{
		MaxDepth: is(1), MaxRatePerSec: is(2), MaxMessageBytes: is(3), MaxUnflushed: is(4), MaxPriority: is(5),
		IdempotencyWindowMilli: is(6000), RetentionMilli: is(7000), RetentionBytes: is(8), KeepMilli: is(9000), MaxAgeMilli: is(10000),
	}, got)
}

func TestWhatTheHostConfigSaysOfTopicsIsAppliedAtTheStart(t *testing.T) {
	log := openTestLog(t)
	core, seen := observer.New(zapcore.InfoLevel)
	apply := func(text string) []observer.LoggedEntry {
		require.NoError(t, applyTopics(t.Context(), zap.New(core), log, parseHost(t, "topics: [{topic: a, "+text+"}]").Topics))
		return seen.TakeAll()
	}
	stats := func() substrate.Stats {
		s, _ := log.Stats("default", "a")
		return s
	}
	require.Empty(t, apply("default_lane: auto, paused: false"))
	_, made := log.Stats("default", "a")
	require.False(t, made, "what is so already is not written")

	require.Len(t, apply("paused: true"), 1)
	require.True(t, stats().Paused)
	require.Empty(t, apply("paused: true"))
	require.Empty(t, apply("max_depth: 1"))
	require.True(t, stats().Paused, "what isn't given stays")
	require.Len(t, apply("paused: false"), 1)
	require.False(t, stats().Paused)

	require.Len(t, apply("default_lane: on"), 1)
	require.Equal(t, substrate.LaneOn, stats().LaneMode)
	for range 3 {
		_, err := log.Publish(t.Context(), substrate.Message{ID: log.MintID(), Tenant: "default", Topic: "a", Payload: []byte("x")})
		require.NoError(t, err)
	}
	got, err := log.Claim(t.Context(), substrate.ClaimRequest{
		Tenant: "default", Topic: "a", MaxMessages: 1, MaxBytes: 1, Lease: time.Minute, MaxAttempts: 1,
	})
	require.NoError(t, err)
	require.Len(t, got.Deliveries, 1)
	lines := apply("default_lane: off")
	require.Len(t, lines, 1)
	require.Equal(t, zapcore.WarnLevel, lines[0].Level)
	require.EqualValues(t, 3, lines[0].ContextMap()["dropped_messages"])
	require.Equal(t, substrate.LaneOff, stats().LaneMode)
	require.Zero(t, stats().Backlog())
	require.Empty(t, apply("default_lane: off"), "said once")
}
