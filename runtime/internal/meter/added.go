package meter

import (
	"math"

	"github.com/longshore/longshore/runtime/internal/wasmbin"
)

// added is what Instrument adds to a module. Indices are those of the rewritten module.
type added struct {
	word, memoryFailed uint32 // globals, the first as of word.go
	yield              uint32 // the import: (i64) -> i64
	refill             uint32 // (i64) -> i64: yields, and adds to a word and to the global what was granted
	overflow           uint32 // () -> (): yield(math.MinInt64)
	grow               uint32 // (i32) -> i32: memory.grow, paid for and noted; only if there is a memory

	callDepth int64
	maxPages  int64    // of memory
	segments  []uint32 // bytes of each data segment of the original
	helpers   []helper // behind grow, in the order in which they were asked for
	indices   map[helperKey]uint32
}

// helperKey tells helpers apart: an instruction, and for memory.init its segment.
type helperKey struct {
	op      wasmbin.Op
	segment uint32
}

type helper struct {
	helperKey
	raw []byte // the instruction
}

func newAdded(m *wasmbin.Module, o *Options) *added {
	globals := uint32(m.ImportCount(wasmbin.KindGlobal) + len(m.Globals))
	imported := uint32(m.ImportCount(wasmbin.KindFunc))
	own := imported + 1 + uint32(len(m.Functions))
	a := &added{
		word: globals, memoryFailed: globals + 1,
		yield: imported, refill: own, overflow: own + 1, grow: own + 2,
		callDepth: o.CallDepth, maxPages: maxPages(o.MemoryBytes), indices: map[helperKey]uint32{},
	}
	for i := range m.Data {
		a.segments = append(a.segments, uint32(len(m.Data[i].Bytes)))
	}
	return a
}

// function returns the index, in the rewritten module, of the function i of the original.
func (a *added) function(i uint32) uint32 {
	if i >= a.yield {
		return i + 1
	}
	return i
}

// helper returns the function that does a bulk instruction on memory in pieces: (i32, i32, i32) -> ().
func (a *added) helper(in *wasmbin.Instr) uint32 {
	k := helperKey{op: in.Op, segment: in.X}
	i, ok := a.indices[k]
	if !ok {
		i = a.grow + 1 + uint32(len(a.helpers))
		a.indices[k] = i
		a.helpers = append(a.helpers, helper{k, append([]byte(nil), in.Raw...)})
	}
	return i
}

// appendTo appends the import and the functions to m.
func (a *added) appendTo(m *wasmbin.Module) {
	i32, i64 := []wasmbin.ValueType{wasmbin.I32}, []wasmbin.ValueType{wasmbin.I64}
	t := uint32(len(m.Types))
	m.Types = append(
		m.Types,
		wasmbin.FuncType{Params: i64, Results: i64},
		wasmbin.FuncType{},
		wasmbin.FuncType{Params: i32, Results: i32},
		wasmbin.FuncType{Params: []wasmbin.ValueType{wasmbin.I32, wasmbin.I32, wasmbin.I32}},
	)
	m.Imports = append(m.Imports, wasmbin.Import{Module: ImportModule, Name: ImportYield, Kind: wasmbin.KindFunc, Func: t})
	m.Functions = append(m.Functions, t, t+1)
	m.Code = append(m.Code, a.refillBody(), a.overflowBody())
	if len(m.Memories) == 0 && m.ImportCount(wasmbin.KindMemory) == 0 {
		return
	}
	m.Functions = append(m.Functions, t+2)
	m.Code = append(m.Code, a.growBody())
	for i := range a.helpers {
		m.Functions = append(m.Functions, t+3)
		m.Code = append(m.Code, a.bulkBody(&a.helpers[i]))
	}
}

