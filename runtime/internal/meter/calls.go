package meter

import "github.com/longshore/longshore/runtime/internal/wasmbin"

// callTypes knows the types of what a module calls.
type callTypes struct {
	types []wasmbin.FuncType
	funcs []uint32 // type index of each function of the original module
}

func newCallTypes(m *wasmbin.Module) *callTypes {
	t := &callTypes{types: m.Types}
	for i := range m.Imports {
		if im := &m.Imports[i]; im.Kind == wasmbin.KindFunc {
			t.funcs = append(t.funcs, im.Func)
		}
	}
	t.funcs = append(t.funcs, m.Functions...)
	return t
}

// Registers that the engine passes values in, on the processor that has the fewest.
const (
	intRegisters   = 6
	floatRegisters = 8
)

// wide reports whether a tail call has parameters or results that don't fit registers. The engine makes ordinary calls
// of such, so that their depth has to be counted.
func (t *callTypes) wide(in *wasmbin.Instr) bool {
	typ := in.X
	if in.Op == wasmbin.OpReturnCall {
		typ = t.funcs[in.X]
	}
	f := &t.types[typ]
	return spills(f.Params) || spills(f.Results)
}

// hasParams reports whether a block, loop or if takes values.
func (t *callTypes) hasParams(in *wasmbin.Instr) bool {
	typ, ok := in.BlockTypeIndex()
	return ok && len(t.types[typ].Params) > 0
}

func spills(values []wasmbin.ValueType) bool {
	ints, floats := 0, 0
	for _, v := range values {
		switch v {
		case wasmbin.F32, wasmbin.F64, wasmbin.V128:
			floats++
		case wasmbin.I32, wasmbin.I64, wasmbin.FuncRef, wasmbin.ExternRef:
			ints++
		}
	}
	return ints > intRegisters || floats > floatRegisters
}
