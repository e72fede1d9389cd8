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

// CheckPreamble refuses what isn't WebAssembly by its first bytes, and tells a component from a core module.
func CheckPreamble(wasm []byte) (isComponent bool, err error) {
	switch {
	case bytes.HasPrefix(wasm, []byte("\x00asm\x01\x00\x00\x00")):
		return false, nil
	case bytes.HasPrefix(wasm, []byte("\x00asm\x0d\x00\x01\x00")):
		return true, nil
	case bytes.HasPrefix(wasm, []byte("\x00asm")):
		return false, errors.New("this is WebAssembly of an unknown version; a core module of version 1 or a component is wanted")
	}
	return false, errors.New("this is not WebAssembly: it doesn't begin with \\0asm")
}

// boundFunc is a function as one module imports it.
type boundFunc struct {
	hostFunc
	as string
}

// checkImports returns the functions that m imports from this package, by import module.
func checkImports(m wazero.CompiledModule, o BindOptions, realloc string) (funcs map[string][]boundFunc, faults []error) {
	funcs = map[string][]boundFunc{}
	allocs := ""
	for _, d := range m.ImportedFunctions() {
		module, name, _ := d.Import()
		if slices.Contains(o.Served, module) {
			continue
		}
		f, ok := find(module, name, o.Draft)
		if !ok {
			f, ok = denied(module, d)
		}
		switch {
		case !ok:
			faults = append(faults, unserved(module, name))
		case !slices.Equal(d.ParamTypes(), valueTypes(f.params)) || !slices.Equal(d.ResultTypes(), valueTypes(f.results)):
			faults = append(faults, fmt.Errorf("import %.120q %.120q has the signature %s; %s is right",
				module, name, signature(d.ParamTypes(), d.ResultTypes()), signature(valueTypes(f.params), valueTypes(f.results))))
		default:
			if f.allocs {
				allocs = name
			}
			bound := boundFunc{f, name}
			if !slices.ContainsFunc(funcs[module], func(b boundFunc) bool { return b.as == name }) {
				funcs[module] = append(funcs[module], bound)
			}
		}
	}
	if allocs != "" && realloc == "" {
		faults = append(faults, fmt.Errorf("no export %q or %q, one of which the host needs to answer %q",
			legacy.realloc, standard32.realloc, allocs))
	}
	for _, d := range m.ImportedMemories() {
		module, name, _ := d.Import()
		faults = append(faults, fmt.Errorf("import of the memory %.120q %.120q: a module must define its own", module, name))
	}
	return funcs, faults
}

// unserved words the refusal of an import, naming the ABIs that a toolchain may have targeted instead.
func unserved(module, name string) error {
	_, iface, version := splitModule(module)
	var versions []string
	for _, i := range interfaces() {
		if i.name == iface {
			versions = append(versions, i.versions...)
		}
	}
	slices.Sort(versions)
	hint := ""
	if len(versions) > 0 && !slices.Contains(versions, version) {
		hint = ": version " + strings.Join(slices.Compact(versions), " or ") + " is"
	}
	switch {
	case isAsync(module, name):
		hint = ": WASI 0.3 (async) modules are not supported"
	case iface == "wasi:messaging/messaging-types", iface == "wasi:messaging/consumer", iface == "wasi:messaging/messaging-guest":
		hint = ": this is the first draft of wasi:messaging; build against the draft of December 2024"
	case iface == "wasi:keyvalue/atomics", iface == "wasi:keyvalue/batch":
		hint = ": of wasi:keyvalue only store is; what it reads and writes in one call is one transaction anyway"
	case module == "env" && (strings.HasPrefix(name, "__") || name == "memory"), strings.HasPrefix(module, "GOT."):
		hint = ": dynamic linking is not supported; link the module statically"
	}
	return fmt.Errorf("import %.120q %.120q is not served%s", module, name, hint)
}

// isAsync tells the imports that only modules of WASI 0.3 have.
func isAsync(module, name string) bool {
	for _, prefix := range []string{
		"[async", "[task-", "[stream-", "[future-", "[waitable-", "[context-", "[subtask-", "[backpressure-", "[error-context-",
		"[yield", "[thread-",
	} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	_, iface, version := splitModule(module)
	return strings.HasPrefix(iface, "wasi:") && strings.HasPrefix(version, "0.3.")
}

// findExports looks for the handler and what belongs to it.
func (b *Binding) findExports(m wazero.CompiledModule, o BindOptions) (faults []error) {
	funcs := m.ExportedFunctions()
	names := &legacy
	b.exports = o.Exports
	if o.Interface != "" {
		b.handler, _ = handlerOf(o.Interface)
		b.exports.Initialize = existing(funcs, names.initialize)
	} else {
		b.handler, names = findHandler(funcs)
	}
	if b.handler.name == "" {
		return []error{fmt.Errorf("no handler: %s is missing; %s", handlerChoice(), exported(funcs))}
	}
	if o.Interface == "" {
		b.exports.Handler = names.export(b.handler.iface, b.handler.version, b.handler.name)
		b.exports.PostReturn = existing(funcs, names.post(b.exports.Handler))
		b.exports.Realloc = existing(funcs, names.realloc)
		b.exports.Initialize = existing(funcs, names.initialize)
	}
	wanted := []struct{ name, params, results string }{
		{b.exports.Handler, b.handler.params, "i"},
		{b.exports.PostReturn, "i", ""},
		{b.exports.Realloc, "iiii", "i"},
		{b.exports.Initialize, "", ""},
	}
	for _, w := range wanted {
		d, ok := funcs[w.name]
		switch {
		case w.name == "":
		case !ok:
			faults = append(faults, fmt.Errorf("export %.120q is missing; %s", w.name, exported(funcs)))
		case !slices.Equal(d.ParamTypes(), valueTypes(w.params)) || !slices.Equal(d.ResultTypes(), valueTypes(w.results)):
			faults = append(faults, fmt.Errorf("export %.120q has the signature %s; %s is right",
				w.name, signature(d.ParamTypes(), d.ResultTypes()), signature(valueTypes(w.params), valueTypes(w.results))))
		case imported(d):
			faults = append(faults, fmt.Errorf("export %.120q is an import; the module must define it", w.name))
		}
	}
	if b.handler.allocs && b.exports.Realloc == "" {
		faults = append(faults, fmt.Errorf("no export %q, which the host needs to call %q", names.realloc, b.exports.Handler))
	}
	if len(m.ExportedMemories()) == 0 {
		faults = append(faults, fmt.Errorf("no memory: export %q is missing", names.memory))
	}
	return faults
}

// existing returns name if it is exported, else "".
func existing(funcs map[string]api.FunctionDefinition, name string) string {
	if _, ok := funcs[name]; ok {
		return name
	}
	return ""
}

func imported(d api.FunctionDefinition) bool {
	_, _, is := d.Import()
	return is
}

// maxNamedExports bounds how many exports a refusal names.
const maxNamedExports = 12

// exported says what a module exports.
func exported(funcs map[string]api.FunctionDefinition) string {
	if len(funcs) == 0 {
		return "the module exports no function"
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
	return "the module exports " + strings.Join(names, ", ") + more
}

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
