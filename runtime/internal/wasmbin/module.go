// Package wasmbin decodes and encodes core WebAssembly modules.
//
// Decode is strict and bounded: it runs before anything else sees a byte from a stranger, in time and memory linear in
// the size of the module, and it enforces the caps that the compiler lacks. It checks structure, counts and every index,
// but not the types of operands: the compiler does that afterwards. Indices matter most, because a module is rewritten
// with functions, globals, locals and labels of the host's own added, and none of them may be reachable by a number that
// was out of range before.
//
// A module is a header and sections; everything is little-endian, integers are LEB128:
//
//	┌──────────┬─────────────┬─────────┬─────────┬───
//	│ 00 a s m │ 01 00 00 00 │ section │ section │ …
//	└──────────┴─────────────┴─────────┴─────────┴───
//	section: │ id u8 │ size u32 │ size bytes │
//
// Known sections come at most once, in the order type(1) import(2) function(3) table(4) memory(5) global(6) export(7)
// start(8) element(9) data count(12) code(10) data(11); custom sections (0) come anywhere. Accepted is WebAssembly 2.0
// with tail calls and extended constant expressions.
package wasmbin

// ValueType is the encoding of a value type.
type ValueType byte

// Value types of WebAssembly 2.0.
const (
	I32       ValueType = 0x7f
	I64       ValueType = 0x7e
	F32       ValueType = 0x7d
	F64       ValueType = 0x7c
	V128      ValueType = 0x7b
	FuncRef   ValueType = 0x70
	ExternRef ValueType = 0x6f
)

// ExternKind says what an import or export is.
type ExternKind byte

// Kinds of imports and exports.
const (
	KindFunc   ExternKind = 0
	KindTable  ExternKind = 1
	KindMemory ExternKind = 2
	KindGlobal ExternKind = 3
)

// Module is a decoded module. Byte slices share memory with the decoded bytes, which must not change while it is used.
type Module struct {
	Types     []FuncType
	Imports   []Import
	Functions []uint32 // type index of each defined function
	Tables    []Table
	Memories  []Limits // in pages of 64 KiB; at most one, an imported one included
	Globals   []Global
	Exports   []Export
	Start     *uint32 // function index
	Elements  []Element
	DataCount *uint32
	Code      []Body // one for each of Functions
	Data      []Data
	Customs   []Custom
}

// FuncType is the type of a function or block.
type FuncType struct{ Params, Results []ValueType }

// Limits are a minimum and an optional maximum, in pages or elements.
type Limits struct {
	Min, Max uint32
	HasMax   bool
}

// Table is a table's type.
type Table struct {
	Type   ValueType
	Limits Limits
}

// GlobalType is a global's type.
type GlobalType struct {
	Type    ValueType
	Mutable bool
}

// Global is a defined global.
type Global struct {
	Type GlobalType
	Init ConstExpr
}

// Import is an import; the field that Kind names is set.
type Import struct {
	Module, Name string
	Kind         ExternKind
	Func         uint32 // type index
	Table        Table
	Memory       Limits
	Global       GlobalType
}

// Export is an export; Index is in the index space of Kind.
type Export struct {
	Name  string
	Kind  ExternKind
	Index uint32
}

// SegmentMode says when a segment is written to its table or memory.
type SegmentMode byte

// Segment modes.
const (
	Active SegmentMode = iota
	Passive
	Declarative // element segments only
)

// Element is an element segment: Exprs, or if Exprs is nil, the functions Funcs.
type Element struct {
	Mode   SegmentMode
	Table  uint32    // of an active segment
	Offset ConstExpr // of an active segment
	Type   ValueType
	Funcs  []uint32
	Exprs  []ConstExpr
}

// Data is a data segment, Active or Passive.
type Data struct {
	Mode   SegmentMode
	Offset ConstExpr // of an active segment
	Bytes  []byte
}

// Body is the code of a function.
type Body struct {
	Locals []LocalGroup
	Expr   []byte // instructions, with the final end
	Offset int    // of Expr from the start of the module; 0 if it wasn't decoded
}

// LocalGroup declares Count locals of one type.
type LocalGroup struct {
	Count uint32
	Type  ValueType
}

// Custom is a custom section.
type Custom struct {
	Name  string
	Bytes []byte
}

// ImportCount returns the number of imports of a kind, which is the index of the first one defined in the module.
func (m *Module) ImportCount(k ExternKind) int {
	n := 0
	for i := range m.Imports {
		if m.Imports[i].Kind == k {
			n++
		}
	}
	return n
}

// LocalCount returns the number of declared locals, without parameters.
func (b *Body) LocalCount() int64 {
	var n int64
	for _, g := range b.Locals {
		n += int64(g.Count)
	}
	return n
}
