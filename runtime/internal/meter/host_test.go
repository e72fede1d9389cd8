package meter

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/longshore/longshore/limits"
)

const features = api.CoreFeaturesV2 | experimental.CoreFeaturesTailCall | experimental.CoreFeaturesExtendedConst

var (
	errDepth = errors.New("call depth exceeded")
	errFuel  = errors.New("out of fuel")
)

// testOptions are the limits of a host, wide enough not to get into the way.
func testOptions() Options {
	return Options{MemoryBytes: 64 * limits.MiB, TableElements: limits.TableElements, CallDepth: limits.CallDepthFrames}
}

// meterHost is the host's side of the meter for all instances of a runtime.
type meterHost struct {
	slice   int64
	budget  int64
	granted int64
	spent   int64 // what was used when the budget ended
	yields  int
}

func (h *meterHost) yield(_ context.Context, _ api.Module, stack []uint64) {
	left := int64(stack[0])
	switch {
	case left == -1<<63:
		panic(errDepth)
	case left >= 0:
		panic("yield with fuel left")
	}
	h.yields++
	grant := min(h.slice-left, h.budget-h.granted)
	if left+grant < 0 {
		h.spent = h.granted - left
		panic(errFuel)
	}
	h.granted += grant
	stack[0] = uint64(left + grant)
}

// runtime returns a runtime that serves the meter from h and closes with the test.
func (h *meterHost) runtime(tb testing.TB, interpreter bool) wazero.Runtime {
	tb.Helper()
	return h.cachedRuntime(tb, interpreter, nil)
}

// cachedRuntime is runtime with a cache of compiled modules, which may be nil.
func (h *meterHost) cachedRuntime(tb testing.TB, interpreter bool, cache wazero.CompilationCache) wazero.Runtime {
	tb.Helper()
	c := wazero.NewRuntimeConfigCompiler()
	if interpreter {
		c = wazero.NewRuntimeConfigInterpreter()
	}
	if cache != nil {
		c = c.WithCompilationCache(cache)
	}
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, c.WithCoreFeatures(features))
	tb.Cleanup(func() { _ = rt.Close(ctx) })
	i64 := []api.ValueType{api.ValueTypeI64}
	_, err := rt.NewHostModuleBuilder(ImportModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(h.yield), i64, i64).Export(ImportYield).Instantiate(ctx)
	require.NoError(tb, err)
	return rt
}

// guest is an instance of an instrumented module.
type guest struct {
	api.Module
	host *meterHost
	info Info
}

// newGuest instruments and instantiates wasm.
func newGuest(t *testing.T, wasm []byte, o Options, h *meterHost, interpreter bool) *guest {
	t.Helper()
	out, info, err := Instrument(wasm, o)
	require.NoError(t, err)
	m, err := h.runtime(t, interpreter).InstantiateWithConfig(context.Background(), out,
		wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize"))
	require.NoError(t, err)
	return &guest{Module: m, host: h, info: info}
}

// call calls an export as a host does and returns the fuel that it used.
func (g *guest) call(o Options, name string, args ...uint64) (results []uint64, used int64, err error) {
	g.begin(o)
	g.host.granted, g.host.spent = 0, 0
	results, err = g.ExportedFunction(name).Call(context.Background(), args...)
	return results, max(g.host.spent, g.host.granted-g.left()), err
}

// begin sets the global for a call.
func (g *guest) begin(o Options) { g.global(g.info.FuelGlobal).Set(Word(0, o.CallDepth)) }

// left returns the fuel that is left.
func (g *guest) left() int64 { return Fuel(g.global(g.info.FuelGlobal).Get()) }

// depth returns how many calls may still be nested.
func (g *guest) depth() int64 { return int64(g.global(g.info.FuelGlobal).Get() & MaxCallDepth) }

func (g *guest) global(name string) api.MutableGlobal {
	return g.ExportedGlobal(name).(api.MutableGlobal)
}
