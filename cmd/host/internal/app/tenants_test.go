package app

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/substrate"
)

func TestCapsOfTheHostConfig(t *testing.T) {
	h, err := config.ParseHost("h.yaml", []byte(`
tenants:
  - tenant: acme
    caps: {messages: 1, bytes: 2, rate_per_sec: 3, topics: 4, consumers: 5, instances: 6, compile_time: 7s, log_bytes_per_sec: 8KiB, value_bytes: 9}
  - {tenant: free}
`), config.Overrides{})
	require.NoError(t, err)

	t.Run("ReachTheLog", func(t *testing.T) {
		require.Equal(t, map[string]substrate.TenantCaps{"acme": {Messages: 1, Bytes: 2, RatePerSec: 3, Topics: 4, ValueBytes: 9}}, logCaps(h))
	})

	t.Run("ReachTheDispatcher", func(t *testing.T) {
		require.Equal(t, map[string]dispatcher.Caps{"acme": {Running: 6, LogBytesPerSec: 8 * limits.KiB}}, guestCaps(h))
	})

	t.Run("ReachTheRuntimeOncePerTenant", func(t *testing.T) {
		b := newBudgets(h)
		require.Equal(t, 7*time.Second, b.within("acme").CompileCPU)
		require.Same(t, b.within("acme").Budget, b.within("acme").Budget)
		require.NotSame(t, b.within("acme").Budget, b.within("free").Budget)
	})

	t.Run("AreMetricsInBaseUnits", func(t *testing.T) {
		require.Equal(t, map[string]float64{
			"messages": 1, "bytes": 2, "rate_per_sec": 3, "topics": 4, "consumers": 5, "instances": 6, "compile_time": 7,
			"log_bytes_per_sec": 8192, "value_bytes": 9,
		}, capValues(h.CapsOf("acme")))
		require.Empty(t, capValues(h.CapsOf("free")))
	})

	t.Run("SayWhatHelpsAModuleThatCompilesTooLong", func(t *testing.T) {
		fix := func(limit int64) string {
			_, fix := Refusal(&runtime.ModuleError{Stage: runtime.StageCompile, Err: &limits.Error{Name: limits.NameCompileTime, Limit: limit, Actual: limit + 1}})
			return fix
		}
		require.Contains(t, fix(7000), "a larger caps.compile_time of its tenant")
		require.Contains(t, fix(limits.CompileCPU.Milliseconds()), "can't be raised")
	})
}