// pay takes fuel from the global, as many times a constant as the i32 local n says, shifted right, and yields if it is
// negative then.
func (a *added) pay(c *code, n uint32, factor, shift int64) {
	c.index(wasmbin.OpGlobalGet, a.word)
	c.index(wasmbin.OpLocalGet, n)
	c.op(wasmbin.OpI64ExtendI32U)
	c.i64(factor)
	c.op(wasmbin.OpI64Mul)
	c.i64(shift)
	c.op(wasmbin.OpI64ShrU)
	c.toWord()
	c.op(wasmbin.OpI64Sub)
	c.index(wasmbin.OpGlobalSet, a.word)
	c.index(wasmbin.OpGlobalGet, a.word)
	c.i64(0)
	c.op(wasmbin.OpI64LtS)
	c.ifThen(func() {
		c.index(wasmbin.OpGlobalGet, a.word)
		c.index(wasmbin.OpCall, a.refill)
		c.op(wasmbin.OpDrop)
	})
}

// refillBody is the code of refill. The global gains what was granted, even if what its function has used since the
// global was written is only in a local: so a call that traps has used the same, whatever the slices were.
func (a *added) refillBody() wasmbin.Body {
	const word, left = 0, 1
	var c code
	c.index(wasmbin.OpLocalGet, word)
	c.i64(depthBits)
	c.op(wasmbin.OpI64ShrS)
	c.index(wasmbin.OpLocalTee, left)
	c.index(wasmbin.OpCall, a.yield)
	c.index(wasmbin.OpLocalGet, left)
	c.op(wasmbin.OpI64Sub)
	c.toWord()
	c.index(wasmbin.OpLocalTee, left) // what was granted, from here on
	c.index(wasmbin.OpGlobalGet, a.word)
	c.op(wasmbin.OpI64Add)
	c.index(wasmbin.OpGlobalSet, a.word)
	c.index(wasmbin.OpLocalGet, word)
	c.index(wasmbin.OpLocalGet, left)
	c.op(wasmbin.OpI64Add, wasmbin.OpEnd)
	return wasmbin.Body{Locals: []wasmbin.LocalGroup{{Count: 1, Type: wasmbin.I64}}, Expr: c}
}

// overflowBody is the code of overflow.
func (a *added) overflowBody() wasmbin.Body {
	var c code
	c.i64(math.MinInt64)
	c.index(wasmbin.OpCall, a.yield)
	c.op(wasmbin.OpDrop, wasmbin.OpEnd)
	return wasmbin.Body{Expr: c}
}

// growBody is the code of grow. Who asks at once for more than memory may have gets -1, but hasn't run out of memory.
func (a *added) growBody() wasmbin.Body {
	const pages, result = 0, 1
	var c code
	c.op(wasmbin.OpMemorySize)
	c.raw([]byte{0})
	c.op(wasmbin.OpI64ExtendI32U)
	c.index(wasmbin.OpLocalGet, pages)
	c.op(wasmbin.OpI64ExtendI32U, wasmbin.OpI64Add)
	c.i64(a.maxPages)
	c.op(wasmbin.OpI64LeU)
	c.ifThen(func() { a.pay(&c, pages, pageFuel, 0) })
	c.index(wasmbin.OpLocalGet, pages)
	c.op(wasmbin.OpMemoryGrow)
	c.raw([]byte{0})
	c.index(wasmbin.OpLocalTee, result)
	c.i32(-1)
	c.op(wasmbin.OpI32Eq)
	c.index(wasmbin.OpLocalGet, pages)
	c.i32(int32(a.maxPages))
	c.op(wasmbin.OpI32LeU, wasmbin.OpI32And)
	c.ifThen(func() {
		c.i32(1)
		c.index(wasmbin.OpGlobalSet, a.memoryFailed)
	})
	c.index(wasmbin.OpLocalGet, result)
	c.op(wasmbin.OpEnd)
	return wasmbin.Body{Locals: []wasmbin.LocalGroup{{Count: 1, Type: wasmbin.I32}}, Expr: c}
}
