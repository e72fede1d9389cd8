package messaging

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// CheckPreamble refuses what isn't a core module by its first bytes.
func CheckPreamble(wasm []byte) error {
	switch {
	case bytes.HasPrefix(wasm, []byte("\x00asm\x01\x00\x00\x00")):
		return nil
	case bytes.HasPrefix(wasm, []byte("\x00asm\x0d\x00\x01\x00")):
		return errors.New("this is a component; give the core module that it was made from")
	case bytes.HasPrefix(wasm, []byte("\x00asm")):
		return errors.New("this is WebAssembly of an unknown version; a core module of version 1 is wanted")
	}
	return errors.New("this is not WebAssembly: it doesn't begin with \\0asm")
}

// Check says whether the imports and exports of a module fit the interfaces of this package. Functions imported from
// the modules named in others are the caller's to check. All faults are reported, joined, within reason.
func Check(m wazero.CompiledModule, others ...string) error {
	faults := append(checkExports(m), checkImports(m, others)...)
	if extra := len(faults) - maxFaults; extra > 0 {
		faults = append(faults[:maxFaults], fmt.Errorf("and %d more faults", extra))
	}
	return errors.Join(faults...)
}

// maxFaults bounds how many faults Check reports.
const maxFaults = 16

func checkImports(m wazero.CompiledModule, others []string) (faults []error) {
	served := map[string]hostFunc{}
	for _, i := range interfaces() {
		for _, f := range i.funcs {
			served[i.module+"\x00"+f.name] = f
		}
	}
	allocs := ""
	for _, d := range m.ImportedFunctions() {
		module, name, _ := d.Import()
		if slices.Contains(others, module) {
			continue
		}
		f, ok := served[module+"\x00"+name]
		switch {
		case !ok:
			faults = append(faults, unserved(module, name))
		case !isI32s(d.ParamTypes(), f.params) || !isI32s(d.ResultTypes(), f.results):
			faults = append(faults, fmt.Errorf("import %.120q %.120q has the signature %s; %s is right",
				module, name, signature(d.ParamTypes(), d.ResultTypes()), signature(i32s(f.params), i32s(f.results))))
		case f.allocs:
			allocs = name
		}
	}
	if _, ok := m.ExportedFunctions()[exportRealloc]; allocs != "" && !ok {
		faults = append(faults, fmt.Errorf("no export %q, which the host needs to answer %q", exportRealloc, allocs))
	}
	for _, d := range m.ImportedMemories() {
		module, name, _ := d.Import()
		faults = append(faults, fmt.Errorf("import of the memory %.120q %.120q: a module must define its own", module, name))
	}
	return faults
}

// unserved words the refusal of an import, naming the older and newer ABIs that a toolchain may have targeted.
func unserved(module, name string) error {
	hint := ""
	switch {
	case strings.HasPrefix(name, "[async"), strings.HasPrefix(name, "[task-"), strings.HasPrefix(name, "[stream-"),
		strings.HasPrefix(name, "[future-"), strings.HasPrefix(name, "[waitable-"), strings.HasPrefix(name, "[context-"),
		strings.HasPrefix(name, "[subtask-"), strings.Contains(module, "@0.3."):
		hint = ": WASI 0.3 (async) modules are not supported"
	case strings.HasPrefix(module, "wasi:messaging/messaging-types"), strings.HasPrefix(module, "wasi:messaging/consumer"):
		hint = ": this is the first draft of wasi:messaging; build against the draft of December 2024"
	case strings.HasPrefix(module, "cm32p2|"):
		hint = ": build with the legacy name mangling"
	}
	return fmt.Errorf("import %.120q %.120q is not served%s", module, name, hint)
}

func checkExports(m wazero.CompiledModule) (faults []error) {
	funcs := m.ExportedFunctions()
	wanted := []struct {
		name            string
		params, results int
		required        bool
	}{
		{exportHandle, 1, 1, true},
		{exportPostReturn, 1, 0, false},
		{exportRealloc, 4, 1, false},
		{ExportInitialize, 0, 0, false},
	}
	for _, w := range wanted {
		d, ok := funcs[w.name]
		switch {
		case !ok && w.required:
			faults = append(faults, fmt.Errorf("no handler: export %q is missing; the module exports %s", w.name, exportNames(funcs)))
		case ok && (!isI32s(d.ParamTypes(), w.params) || !isI32s(d.ResultTypes(), w.results)):
			faults = append(faults, fmt.Errorf("export %q has the signature %s; %s is right",
				w.name, signature(d.ParamTypes(), d.ResultTypes()), signature(i32s(w.params), i32s(w.results))))
		case ok && imported(d):
			faults = append(faults, fmt.Errorf("export %q is an import; the module must define it", w.name))
		}
	}
	if _, ok := m.ExportedMemories()[exportMemory]; !ok {
		faults = append(faults, fmt.Errorf("no memory: export %q is missing", exportMemory))
	}
	return faults
}

func imported(d api.FunctionDefinition) bool {
	_, _, is := d.Import()
	return is
}

// maxNamedExports bounds how many exports a refusal names.
const maxNamedExports = 12

func exportNames(funcs map[string]api.FunctionDefinition) string {
	if len(funcs) == 0 {
		return "no function"
	}
	names := make([]string, 0, len(funcs))
	for n := range funcs {
		names = append(names, fmt.Sprintf("%.80q", n))
	}
	slices.Sort(names)
	more := ""
	if extra := len(names) - maxNamedExports; extra > 0 {
		names, more = names[:maxNamedExports], fmt.Sprintf(" and %d more", extra)
	}
	return strings.Join(names, ", ") + more
}

func isI32s(types []api.ValueType, n int) bool { return slices.Equal(types, i32s(n)) }

func signature(params, results []api.ValueType) string {
	return "(" + typeNames(params) + ") -> (" + typeNames(results) + ")"
}

func typeNames(types []api.ValueType) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = api.ValueTypeName(t)
	}
	return strings.Join(names, " ")
}
