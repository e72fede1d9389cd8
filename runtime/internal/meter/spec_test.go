package meter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime/internal/wasmbin"
)

// specDir returns the folder of the WebAssembly specification suite that ships with the engine.
func specDir(t *testing.T) string {
	t.Helper()
	if testing.Short() || raceEnabled {
		t.Skip("the specification suite takes too long here")
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	require.NoError(t, err)
	return filepath.Join(strings.TrimSpace(string(out)), "internal", "integration_test", "spectest")
}

// specTime bounds the suite on slow machines.
const specTime = 50 * time.Second

// specSuites are the parts of the suite for the features that modules may use.
func specSuites() []string { return []string{"v2", "tail-call", "extended-const"} }

// specCommand is a command of a script of the suite, in the JSON form of wast2json.
type specCommand struct {
	Type       string `json:"type"`
	Line       int    `json:"line"`
	Name       string `json:"name"`
	Filename   string `json:"filename"`
	ModuleType string `json:"module_type"`
	As         string `json:"as"`
	Action     struct {
		Type   string      `json:"type"`
		Field  string      `json:"field"`
		Module string      `json:"module"`
		Args   []specValue `json:"args"`
	} `json:"action"`
}

type specValue struct {
	Type  string `json:"type"`
	Value any    `json:"value"`
}

// bits returns the value as the engine passes it.
func (v specValue) bits() []uint64 {
	if lanes, ok := v.Value.([]any); ok {
		var out [2]uint64
		width := 128 / len(lanes)
		for i, l := range lanes {
			u := specNumber(l.(string))
			if width < 64 {
				u &= 1<<width - 1
			}
			out[i*width/64] |= u << (i * width % 64)
		}
		return out[:]
	}
	s, _ := v.Value.(string)
	switch {
	case v.Type == "externref" || v.Type == "funcref":
		if s == "null" || s == "" {
			return []uint64{0}
		}
		return []uint64{specNumber(s) + 1}
	case strings.HasPrefix(s, "nan") && v.Type == "f32":
		return []uint64{0x7fc00000}
	case strings.HasPrefix(s, "nan"):
		return []uint64{0x7ff8000000000000}
	}
	return []uint64{specNumber(s)}
}

func specNumber(s string) uint64 {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return uint64(n)
	}
	u, _ := strconv.ParseUint(s, 10, 64)
	return u
}

// specRun runs a script and writes down, for each command, what came of it.
type specRun struct {
	t          *testing.T
	dir        string
	rt         wazero.Runtime
	host       *meterHost
	instrument func([]byte) ([]byte, Info, error) // nil runs the modules as they are

	live       []*guest
	last       api.Module
	named      map[string]api.Module
	registered map[string]api.Module

	outcomes []string
	fuel     []int64
}

// specOptions don't get into the way of any module of the suite.
func specOptions() Options {
	return Options{MemoryBytes: 4 * limits.GiB, TableElements: 1 << 30, CallDepth: limits.CallDepthFrames}
}

// specCaps accept the few modules of the suite that are made to be large.
func specCaps() wasmbin.Caps {
	c := wasmbin.DefaultCaps()
	c.BrTable, c.Branches, c.LocalsByBranches, c.ModuleBranchesSquared = 1<<20, 1<<20, 1<<40, 1<<40
	return c
}

func specInstrument(b []byte) ([]byte, Info, error) { return instrument(b, specCaps(), specOptions()) }

// runSpec runs a script. With slice < 0 the modules run as they are.
func runSpec(t *testing.T, script string, interpreter bool, slice int64, instrument func([]byte) ([]byte, Info, error)) *specRun {
	t.Helper()
	raw, err := os.ReadFile(script)
	require.NoError(t, err)
	var parsed struct{ Commands []specCommand }
	require.NoError(t, json.Unmarshal(raw, &parsed))
	r := &specRun{
		t: t, dir: filepath.Dir(script), host: &meterHost{slice: slice, budget: 1 << 60}, instrument: instrument,
		named: map[string]api.Module{}, registered: map[string]api.Module{},
	}
	r.rt = r.host.runtime(t, interpreter)
	r.spectest()
	for i := range parsed.Commands {
		r.command(&parsed.Commands[i])
	}
	return r
}

// spectest instantiates the host module of the suite.
func (r *specRun) spectest() {
	r.t.Helper()
	b, err := os.ReadFile(filepath.Join(r.dir, "..", "..", "testdata", "spectest.wasm"))
	require.NoError(r.t, err)
	_, err = r.rt.InstantiateWithConfig(r.t.Context(), b, wazero.NewModuleConfig().WithName("spectest"))
	require.NoError(r.t, err)
}

func (r *specRun) command(c *specCommand) {
	used := r.total()
	var outcome string
	switch c.Type {
	case "module":
		m, err := r.load(c.Filename)
		outcome = loaded(err)
		r.last = m
		if c.Name != "" {
			r.named[c.Name] = m
		}
	case "register":
		r.registered[c.As] = r.module(c.Name)
	case "assert_return", "action", "assert_trap", "assert_exhaustion":
		outcome = r.act(c)
	default: // asserts that a module can't be loaded
		if c.ModuleType == "text" {
			return
		}
		_, err := r.load(c.Filename)
		outcome = loaded(err)
	}
	r.outcomes = append(r.outcomes, fmt.Sprintf("%s:%d %s %s", filepath.Base(c.Filename), c.Line, c.Type, outcome))
	r.fuel = append(r.fuel, r.total()-used)
	for _, g := range r.live {
		g.global(g.info.DepthGlobal).Set(uint64(specOptions().CallDepth))
	}
}

