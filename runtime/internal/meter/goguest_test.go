package meter

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
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

func TestGoGuestRunsAsBefore(t *testing.T) {
	wasm := goGuest(t)
	out, info, err := Instrument(wasm, testOptions())
	require.NoError(t, err)
	require.True(t, info.FaithfulReset)
	plain := newWorkloads(t, wasm, &meterHost{})
	host := &meterHost{slice: 50_000, budget: 1 << 60}
	g := &guest{Module: newWorkloads(t, out, host), host: host, info: info}
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

func BenchmarkInstrument(b *testing.B) {
	wasm := goGuest(b)
	b.SetBytes(int64(len(wasm)))
	for b.Loop() {
		if _, _, err := Instrument(wasm, testOptions()); err != nil {
			b.Fatal(err)
		}
	}
}
