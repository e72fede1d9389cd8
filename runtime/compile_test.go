package runtime_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
)

// Each module is refused at deploy, at its stage, in words that name what is wrong.
func TestCompile_Refuses(t *testing.T) {
	ok := opConst(0)
	small := func(change func(m *wasmModule)) []byte {
		m := wasmModule{handler: []byte(ok)}
		change(&m)
		return m.assemble()
	}
	importing := func(module, name, params, results string) []byte {
		return small(func(m *wasmModule) { m.imports = []wasmImport{{module, name, params, results}} })
	}
	exporting := func(export, wasi, params, results string) []byte {
		return small(func(m *wasmModule) {
			m.imports = []wasmImport{{"wasi_snapshot_preview1", wasi, params, results}}
			m.handler, m.noAlloc = nil, true
			m.exported = export
			if export != handleExport {
				m.handler = []byte(ok)
			}
		})
	}
	const types = "wasi:messaging/types@0.2.0-draft"
	cases := map[string]struct {
		wasm  []byte
		stage runtime.Stage
		words string
	}{
		"Nothing":          {nil, runtime.StageDecode, "not WebAssembly"},
		"Text":             {[]byte("(module)"), runtime.StageDecode, "not WebAssembly"},
		"AnEmptyComponent": {[]byte("\x00asm\x0d\x00\x01\x00"), runtime.StageDecode, "component: no handler: it exports nothing"},
		"ATornModule":      {small(func(*wasmModule) {})[:40], runtime.StageDecode, ""},
		"WrongOperand":     {small(func(m *wasmModule) { m.handler = []byte("\x42\x00") }), runtime.StageCompile, ""},
		"NoHandler": {
			small(func(m *wasmModule) { m.handler, m.extra = nil, "run" }), runtime.StageInterface,
			`"wasi:messaging/incoming-handler@0.2.0-draft#handle" is missing; the module exports "cabi_realloc", "run"`,
		},
		"NoMemory":      {small(func(m *wasmModule) { m.noMemory = true }), runtime.StageInterface, `no memory: export "memory" is missing`},
		"UnknownImport": {importing("env", "abort", i32, ""), runtime.StageInterface, `import "env" "abort" is not served`},
		"UnknownName":   {importing(types, "[method]message.ttl", i32, ""), runtime.StageInterface, `"[method]message.ttl" is not served`},
		"WrongSignature": {
			importing(types, "[method]message.topic", i32, ""), runtime.StageInterface,
			`has the signature (i32) -> (); (i32 i32) -> () is right`,
		},
		"FirstDraft":     {importing("wasi:messaging/consumer@0.2.0-draft", "subscribe", i32, ""), runtime.StageInterface, "first draft"},
		"AsyncModule":    {importing(types, "[async-lower]send", i32, i32), runtime.StageInterface, "WASI 0.3"},
		"NewerVersion":   {importing("longshore:messaging/publisher@0.9.0", "publish", i32+i32, ""), runtime.StageInterface, "version 0.1.0 is"},
		"Atomics":        {importing("wasi:keyvalue/atomics@0.2.0-draft", "increment", i32x(5), ""), runtime.StageInterface, "of wasi:keyvalue only store is"},
		"StoreOfDraft3":  {importing("wasi:keyvalue/store@0.2.0-draft3", "open", i32x(3), ""), runtime.StageInterface, "version 0.2.0-draft or 0.2.0-draft2 is"},
		"DynamicLinking": {importing("env", "__memory_base", i32, ""), runtime.StageInterface, "dynamic linking is not supported"},
		"UnknownWASI":    {importing("wasi_snapshot_preview1", "fd_fly", i32, i32), runtime.StageInterface, `"fd_fly" is not served`},
		"WASISignature":  {importing("wasi_snapshot_preview1", "fd_close", i64, i32), runtime.StageInitialise, "fd_close"},
		"StartTraps":     {small(func(m *wasmModule) { m.start = []byte(opUnreachable) }), runtime.StageInitialise, "guest-trap"},
		"InitTraps":      {small(func(m *wasmModule) { m.init = []byte(opUnreachable) }), runtime.StageInitialise, "guest-trap"},
		"InitNeverEnds":  {small(func(m *wasmModule) { m.init = []byte(opLoop("")) }), runtime.StageInitialise, "out-of-fuel"},
		"DataOutOfBound": {small(func(m *wasmModule) { m.data = make([]byte, 65536) }), runtime.StageInitialise, "data segment 0 (65536 bytes at 1024) is outside of memory"},
		"PaddedSIMD": {small(func(m *wasmModule) {
			// What looks like a constant is an else with an endless loop to who reads one byte after the prefix.
			m.handler = []byte(ok + "\xfd\x8c\x00\x05\x03\x40\x0c\x00\x0b" + strings.Repeat("\x01", 10) + opDrop)
		}), runtime.StageDecode, "shortest form"},
		"HandlerIsAnImport":    {exporting(handleExport, "fd_close", i32, i32), runtime.StageInterface, "is an import"},
		"ReallocIsAnImport":    {exporting("cabi_realloc", "fd_write", i32x(4), i32), runtime.StageInterface, "is an import"},
		"PostReturnIsAnImport": {exporting("cabi_post_"+handleExport, "proc_exit", i32, ""), runtime.StageInterface, "is an import"},
		"NoRealloc": {
			small(func(m *wasmModule) {
				m.noAlloc, m.imports = true, []wasmImport{{types, "[method]message.data", i32 + i32, ""}}
			}), runtime.StageInterface, `no export "cabi_realloc"`,
		},
	}
	e := newEngine(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := e.Compile(t.Context(), "bad", c.wasm, testLimits())
			var refused *runtime.ModuleError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, c.stage, refused.Stage, err)
			require.Equal(t, "bad", refused.Module)
			require.ErrorContains(t, err, c.words)
		})
	}
	t.Run("MoreMemoryThanItMayHave", func(t *testing.T) {
		g := testLimits()
		g.MemoryBytes = 64*limits.KiB - 1
		_, err := e.Compile(t.Context(), "bad", small(func(*wasmModule) {}), g)
		require.ErrorIs(t, err, &limits.Error{Name: limits.NameMemory})
	})
}

func TestCompile_DigestIsOfTheModuleAsGiven(t *testing.T) {
	wasm := wasmModule{handler: []byte(opConst(0))}.assemble()
	m, err := newEngine(t).Compile(t.Context(), "small", wasm, testLimits())
	require.NoError(t, err)
	sum := sha256.Sum256(wasm)
	require.Equal(t, hex.EncodeToString(sum[:]), m.Digest())
}
