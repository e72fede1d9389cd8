package meter

import "github.com/longshore/longshore/runtime/internal/wasmbin"

// pieceBytes is the most memory that a bulk instruction works on between two checks.
const pieceBytes = 1 << 18

// Locals of the helpers for bulk instructions on memory.
const (
	bulkTo    = 0
	bulkFrom  = 1 // source, or of memory.fill the value
	bulkBytes = 2 // still to do
	bulkPiece = 3
)

// bulkBody is the code of a helper: it does a bulk instruction on memory piece by piece, each paid for before. Where the
// original would trap, the original runs and traps before anything has changed.
func (a *added) bulkBody(h *helper) wasmbin.Body {
	var c code
	a.bulkBounds(&c, h)
	if h.op == wasmbin.OpMemoryCopy {
		c.index(wasmbin.OpLocalGet, bulkTo)
		c.index(wasmbin.OpLocalGet, bulkFrom)
		c.op(wasmbin.OpI32GtU)
		c.open(wasmbin.OpIf, empty())
		a.bulkBackward(&c, h)
		c.op(wasmbin.OpElse)
		a.bulkForward(&c, h)
		c.op(wasmbin.OpEnd)
	} else {
		a.bulkForward(&c, h)
	}
	c.op(wasmbin.OpEnd)
	return wasmbin.Body{Locals: []wasmbin.LocalGroup{{Count: 1, Type: wasmbin.I32}}, Expr: c}
}

// bulkBounds runs the original if it would trap.
func (a *added) bulkBounds(c *code, h *helper) {
	outside := func(start uint32, size func()) {
		c.index(wasmbin.OpLocalGet, start)
		c.op(wasmbin.OpI64ExtendI32U)
		c.index(wasmbin.OpLocalGet, bulkBytes)
		c.op(wasmbin.OpI64ExtendI32U, wasmbin.OpI64Add)
		size()
		c.op(wasmbin.OpI64GtU)
	}
	memory := func() {
		c.op(wasmbin.OpMemorySize)
		c.raw([]byte{0})
		c.op(wasmbin.OpI64ExtendI32U)
		c.i64(pageBytes)
		c.op(wasmbin.OpI64Mul)
	}
	outside(bulkTo, memory)
	switch h.op {
	case wasmbin.OpMemoryCopy:
		outside(bulkFrom, memory)
		c.op(wasmbin.OpI32Or)
	case wasmbin.OpMemoryInit: // a dropped segment makes the first piece trap
		outside(bulkFrom, func() { c.i64(int64(a.segments[h.segment])) })
		c.op(wasmbin.OpI32Or)
	default:
	}
	c.ifThen(func() {
		c.index(wasmbin.OpLocalGet, bulkTo)
		c.index(wasmbin.OpLocalGet, bulkFrom)
		c.index(wasmbin.OpLocalGet, bulkBytes)
		c.raw(h.raw)
		c.op(wasmbin.OpUnreachable)
	})
}

// bulkForward goes from low addresses to high ones.
func (a *added) bulkForward(c *code, h *helper) {
	advance := func(local uint32) {
		c.index(wasmbin.OpLocalGet, local)
		c.index(wasmbin.OpLocalGet, bulkPiece)
		c.op(wasmbin.OpI32Add)
		c.index(wasmbin.OpLocalSet, local)
	}
	a.bulkLoop(c, func() {
		c.index(wasmbin.OpLocalGet, bulkTo)
		c.index(wasmbin.OpLocalGet, bulkFrom)
		c.index(wasmbin.OpLocalGet, bulkPiece)
		c.raw(h.raw)
		advance(bulkTo)
		if h.op != wasmbin.OpMemoryFill {
			advance(bulkFrom)
		}
	})
}

// bulkBackward goes from high addresses to low ones, for a copy to above its source, which may overlap.
func (a *added) bulkBackward(c *code, h *helper) {
	last := func(start uint32) {
		c.index(wasmbin.OpLocalGet, start)
		c.index(wasmbin.OpLocalGet, bulkBytes)
		c.op(wasmbin.OpI32Add)
	}
	a.bulkLoop(c, func() {
		last(bulkTo)
		last(bulkFrom)
		c.index(wasmbin.OpLocalGet, bulkPiece)
		c.raw(h.raw)
	})
}

// bulkLoop appends a loop around piece, which finds the bytes that are left without those of the piece.
func (a *added) bulkLoop(c *code, piece func()) {
	c.open(wasmbin.OpLoop, empty())
	c.index(wasmbin.OpLocalGet, bulkBytes)
	c.i32(pieceBytes)
	c.index(wasmbin.OpLocalGet, bulkBytes)
	c.i32(pieceBytes)
	c.op(wasmbin.OpI32LtU, wasmbin.OpSelect)
	c.index(wasmbin.OpLocalSet, bulkPiece)
	a.pay(c, bulkPiece, 1, bytesShift)
	c.index(wasmbin.OpLocalGet, bulkBytes)
	c.index(wasmbin.OpLocalGet, bulkPiece)
	c.op(wasmbin.OpI32Sub)
	c.index(wasmbin.OpLocalSet, bulkBytes)
	piece()
	c.index(wasmbin.OpLocalGet, bulkBytes)
	c.index(wasmbin.OpBrIf, 0)
	c.op(wasmbin.OpEnd)
}
