package meter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	loads    int // modules that were looked at
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

// specHow says how to run a script.
type specHow struct {
	cache       wazero.CompilationCache // of runs that share modules
	interpreter bool
	slice       int64
	instrument  func([]byte) ([]byte, Info, error) // nil runs the modules as they are
}

// runSpec runs a script.
func runSpec(t *testing.T, script string, how specHow) *specRun {
	t.Helper()
	raw, err := os.ReadFile(script)
	require.NoError(t, err)
	var parsed struct{ Commands []specCommand }
	require.NoError(t, json.Unmarshal(raw, &parsed))
	r := &specRun{
		t: t, dir: filepath.Dir(script), host: &meterHost{slice: how.slice, budget: 1 << 60}, instrument: how.instrument,
		named: map[string]api.Module{}, registered: map[string]api.Module{},
	}
	r.rt = r.host.cachedRuntime(t, how.interpreter, how.cache)
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
		g.global(g.info.FuelGlobal).Set(Word(g.left(), specOptions().CallDepth))
	}
}

// total returns the fuel that all modules have used.
func (r *specRun) total() int64 {
	n := r.host.granted
	for _, g := range r.live {
		n -= g.left()
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
	r.loads++
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
		require.Equal(r.t, specOptions().CallDepth, g.depth(), "line %d: call depth", c.Line)
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

// assertions counts the commands that assert something.
func (r *specRun) assertions() (n int) {
	for _, o := range r.outcomes {
		if strings.Contains(o, " assert_") {
			n++
		}
	}
	return n
}

// specSlices are those that the suite runs with. The first is what the host begins with.
func specSlices() []int64 { return []int64{50_000, 0, 50} }

// TestSpecification runs the WebAssembly specification suite on plain and on instrumented modules: they give the same
// results, and use the same fuel with all slices, with the compiler and with the interpreter.
func TestSpecification(t *testing.T) {
	dir := specDir(t)
	begin := time.Now()
	assertions, modules := 0, 0
	for _, script := range specScripts(t, dir) {
		name, err := filepath.Rel(dir, script)
		require.NoError(t, err)
		t.Run(strings.TrimSuffix(name, ".json"), func(t *testing.T) {
			cache := wazero.NewCompilationCache()
			defer func() { require.NoError(t, cache.Close(context.Background())) }()
			plain := runSpec(t, script, specHow{cache: cache})
			assertions += plain.assertions()
			modules += plain.loads
			var first *specRun
			for _, slice := range specSlices() {
				r := runSpec(t, script, specHow{cache: cache, slice: slice, instrument: specInstrument})
				require.Equal(t, plain.outcomes, r.outcomes, "slice %d against plain", slice)
				if first == nil {
					first = r
				}
				require.Equal(t, first.fuel, r.fuel, "fuel with slice %d against the first", slice)
			}
			interpreted := runSpec(t, script, specHow{interpreter: true, slice: 50, instrument: specInstrument})
			require.Equal(t, first.fuel, interpreted.fuel, "fuel of the interpreter against the compiler's")
		})
	}
	t.Logf("figure spec_modules %d", modules)
	t.Logf("figure spec_assertions %d", assertions)
	t.Logf("each plain, with %d slices, and with the interpreter, in %s", len(specSlices()), time.Since(begin).Round(time.Millisecond))
}

// TestSpecificationFindsMutants shows that the suite would notice a broken rewrite.
func TestSpecificationFindsMutants(t *testing.T) {
	dir := filepath.Join(specDir(t), "v2", "testdata")
	mutate := func(t *testing.T, script string, mutate func(*wasmbin.Module)) (plain, correct, broken *specRun) {
		t.Helper()
		script = filepath.Join(dir, script)
		instrument := func(b []byte) ([]byte, Info, error) {
			out, info, err := specInstrument(b)
			if err != nil {
				return nil, Info{}, err
			}
			m, err := wasmbin.Decode(out, specCaps())
			require.NoError(t, err)
			mutate(m)
			return m.Encode(), info, nil
		}
		return runSpec(t, script, specHow{}), runSpec(t, script, specHow{slice: 50, instrument: specInstrument}),
			runSpec(t, script, specHow{slice: 50, instrument: instrument})
	}
	results := map[string]func(*wasmbin.Module){
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
	for name, f := range results {
		t.Run(name, func(t *testing.T) {
			plain, _, broken := mutate(t, "call_indirect.json", f)
			require.NotEqual(t, plain.outcomes, broken.outcomes)
		})
	}
	t.Run("a yield doesn't give the header's cost back", func(t *testing.T) {
		// i64.const -n; i64.sub; local.set f; br 0: what a loop gets back after it has yielded.
		back := regexp.MustCompile(`(?s)\x42.{2,4}[\x40-\x7f]\x7d\x21.\x0c\x00`)
		_, correct, broken := mutate(t, "loop.json", func(m *wasmbin.Module) {
			for i := range m.Code {
				m.Code[i].Expr = back.ReplaceAllFunc(m.Code[i].Expr, func(b []byte) []byte {
					b[len(b)-5]-- // i64.add
					return b
				})
			}
		})
		require.Equal(t, correct.outcomes, broken.outcomes)
		require.NotEqual(t, correct.fuel, broken.fuel)
	})
	t.Run("branches not shifted", func(t *testing.T) {
		plain, _, broken := mutate(t, "loop.json", func(m *wasmbin.Module) {
			for i := range m.Code {
				m.Code[i].Expr = bytes.ReplaceAll(m.Code[i].Expr, []byte{0x0c, 4}, []byte{0x0c, 1})
			}
		})
		require.NotEqual(t, plain.outcomes, broken.outcomes)
	})
}
