package meter

import (
	"math"

	"github.com/longshore/longshore/runtime/internal/wasmbin"
)

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

// ifThen appends an if without parameters and results around what then appends.
func (c *code) ifThen(then func()) {
	c.op(wasmbin.OpIf)
	c.raw([]byte{blockEmpty})
	then()
	c.op(wasmbin.OpEnd)
}

// blockEmpty is the type of a block without parameters and results.
const blockEmpty = 0x40

// added holds the indices, in the rewritten module, of what Instrument adds.
type added struct {
	fuel, depth, memoryFailed uint32 // globals
	yield                     uint32 // the import: (i64) -> i64
	refill                    uint32 // () -> (): fuel = yield(fuel)
	overflow                  uint32 // () -> (): yield(math.MinInt64), unreachable
	grow                      uint32 // (i32) -> i32: memory.grow, paid for and noted
}

// charge takes n fuel.
func (a *added) charge(c *code, n int64) {
	c.index(wasmbin.OpGlobalGet, a.fuel)
	c.i64(n)
	c.op(wasmbin.OpI64Sub)
	c.index(wasmbin.OpGlobalSet, a.fuel)
}

// check yields if fuel is negative.
func (a *added) check(c *code) {
	c.index(wasmbin.OpGlobalGet, a.fuel)
	c.i64(0)
	c.op(wasmbin.OpI64LtS)
	c.ifThen(func() { c.index(wasmbin.OpCall, a.refill) })
}

// enter takes one nested call, or ends the guest.
func (a *added) enter(c *code) {
	c.index(wasmbin.OpGlobalGet, a.depth)
	c.i32(1)
	c.op(wasmbin.OpI32Sub)
	c.index(wasmbin.OpGlobalSet, a.depth)
	c.index(wasmbin.OpGlobalGet, a.depth)
	c.i32(0)
	c.op(wasmbin.OpI32LtS)
	c.ifThen(func() { c.index(wasmbin.OpCall, a.overflow) })
}

// leave gives one nested call back.
func (a *added) leave(c *code) {
	c.index(wasmbin.OpGlobalGet, a.depth)
	c.i32(1)
	c.op(wasmbin.OpI32Add)
	c.index(wasmbin.OpGlobalSet, a.depth)
}

// chargeLength takes the i32 on the stack, shifted right, in fuel, and puts it back; local n is scratch.
func (a *added) chargeLength(c *code, n uint32, shift int64) {
	c.index(wasmbin.OpLocalSet, n)
	c.index(wasmbin.OpGlobalGet, a.fuel)
	c.index(wasmbin.OpLocalGet, n)
	c.op(wasmbin.OpI64ExtendI32U)
	if shift > 0 {
		c.i64(shift)
		c.op(wasmbin.OpI64ShrU)
	}
	c.op(wasmbin.OpI64Sub)
	c.index(wasmbin.OpGlobalSet, a.fuel)
	a.check(c)
	c.index(wasmbin.OpLocalGet, n)
}

// chargeGrow is chargeLength for table.grow: a length over limit is refused anyway and costs no more than limit.
func (a *added) chargeGrow(c *code, n uint32, limit int64) {
	c.index(wasmbin.OpLocalSet, n)
	c.index(wasmbin.OpGlobalGet, a.fuel)
	c.index(wasmbin.OpLocalGet, n)
	c.i32(int32(limit))
	c.index(wasmbin.OpLocalGet, n)
	c.i32(int32(limit))
	c.op(wasmbin.OpI32LtU, wasmbin.OpSelect, wasmbin.OpI64ExtendI32U, wasmbin.OpI64Sub)
	c.index(wasmbin.OpGlobalSet, a.fuel)
	a.check(c)
	c.index(wasmbin.OpLocalGet, n)
}

// refillBody is the code of refill.
func (a *added) refillBody() wasmbin.Body {
	var c code
	c.index(wasmbin.OpGlobalGet, a.fuel)
	c.index(wasmbin.OpCall, a.yield)
	c.index(wasmbin.OpGlobalSet, a.fuel)
	c.op(wasmbin.OpEnd)
	return wasmbin.Body{Expr: c}
}

// overflowBody is the code of overflow.
func (a *added) overflowBody() wasmbin.Body {
	var c code
	c.i64(math.MinInt64)
	c.index(wasmbin.OpCall, a.yield)
	c.op(wasmbin.OpDrop, wasmbin.OpUnreachable, wasmbin.OpEnd)
	return wasmbin.Body{Expr: c}
}

// growBody is the code of grow for a memory of at most maxPages. Who asks for more than that at once gets -1, but hasn't
// run out of memory.
func (a *added) growBody(maxPages int64) wasmbin.Body {
	const pages, result = 0, 1
	var c code
	c.op(wasmbin.OpMemorySize)
	c.raw([]byte{0})
	c.op(wasmbin.OpI64ExtendI32U)
	c.index(wasmbin.OpLocalGet, pages)
	c.op(wasmbin.OpI64ExtendI32U, wasmbin.OpI64Add)
	c.i64(maxPages)
	c.op(wasmbin.OpI64LeU)
	c.ifThen(func() {
		c.index(wasmbin.OpGlobalGet, a.fuel)
		c.index(wasmbin.OpLocalGet, pages)
		c.op(wasmbin.OpI64ExtendI32U)
		c.i64(pageBytes >> bytesShift)
		c.op(wasmbin.OpI64Mul, wasmbin.OpI64Sub)
		c.index(wasmbin.OpGlobalSet, a.fuel)
		a.check(&c)
	})
	c.index(wasmbin.OpLocalGet, pages)
	c.op(wasmbin.OpMemoryGrow)
	c.raw([]byte{0})
	c.index(wasmbin.OpLocalTee, result)
	c.i32(-1)
	c.op(wasmbin.OpI32Eq)
	c.index(wasmbin.OpLocalGet, pages)
	c.i32(int32(min(maxPages, 1<<16)))
	c.op(wasmbin.OpI32LeU, wasmbin.OpI32And)
	c.ifThen(func() {
		c.i32(1)
		c.index(wasmbin.OpGlobalSet, a.memoryFailed)
	})
	c.index(wasmbin.OpLocalGet, result)
	c.op(wasmbin.OpEnd)
	return wasmbin.Body{Locals: []wasmbin.LocalGroup{{Count: 1, Type: wasmbin.I32}}, Expr: c}
}
