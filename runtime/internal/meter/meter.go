package meter

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime/internal/wasmbin"
)

// ImportModule and ImportYield name the one function that an instrumented module imports besides its own imports. Its
// type is (i64) -> i64, see the package comment.
const (
	ImportModule = "longshore:meter"
	ImportYield  = "yield"
)

// ExportPrefix begins the name of every export that Instrument adds.
const ExportPrefix = "longshore:meter/"

const (
	pageBytes   = 64 * limits.KiB
	nameSection = "name"
)

var (
	// ErrReservedName is wrapped by the error for a module that imports from ImportModule or exports a name that
	// begins with ExportPrefix.
	ErrReservedName = errors.New("name is reserved for the host")
	// ErrDataOffset is wrapped by the error for a module whose data can't be left out with Options.DropInit, because
	// the place of an active data segment depends on an import.
	ErrDataOffset = errors.New("offset of a data segment is not a constant")
)

// Options are the bounds that Instrument writes into a module.
type Options struct {
	MemoryBytes   int64 // most linear memory; rounded down to pages of 64 KiB
	TableElements int64 // most elements of all tables together; at most math.MaxInt32
	CallDepth     int64 // most nested calls; at most MaxCallDepth

	// DropInit leaves out the start section and the content of active data segments, so that an instance comes up
	// without running guest code and the host can restore a snapshot into it. Where no instruction names a segment, the
	// data section is gone altogether: a Go guest has tens of thousands, and the engine looks at each of them.
	DropInit bool

	// MergeImports cuts the numbers off names such as "f [v2]" that modules import. Components may import a name once, so that
	// wit-component writes these for the second import of f, and those after it.
	MergeImports bool
}

// DataSegment is an active data segment that Options.DropInit left out.
type DataSegment struct {
	Offset uint32 // bytes from the start of memory
	Bytes  []byte // shares memory with the module given to Instrument
}

// Info tells the host how to drive an instrumented module.
type Info struct {
	// Globals are the export names of all mutable globals, in the order of their indices: the module's own, then those
	// that Instrument added.
	Globals []string

	FuelGlobal         string // i64: fuel and nested calls, as Word has them; Word(0, Options.CallDepth) in a new instance
	MemoryFailedGlobal string // i32: 1 after memory.grow was refused

	HasStart    bool   // the module has a start function
	StartExport string // the private export of the start function; "" unless Options.DropInit and HasStart

	DataSegments []DataSegment // what Options.DropInit left out, in order; empty without it

	// FaithfulReset tells that memory and Globals are all the state of an instance: copying them into a new instance
	// gives an equal one. It is false if the module changes tables or drops segments at run time, exports or imports a
	// table, imports a memory or a mutable global, or has a mutable global that isn't a number of at most 64 bits.
	FaithfulReset bool

	// ChangedGlobal is an i32: 1 after the module changed a table, dropped a segment, or set a global that isn't a number
	// of at most 64 bits. Taking note costs two fuel. "" if no code does such, or without Options.DropInit.
	ChangedGlobal string

	Functions int   // functions that the module defines
	HasMemory bool  // the module defines a linear memory
	MemoryMin int64 // bytes of it in a new instance
	MemoryMax int64 // bytes that it may grow to, after the clamp
}

// Instrument decodes and checks wasm and returns it rewritten as the package comment says. The result depends on its
// arguments alone; out doesn't share memory with wasm. It returns the errors of wasmbin.Decode, a *limits.Error for a
// module that wants more memory or table elements at its start than o allows, and errors that wrap ErrReservedName and
// ErrDataOffset.
func Instrument(wasm []byte, o Options) (out []byte, info Info, err error) {
	return instrument(wasm, wasmbin.DefaultCaps(), o)
}

func instrument(wasm []byte, caps wasmbin.Caps, o Options) (out []byte, info Info, err error) {
	o.TableElements = min(max(o.TableElements, 0), math.MaxInt32)
	o.CallDepth = min(max(o.CallDepth, 0), MaxCallDepth)
	m, err := wasmbin.Decode(wasm, caps)
	if err != nil {
		return nil, Info{}, err
	}
	if o.MergeImports {
		mergeImports(m)
	}
	if err := reserved(m); err != nil {
		return nil, Info{}, err
	}
	info = Info{Functions: len(m.Functions), HasStart: m.Start != nil, FaithfulReset: resets(m)}
	if err := clampMemory(m, o.MemoryBytes, &info); err != nil {
		return nil, Info{}, err
	}
	if err := clampTables(m, o.TableElements); err != nil {
		return nil, Info{}, err
	}
	if o.DropInit {
		noteChanges(m, &info)
	}
	keepData := rewrite(m, &o, &info)
	if o.DropInit {
		if err := dropInit(m, keepData, &info); err != nil {
			return nil, Info{}, err
		}
	}
	return m.Encode(), info, nil
}

// reserved refuses a module that reaches for the names of the host.
func reserved(m *wasmbin.Module) error {
	for i := range m.Imports {
		if m.Imports[i].Module == ImportModule {
			return fmt.Errorf("import from module %q: %w", ImportModule, ErrReservedName)
		}
	}
	for i := range m.Exports {
		if n := m.Exports[i].Name; strings.HasPrefix(n, ExportPrefix) {
			return fmt.Errorf("export %.80q: %w", n, ErrReservedName)
		}
	}
	return nil
}

// rewrite adds what the package comment says to m, and reports whether some function uses data segments.
func rewrite(m *wasmbin.Module, o *Options, info *Info) bool {
	a := newAdded(m, o)
	addGlobals(m, a, info)
	shift(m, a)
	w := &rewriter{
		a: a, r: wasmbin.NewInstrReader(), planner: planner{r: wasmbin.NewInstrReader(), types: newCallTypes(m)},
		blocks: &blockTypes{m: m, index: map[string]int{}}, tableMax: o.TableElements,
	}
	for i := range m.Code {
		m.Code[i] = w.function(&m.Code[i], &m.Types[m.Functions[i]])
	}
	info.FaithfulReset = info.FaithfulReset && !w.changes
	a.appendTo(m)
	return w.data
}
