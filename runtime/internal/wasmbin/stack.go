package wasmbin

// stackEffect returns by how much an instruction without labels and calls changes the height of the operand stack.
func (op Op) stackEffect() int64 {
	switch {
	case op>>8 == 0xfd:
		return op.simdEffect()
	case op>>8 == 0xfc:
		return op.miscEffect()
	case op >= 0x28 && op <= 0x35, op == 0x22, op == opTableGet, op == OpMemoryGrow, op == 0x45, op == 0x50, op == 0xd1,
		op >= 0x67 && op <= 0x69, op >= 0x79 && op <= 0x7b, op >= 0x8b && op <= 0x91, op >= 0x99 && op <= 0x9f,
		op >= 0xa7, op == OpNop:
		if op == OpRefNull || op == OpRefFunc {
			return 1
		}
		return 0 // loads, local.tee and what takes one operand
	case op == OpLocalGet, op == OpGlobalGet, op == OpMemorySize, op >= OpI32Const && op <= opF64Const:
		return 1
	case op >= 0x36 && op <= 0x3e, op == OpTableSet, op == OpSelect, op == 0x1c:
		return -2
	default:
		return -1 // drop, sets, and what takes two operands
	}
}

func (op Op) miscEffect() int64 {
	switch op {
	case OpMemoryInit, OpMemoryCopy, OpMemoryFill, OpTableInit, OpTableCopy, OpTableFill:
		return -3
	case OpTableGrow:
		return -1
	case 0xfc10: // table.size
		return 1
	default:
		return 0
	}
}

func (op Op) simdEffect() int64 {
	switch sub := op & 0xff; {
	case sub == 12:
		return 1 // v128.const
	case sub == 11, sub >= 88 && sub <= 91, sub == 82:
		return -2 // stores and bitselect
	case sub <= 10, sub >= 15 && sub <= 20, sub == 92, sub == 93, sub == 77, sub == 83, sub == 94, sub == 95,
		sub >= 96 && sub <= 100, sub >= 103 && sub <= 106, sub == 116, sub == 117, sub == 122,
		sub >= 124 && sub <= 129, sub == 131, sub == 132, sub >= 135 && sub <= 138, sub == 148,
		sub == 160, sub == 161, sub == 163, sub == 164, sub >= 167 && sub <= 170,
		sub == 192, sub == 193, sub == 195, sub == 196, sub >= 199 && sub <= 202,
		sub == 224, sub == 225, sub == 227, sub == 236, sub == 237, sub == 239, sub >= 248:
		return 0 // loads, splats, and what takes one operand
	case sub == 21, sub == 22, sub == 24, sub == 25, sub == 27, sub == 29, sub == 31, sub == 33:
		return 0 // extract_lane
	default:
		return -1
	}
}
