package misbehaving

// Opcodes, by the names of the WebAssembly text format.
const (
	opUnreachable = 0x00
	opLoop        = 0x03
	opEnd         = 0x0b
	opBr          = 0x0c
	opBrIf        = 0x0d
	opCall        = 0x10
	opDrop        = 0x1a
	opLocalGet    = 0x20
	opLocalSet    = 0x21
	opGlobalGet   = 0x23
	opGlobalSet   = 0x24
	opI32Load     = 0x28
	opI32Load8U   = 0x2d
	opMemoryGrow  = 0x40
	opI32Const    = 0x41
	opI32Eqz      = 0x45
	opI32Eq       = 0x46
	opI32Add      = 0x6a
	opI32DivU     = 0x6e
	opI32And      = 0x71
	opRefNull     = 0xd0
	opPrefix      = 0xfc // of the instructions added after 1.0
	opTableGrow   = 0x0f // after the prefix
)

// code is a sequence of encoded instructions.
type code []byte

// Instructions without immediates.
var (
	unreachable = code{opUnreachable}
	drop        = code{opDrop}
	i32Eqz      = code{opI32Eqz}
	i32Eq       = code{opI32Eq}
	i32Add      = code{opI32Add}
	i32DivU     = code{opI32DivU}
	i32And      = code{opI32And}
	memoryGrow  = code{opMemoryGrow, 0}          // of memory 0
	tableGrow   = code{opPrefix, opTableGrow, 0} // of table 0
	refNull     = code{opRefNull, typeFuncRef}   // what a grown table is filled with
	i32Load     = code{opI32Load, 2, 0}          // aligned to 4, no offset
	i32Load8U   = code{opI32Load8U, 0, 0}        // no offset
)

// seq joins instructions.
func seq(parts ...code) code {
	var out code
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// i32Const pushes a constant, in signed LEB128.
func i32Const(v int32) code {
	out := code{opI32Const}
	for {
		b := byte(v & 0x7f)
		v >>= 7
		if (v == 0 && b&0x40 == 0) || (v == -1 && b&0x40 != 0) {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}

// call calls a function of this module or an imported one.
func call(f fn) code { return seq(code{opCall}, uleb(uint32(f))) }

// localGet pushes a parameter or a local.
func localGet(i int) code { return seq(code{opLocalGet}, uleb(i)) }

// localSet pops into a parameter or a local.
func localSet(i int) code { return seq(code{opLocalSet}, uleb(i)) }

// globalGet pushes a global.
func globalGet(i int) code { return seq(code{opGlobalGet}, uleb(i)) }

// globalSet pops into a global.
func globalSet(i int) code { return seq(code{opGlobalSet}, uleb(i)) }

// loop is a block whose label 0, inside it, is its start.
func loop(body ...code) code { return seq(code{opLoop, typeEmpty}, seq(body...), code{opEnd}) }

// again jumps to the start of the innermost loop, as the last instruction in its body.
func again() code { return seq(code{opBr}, uleb(0)) }

// brIf jumps if the popped i32 isn't 0.
func brIf(label int) code { return seq(code{opBrIf}, uleb(label)) }
