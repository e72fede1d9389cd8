package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

func TestCaps(t *testing.T) {
	h, err := ParseHost("h.yaml", []byte(`
tenants:
  - tenant: acme
    caps: {messages: 1, bytes: 2KiB, rate_per_sec: 3, topics: 4, consumers: 2, instances: 6, compile_time: 7s, log_bytes_per_sec: 8KiB, value_bytes: 9KiB}
  - {tenant: free}
`), Overrides{})
	require.NoError(t, err)

	t.Run("EveryKeyIsTaken", func(t *testing.T) {
		require.Equal(t, Caps{
			Messages: 1, Bytes: 2 * limits.KiB, RatePerSec: 3, Topics: 4, Consumers: 2, Instances: 6, CompileTime: 7 * time.Second,
			LogBytesPerSec: 8 * limits.KiB, ValueBytes: 9 * limits.KiB,
		}, h.CapsOf("acme"))
	})

	t.Run("WhoIsNotListedHasNone", func(t *testing.T) {
		require.Equal(t, Caps{}, h.CapsOf("free"))
		require.Equal(t, Caps{}, h.CapsOf("unknown"))
	})

	t.Run("ConsumersAboveTheCapAreFaultsOfTheManifest", func(t *testing.T) {
		parse := func(third string) error {
			_, err := ParseManifest("m.yaml", []byte("consumers:\n"+
				"  - {name: a, tenant: acme, topic: a, module: a.wasm}\n"+
				"  - {name: b, tenant: acme, topic: b, module: a.wasm}\n"+
				"  - {name: c, tenant: free, topic: c, module: a.wasm}\n"+third), h)
			return err
		}
		require.NoError(t, parse(""))
		require.EqualError(t, parse("  - {name: d, tenant: acme, topic: d, module: a.wasm}\n"),
			`m.yaml:5:23: consumers[3].tenant: it is consumer 3 of tenant "acme" (want at most 2, the host config's caps.consumers of that tenant)`)
	})
}
