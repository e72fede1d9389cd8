package meter

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// goGuest builds the guest with the stock Go toolchain.
func goGuest(tb testing.TB) []byte {
	tb.Helper()
	if testing.Short() || raceEnabled {
		tb.Skip("building and compiling a Go guest takes too long here")
	}
	out := filepath.Join(tb.TempDir(), "guest.wasm")
	cmd := exec.CommandContext(tb.Context(), "go", "build", "-buildmode=c-shared", "-buildvcs=false", "-o", out, "./testdata/goguest")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	text, err := cmd.CombinedOutput()
	require.NoError(tb, err, "%s", text)
	b, err := os.ReadFile(out)
	require.NoError(tb, err)
	return b
}

// goInstance runs _initialize of a Go guest.
func goInstance(tb testing.TB, wasm []byte, h *meterHost) api.Module {
	tb.Helper()
	rt := h.runtime(tb, false)
	ctx := context.Background()
	wasi_snapshot_preview1.MustInstantiate(ctx, rt)
	m, err := rt.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize"))
	require.NoError(tb, err)
	return m
}

func TestGoGuestRunsAsBefore(t *testing.T) {
	wasm := goGuest(t)
	out, info, err := Instrument(wasm, testOptions())
	require.NoError(t, err)
	require.True(t, info.FaithfulReset)
	plain := goInstance(t, wasm, &meterHost{})
	host := &meterHost{slice: 50_000, budget: 1 << 60}
	g := &guest{Module: goInstance(t, out, host), host: host, info: info}
	for name, arg := range map[string]uint64{"json": 1, "sha256": 1, "sort": 1_000, "fib": 15} {
		want, err := plain.ExportedFunction(name).Call(t.Context(), arg)
		require.NoError(t, err)
		got, used, err := g.call(testOptions(), name, arg)
		require.NoError(t, err)
		require.Equal(t, want, got, name)
		require.Positive(t, used)
	}
	host.budget = 100_000
	_, used, err := g.call(testOptions(), "sort", 100_000)
	require.ErrorIs(t, err, errFuel)
	require.Greater(t, used, host.budget)
}

func BenchmarkGoGuest(b *testing.B) {
	wasm := goGuest(b)
	out, _, err := Instrument(wasm, testOptions())
	require.NoError(b, err)
	host := &meterHost{slice: 1 << 20, budget: 1 << 60}
	modules := map[string]api.Module{"plain": goInstance(b, wasm, host), "instrumented": goInstance(b, out, host)}
	for _, w := range []struct {
		name string
		arg  uint64
	}{{"json", 5}, {"sha256", 5}, {"sort", 50_000}, {"fib", 22}} {
		for _, variant := range []string{"plain", "instrumented"} {
			f := modules[variant].ExportedFunction(w.name)
			b.Run(w.name+"/"+variant, func(b *testing.B) {
				for b.Loop() {
					if _, err := f.Call(context.Background(), w.arg); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkInstrument(b *testing.B) {
	wasm := goGuest(b)
	b.SetBytes(int64(len(wasm)))
	for b.Loop() {
		if _, _, err := Instrument(wasm, testOptions()); err != nil {
			b.Fatal(err)
		}
	}
}
