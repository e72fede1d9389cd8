package meter

import "github.com/longshore/longshore/runtime/internal/wasmbin"

// code is WebAssembly under construction. Its methods append one instruction or idiom each.
type code []byte

func (c *code) raw(b []byte) { *c = append(*c, b...) }

func (c *code) op(ops ...wasmbin.Op) {
	for _, o := range ops {
		*c = wasmbin.AppendOp(*c, o)
	}
}

func (c *code) index(op wasmbin.Op, i uint32) { *c = wasmbin.AppendIndex(*c, op, i) }

func (c *code) i32(v int32) {
	*c = wasmbin.AppendS64(wasmbin.AppendOp(*c, wasmbin.OpI32Const), int64(v))
}

func (c *code) i64(v int64) { *c = wasmbin.AppendS64(wasmbin.AppendOp(*c, wasmbin.OpI64Const), v) }

// open appends a block, loop or if with the encoding of its type.
func (c *code) open(op wasmbin.Op, blockType []byte) {
	c.op(op)
	c.raw(blockType)
}

// empty is the type of a block without parameters and results.
func empty() []byte { return []byte{0x40} }

// ifThen appends an if without parameters and results around what then appends.
func (c *code) ifThen(then func()) {
	c.open(wasmbin.OpIf, empty())
	then()
	c.op(wasmbin.OpEnd)
}

// unless appends an if without parameters and results that does nothing if its condition holds, and otherwise what
// orElse appends. The engine lays code out in the order of the arms, so that what seldom happens belongs into the second.
func (c *code) unless(orElse func()) {
	c.open(wasmbin.OpIf, empty())
	c.op(wasmbin.OpElse)
	orElse()
	c.op(wasmbin.OpEnd)
}

// refresh makes a new value of a local, which is equal to the old one but another to the compiler. References stay.
func (c *code) refresh(local uint32, t wasmbin.ValueType) {
	twice := func(op wasmbin.Op) {
		c.index(wasmbin.OpLocalGet, local)
		c.index(wasmbin.OpLocalGet, local)
		c.op(op)
	}
	switch t {
	case wasmbin.I32:
		twice(wasmbin.OpI32Or)
	case wasmbin.I64:
		twice(wasmbin.OpI64Or)
	case wasmbin.V128:
		twice(wasmbin.OpV128Or)
	case wasmbin.F32:
		c.index(wasmbin.OpLocalGet, local)
		c.op(wasmbin.OpI32ReinterpretF32, wasmbin.OpF32ReinterpretI32)
	case wasmbin.F64:
		c.index(wasmbin.OpLocalGet, local)
		c.op(wasmbin.OpI64ReinterpretF64, wasmbin.OpF64ReinterpretI64)
	case wasmbin.FuncRef, wasmbin.ExternRef:
		return
	}
	c.index(wasmbin.OpLocalSet, local)
}