// total returns the fuel that all modules have used.
func (r *specRun) total() int64 {
	n := r.host.granted
	for _, g := range r.live {
		n -= int64(g.global(g.info.FuelGlobal).Get())
	}
	return n
}

func loaded(err error) string {
	if err != nil {
		return "refused"
	}
	return "loaded"
}

func (r *specRun) module(name string) api.Module {
	if name != "" {
		return r.named[name]
	}
	return r.last
}

func (r *specRun) load(file string) (api.Module, error) {
	b, err := os.ReadFile(filepath.Join(r.dir, file))
	require.NoError(r.t, err)
	var info Info
	if r.instrument != nil {
		if b, info, err = r.instrument(b); err != nil {
			return nil, err
		}
	}
	compiled, err := r.rt.CompileModule(r.t.Context(), b)
	if err != nil {
		return nil, err
	}
	ctx := experimental.WithImportResolver(r.t.Context(), func(name string) api.Module { return r.registered[name] })
	m, err := r.rt.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err == nil && r.instrument != nil {
		r.live = append(r.live, &guest{Module: m, host: r.host, info: info})
	}
	return m, err
}

// act does an action and returns its results, or what trapped.
func (r *specRun) act(c *specCommand) string {
	m := r.module(c.Action.Module)
	if m == nil {
		return "no module"
	}
	if c.Action.Type == "get" {
		return fmt.Sprintf("%#x", m.ExportedGlobal(c.Action.Field).Get())
	}
	var args []uint64
	for _, a := range c.Action.Args {
		args = append(args, a.bits()...)
	}
	results, err := m.ExportedFunction(c.Action.Field).Call(context.Background(), args...)
	if err != nil {
		return trap(err)
	}
	for _, g := range r.live {
		require.Equal(r.t, uint64(specOptions().CallDepth), g.global(g.info.DepthGlobal).Get(), "line %d: call depth", c.Line)
	}
	return fmt.Sprintf("%#x", results)
}

// trap names a trap: its text without the stack trace. Both ways to run out of stack are the same.
func trap(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	if errors.Is(err, errDepth) || strings.Contains(text, "stack overflow") {
		return "stack overflow"
	}
	return text
}

func specScripts(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	for _, suite := range specSuites() {
		files, err := filepath.Glob(filepath.Join(dir, suite, "testdata", "*.json"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		all = append(all, files...)
	}
	return all
}

// TestSpecification runs the WebAssembly specification suite on plain and on instrumented modules.
func TestSpecification(t *testing.T) {
	dir := specDir(t)
	begin := time.Now()
	commands := 0
	for _, script := range specScripts(t, dir) {
		name, err := filepath.Rel(dir, script)
		require.NoError(t, err)
		t.Run(strings.TrimSuffix(name, ".json"), func(t *testing.T) {
			if time.Since(begin) > specTime {
				t.Skip("the time for the suite is used up")
			}
			plain := runSpec(t, script, false, 0, nil)
			commands += len(plain.outcomes)
			first := runSpec(t, script, false, limits.FuelPerDelivery, specInstrument)
			require.Equal(t, plain.outcomes, first.outcomes, "instrumented against plain")
			for _, slice := range []int64{0, 50} {
				r := runSpec(t, script, false, slice, specInstrument)
				require.Equal(t, plain.outcomes, r.outcomes, "slice %d against plain", slice)
				require.Equal(t, first.fuel, r.fuel, "fuel with slice %d against a large one", slice)
			}
			interpreted := runSpec(t, script, true, 50, specInstrument)
			require.Equal(t, first.fuel, interpreted.fuel, "fuel of the interpreter against the compiler's")
		})
	}
	t.Logf("%d commands, 4 times each, in %s", commands, time.Since(begin).Round(time.Millisecond))
}

// TestSpecificationFindsMutants shows that the suite would notice a broken rewrite.
func TestSpecificationFindsMutants(t *testing.T) {
	script := filepath.Join(specDir(t), "v2", "testdata", "call_indirect.json")
	plain := runSpec(t, script, false, 0, nil)
	mutants := map[string]func(*wasmbin.Module){
		"element segments not shifted": func(m *wasmbin.Module) {
			for i := range m.Elements {
				for j := range m.Elements[i].Funcs {
					m.Elements[i].Funcs[j]--
				}
			}
		},
		"exports not shifted": func(m *wasmbin.Module) {
			for i := range m.Exports {
				if m.Exports[i].Kind == wasmbin.KindFunc {
					m.Exports[i].Index--
				}
			}
		},
	}
	for name, mutate := range mutants {
		t.Run(name, func(t *testing.T) {
			broken := runSpec(t, script, false, 50, func(b []byte) ([]byte, Info, error) {
				out, info, err := specInstrument(b)
				if err != nil {
					return nil, Info{}, err
				}
				m, err := wasmbin.Decode(out, specCaps())
				require.NoError(t, err)
				mutate(m)
				return m.Encode(), info, nil
			})
			require.NotEqual(t, plain.outcomes, broken.outcomes)
		})
	}
}
