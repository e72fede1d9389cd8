package meter

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/longshore/longshore/runtime/internal/wasmbin"
)

// genBudget is the budget of each call of a generated function.
const genBudget = 500

// observed is what can be seen of a call: its results or its trap, and the state that it left.
type observed struct {
	outcome string
	memory  [sha256.Size]byte
	globals []uint64
	fuel    int64
}

// observe calls each function of a generated module and notes what comes of it.
func observe(t *testing.T, m api.Module, globals []string, used func() int64, seed uint64) (all []observed) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range genFunctions {
		f := m.ExportedFunction(fmt.Sprintf("f%d", i))
		args := make([]uint64, len(f.Definition().ParamTypes()))
		for j := range args {
			args[j] = uint64(r.IntN(1000))
		}
		m.ExportedGlobal("budget").(api.MutableGlobal).Set(genBudget)
		results, err := f.Call(context.Background(), args...)
		o := observed{outcome: fmt.Sprintf("%#x", results)}
		if err != nil {
			o.outcome = trap(err)
		}
		memory, _ := m.Memory().Read(0, m.Memory().Size())
		o.memory = sha256.Sum256(memory)
		for _, name := range globals {
			o.globals = append(o.globals, m.ExportedGlobal(name).Get())
		}
		o.fuel = used()
		all = append(all, o)
	}
	return all
}

// differ holds the engines of a differential test.
type differ struct {
	host                  *meterHost
	compiler, interpreter wazero.Runtime
}

func newDiffer(tb testing.TB) *differ {
	tb.Helper()
	h := &meterHost{}
	return &differ{host: h, compiler: h.runtime(tb, false), interpreter: h.runtime(tb, true)}
}

// run runs a generated module, instrumented or not, and returns what was observed.
func (d *differ) run(t *testing.T, rt wazero.Runtime, wasm []byte, info *Info, globals []string, slice int64, seed uint64) []observed {
	t.Helper()
	*d.host = meterHost{slice: slice, budget: 1 << 60}
	m, err := rt.InstantiateWithConfig(t.Context(), wasm, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close(context.Background())) }()
	g := &guest{Module: m, host: d.host}
	if info != nil {
		g.info = *info
	}
	return observe(t, m, globals, func() int64 {
		if info == nil {
			return 0
		}
		used := d.host.granted - g.left()
		g.global(info.FuelGlobal).Set(Word(g.left(), testOptions().CallDepth)) // a trap doesn't give it back
		return used
	}, seed)
}

// compare runs the module of a seed plain and instrumented, and fails where they differ.
func (d *differ) compare(t *testing.T, seed uint64) {
	t.Helper()
	m := generate(seed)
	own := make([]string, len(m.Globals))
	for i := range m.Globals {
		own[i] = globalName(uint32(i))
	}
	out, info, err := Instrument(m.Encode(), testOptions())
	require.NoError(t, err)
	require.Equal(t, own, info.Globals[:len(own)])
	for i, name := range own { // so that they can be looked at in the plain module too
		m.Exports = append(m.Exports, wasmbin.Export{Name: name, Kind: wasmbin.KindGlobal, Index: uint32(i)})
	}
	plain := d.run(t, d.compiler, m.Encode(), nil, own, 0, seed)
	first := d.run(t, d.compiler, out, &info, own, 1<<40, seed)
	for i := range plain {
		plain[i].fuel = first[i].fuel
	}
	require.Equal(t, plain, first, "seed %d: instrumented against plain", seed)
	for _, slice := range []int64{0, 50} {
		require.Equal(t, first, d.run(t, d.compiler, out, &info, own, slice, seed), "seed %d: slice %d against a large one", seed, slice)
	}
	interpreted := d.run(t, d.interpreter, out, &info, own, 50, seed)
	require.Equal(t, first, interpreted, "seed %d: the interpreter against the compiler", seed)
}

// TestGeneratedModules compares plain modules with instrumented ones: results, traps, memory and globals are the same,
// and so is the fuel, with each slice, with the compiler and with the interpreter.
func TestGeneratedModules(t *testing.T) {
	n := uint64(60)
	if testing.Short() || raceEnabled {
		n = 20
	}
	d := newDiffer(t)
	first := rand.Uint64()
	for seed := range n {
		d.compare(t, first+seed)
	}
	t.Logf("%d modules from seed %d", n, first)
}

// FuzzGeneratedModules is TestGeneratedModules for longer.
func FuzzGeneratedModules(f *testing.F) {
	f.Add(uint64(1))
	d := newDiffer(f)
	f.Fuzz(func(t *testing.T, seed uint64) { d.compare(t, seed) })
}
