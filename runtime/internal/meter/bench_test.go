package meter

import (
	"context"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// cWorkloads builds testdata/workloads.c, if there is a C compiler for it.
func cWorkloads(tb testing.TB) []byte {
	tb.Helper()
	clang, err := exec.LookPath("clang")
	if err != nil {
		tb.Skip("there is no clang to build the workloads with")
	}
	out := filepath.Join(tb.TempDir(), "workloads.wasm")
	text, err := exec.CommandContext(tb.Context(), clang, "--target=wasm32", "-O2", "-nostdlib", "-fno-builtin", "-Wl,--no-entry",
		"-o", out, "testdata/workloads.c").CombinedOutput()
	require.NoError(tb, err, "%s", text)
	b, err := os.ReadFile(out)
	require.NoError(tb, err)
	return b
}

// workload is an export to call, with an argument that makes it run for some milliseconds.
type workload struct {
	name string
	arg  uint64
}

func workloadsOfC() []workload {
	return []workload{{"sha256", 10}, {"sieve", 1 << 20}, {"json", 10}, {"fib", 25}, {"matmul", 3}}
}

func workloadsOfGo() []workload {
	return []workload{{"json", 5}, {"sha256", 5}, {"sort", 20_000}, {"fib", 22}}
}

// fuelCost measures how many times longer an instrumented workload takes than the plain one, both at their fastest.
func fuelCost(b *testing.B, plain, instrumented api.Module, w workload) float64 {
	b.Helper()
	fastest := [2]time.Duration{math.MaxInt64, math.MaxInt64}
	functions := [2]api.Function{plain.ExportedFunction(w.name), instrumented.ExportedFunction(w.name)}
	for range 60 {
		for i, f := range functions {
			start := time.Now()
			if _, err := f.Call(context.Background(), w.arg); err != nil {
				b.Fatal(err)
			}
			fastest[i] = min(fastest[i], time.Since(start))
		}
	}
	return float64(fastest[1]) / float64(fastest[0])
}

// BenchmarkFuelCost prints, for each workload, the time of the instrumented module over that of the plain one, and the
// geometric mean. The Go function fib isn't in the mean.
func BenchmarkFuelCost(b *testing.B) {
	host := &meterHost{slice: 100_000, budget: 1 << 60}
	var logs, count float64
	for _, suite := range []struct {
		name      string
		wasm      []byte
		workloads []workload
	}{{"C", cWorkloads(b), workloadsOfC()}, {"Go", goGuest(b), workloadsOfGo()}} {
		out, _, err := Instrument(suite.wasm, testOptions())
		require.NoError(b, err)
		plain, instrumented := newWorkloads(b, suite.wasm, host), newWorkloads(b, out, host)
		for _, w := range suite.workloads {
			ratio := fuelCost(b, plain, instrumented, w)
			b.Logf("%s %s: %.3f", suite.name, w.name, ratio)
			if suite.name == "C" || w.name != "fib" {
				logs, count = logs+math.Log(ratio), count+1
			}
		}
	}
	b.ReportMetric(math.Exp(logs/count), "geomean")
	b.ReportMetric(0, "ns/op")
}

// newWorkloads instantiates a module that may use WASI and runs its _initialize.
func newWorkloads(tb testing.TB, wasm []byte, h *meterHost) api.Module {
	tb.Helper()
	rt := h.runtime(tb, false)
	ctx := context.Background()
	wasi_snapshot_preview1.MustInstantiate(ctx, rt)
	m, err := rt.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize"))
	require.NoError(tb, err)
	return m
}
