package messaging

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// Binding is how a module meets the host: which functions it imports, which handler it exports, and by which names. It is
// made once for a module and safe for concurrent use.
type Binding struct {
	hosts   map[string]api.Module // by the name of the import module
	handler handler
	exports Exports
}

// Exports are names of functions that a module exports. "" = there is none.
type Exports struct {
	Handler    string
	PostReturn string // of Handler
	Realloc    string
	Initialize string // to be called once, before anything else
}

// BindOptions say what can't be told from the module that Bind is given.
type BindOptions struct {
	// Served are import modules that somebody else provides.
	Served []string
	// Draft is the draft of wasi:messaging that the module was made for; "" = the arity of its request tells, or else
	// DraftOfTypes.
	Draft Draft
	// DraftOfTypes is the draft that the types of the module tell, which binding generators leave in it; "" = they don't,
	// and it is DraftC.
	DraftOfTypes Draft
	// Interface and Exports are the handler's, if a component says by which names its module exports them. Interface has
	// its version; "" = they are looked for by the names that binding generators use.
	Interface string
	Exports   Exports
}

// Bind checks whether the imports and exports of a module fit the interfaces of this package, and makes ready what it
// imports. All faults are reported, joined, within reason.
func Bind(ctx context.Context, r wazero.Runtime, m wazero.CompiledModule, o BindOptions) (*Binding, error) {
	o.Draft = cmp.Or(o.Draft, draftOf(m), o.DraftOfTypes, DraftC)
	b := &Binding{hosts: map[string]api.Module{}}
	faults := b.findExports(m, o)
	funcs, importFaults := checkImports(m, o, b.exports.Realloc)
	faults = append(faults, importFaults...)
	if extra := len(faults) - maxFaults; extra > 0 {
		faults = append(faults[:maxFaults], fmt.Errorf("and %d more faults", extra))
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	if err := b.provide(ctx, r, funcs); err != nil {
		return nil, errors.Join(err, b.Close(ctx))
	}
	return b, nil
}

// maxFaults bounds how many faults Bind reports.
const maxFaults = 16

// provide makes a host module for each module that is imported, with the functions that are imported from it.
func (b *Binding) provide(ctx context.Context, r wazero.Runtime, funcs map[string][]boundFunc) error {
	for module, list := range funcs {
		builder := r.NewHostModuleBuilder(module)
		for _, f := range list {
			builder.NewFunctionBuilder().
				WithGoModuleFunction(f.adapt(module), valueTypes(f.params), valueTypes(f.results)).Export(f.as)
		}
		compiled, err := builder.Compile(ctx)
		if err != nil {
			return fmt.Errorf("messaging: providing %.120q: %w", module, err)
		}
		// Without a name, so that another module may see another form of the same interface.
		if b.hosts[module], err = r.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName("")); err != nil {
			return errors.Join(fmt.Errorf("messaging: providing %.120q: %w", module, err), compiled.Close(ctx))
		}
	}
	return nil
}

// Context returns a context in which wazero instantiates the module with what it imports.
func (b *Binding) Context(ctx context.Context) context.Context {
	return experimental.WithImportResolver(ctx, func(module string) api.Module {
		if host, ok := b.hosts[module]; ok {
			return host
		}
		return nil // never a nil host in an interface: wazero looks elsewhere then
	})
}

// Batches says whether the handler takes several messages in one call.
func (b *Binding) Batches() bool { return b.handler.kind == batchHandler }

// Initialize returns the name of the function to be called once, before anything else; "" if there is none.
func (b *Binding) Initialize() string { return b.exports.Initialize }

// Close frees what was made for the module, of which no instance may be left.
func (b *Binding) Close(ctx context.Context) error {
	var errs []error
	for _, host := range b.hosts {
		if host != nil {
			errs = append(errs, host.Close(ctx))
		}
	}
	return errors.Join(errs...)
}

// draftOf tells the draft of wasi:messaging by the one function whose signature differs; "" if the module doesn't import it.
func draftOf(m wazero.CompiledModule) Draft {
	for _, d := range m.ImportedFunctions() {
		module, name, _ := d.Import()
		_, iface, version := splitModule(module)
		if iface != ifaceRequestReply || version != draftVersion || name != "request" {
			continue
		}
		if f, ok := find(module, name, DraftB); ok && slices.Equal(d.ParamTypes(), valueTypes(f.params)) {
			return DraftB
		}
		return DraftC
	}
	return ""
}
