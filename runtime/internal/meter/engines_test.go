package meter

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// A Go guest reads clocks and random numbers, which are input too. wazero's own, which every runtime begins anew, are the
// same each time.
func TestGoGuestUsesTheSameFuelCompiledAndInterpretedAndASecondTime(t *testing.T) {
	out, info, err := Instrument(goGuest(t), testOptions())
	require.NoError(t, err)
	uses := func(interpreter bool) map[string]int64 {
		host := &meterHost{slice: 50_000, budget: 1 << 60}
		rt := host.runtime(t, interpreter)
		ctx := context.Background()
		wasi_snapshot_preview1.MustInstantiate(ctx, rt)
		m, err := rt.InstantiateWithConfig(ctx, out, wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize"))
		require.NoError(t, err)
		g := &guest{Module: m, host: host, info: info}
		used := map[string]int64{}
		for _, w := range []struct {
			name string
			arg  uint64
		}{{"json", 1}, {"sha256", 1}, {"sort", 1_000}, {"fib", 15}} {
			_, used[w.name], err = g.call(testOptions(), w.name, w.arg)
			require.NoError(t, err)
		}
		return used
	}
	compiled := uses(false)
	require.Equal(t, compiled, uses(false))
	require.Equal(t, compiled, uses(true))
}
