package wasmbin

import "bytes"

// ConstExpr is the encoding of a constant expression, with its final end.
type ConstExpr []byte

// constExpr reads a constant expression: only the instructions that such may have, indices left to validate.
func (d *decoder) constExpr(c *cursor) ConstExpr {
	if c.err != nil {
		return nil
	}
	start := c.pos
	d.instr.Reset(c.buf[start:], c.base+start, c.section)
	var i Instr
	d.expr = d.expr[:0]
	for n := int64(1); d.instr.Next(&i); n++ {
		if !c.check(NameConstInstrs, n, d.caps.ConstInstrs) {
			return nil
		}
		d.expr = append(d.expr, i.Raw...)
		switch i.Op {
		case OpEnd:
			c.pos = start + d.instr.c.pos
			if len(d.expr) < c.pos-start {
				return ConstExpr(bytes.Clone(d.expr)) // it was padded
			}
			return ConstExpr(c.buf[start:c.pos:c.pos])
		case OpI32Const, OpI64Const, opF32Const, opF64Const, opV128Const, OpGlobalGet, OpRefNull, OpRefFunc,
			OpI32Add, OpI32Sub, OpI32Mul, OpI64Add, OpI64Sub, OpI64Mul:
		default:
			c.fail("instruction %#02x in a constant expression", uint16(i.Op))
			return nil
		}
	}
	c.stop(d.instr.Err())
	return nil
}

const (
	opF32Const  Op = 0x43
	opF64Const  Op = 0x44
	opV128Const Op = 0xfd0c
)

// I32 evaluates an expression of type i32. It reports false for one that isn't made of i32 constants and arithmetic
// alone, because its value is known only at instantiation.
func (e ConstExpr) I32() (uint32, bool) {
	var stack []uint32
	r := NewInstrReader()
	r.Reset(e, 0, "constant expression")
	var i Instr
	for r.Next(&i) {
		switch i.Op {
		case OpI32Const:
			stack = append(stack, uint32(i.value))
			continue
		case OpEnd:
			if len(stack) != 1 || r.More() {
				return 0, false
			}
			return stack[0], true
		default:
		}
		n := len(stack)
		if n < 2 {
			return 0, false
		}
		x, y := stack[n-2], stack[n-1]
		switch i.Op {
		case OpI32Add:
			x += y
		case OpI32Sub:
			x -= y
		case OpI32Mul:
			x *= y
		default:
			return 0, false
		}
		stack = append(stack[:n-2], x)
	}
	return 0, false
}

// ConstI32 returns the expression i32.const v.
func ConstI32(v int32) ConstExpr {
	return append(AppendS64([]byte{byte(OpI32Const)}, int64(v)), byte(OpEnd))
}

// ConstI64 returns the expression i64.const v.
func ConstI64(v int64) ConstExpr {
	return append(AppendS64([]byte{byte(OpI64Const)}, v), byte(OpEnd))
}

// HasFunc reports whether the expression may refer to a function. It never says no to one that does.
func (e ConstExpr) HasFunc() bool { return bytes.IndexByte(e, byte(OpRefFunc)) >= 0 }
