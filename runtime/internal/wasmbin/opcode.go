package wasmbin

// Op is an instruction's opcode: the byte itself, or for a prefixed one, the prefix in the high byte and the number
// that follows it in the low byte.
type Op uint16

// Opcodes that the packages of the runtime tell apart; all others differ only in their immediates.
const (
	OpUnreachable        Op = 0x00
	OpNop                Op = 0x01
	OpBlock              Op = 0x02
	OpLoop               Op = 0x03
	OpIf                 Op = 0x04
	OpElse               Op = 0x05
	OpEnd                Op = 0x0b
	OpBr                 Op = 0x0c
	OpBrIf               Op = 0x0d
	OpBrTable            Op = 0x0e
	OpReturn             Op = 0x0f
	OpCall               Op = 0x10
	OpCallIndirect       Op = 0x11
	OpReturnCall         Op = 0x12
	OpReturnCallIndirect Op = 0x13
	OpDrop               Op = 0x1a
	OpSelect             Op = 0x1b
	OpLocalGet           Op = 0x20
	OpLocalSet           Op = 0x21
	OpLocalTee           Op = 0x22
	OpGlobalGet          Op = 0x23
	OpGlobalSet          Op = 0x24
	OpTableSet           Op = 0x26
	OpMemorySize         Op = 0x3f
	OpMemoryGrow         Op = 0x40
	OpI32Const           Op = 0x41
	OpI64Const           Op = 0x42
	OpI32Eq              Op = 0x46
	OpI32LtS             Op = 0x48
	OpI32GeS             Op = 0x4e
	OpI32LtU             Op = 0x49
	OpI32LeU             Op = 0x4d
	OpI64Eqz             Op = 0x50
	OpI64LtS             Op = 0x53
	OpI64GtU             Op = 0x56
	OpI64LeU             Op = 0x58
	OpI64GeS             Op = 0x59
	OpI32Add             Op = 0x6a
	OpI32Sub             Op = 0x6b
	OpI32Mul             Op = 0x6c
	OpI32GtU             Op = 0x4b
	OpI32And             Op = 0x71
	OpI32Or              Op = 0x72
	OpI64Add             Op = 0x7c
	OpI64Sub             Op = 0x7d
	OpI64Mul             Op = 0x7e
	OpI64Or              Op = 0x84
	OpI64Shl             Op = 0x86
	OpI64ShrS            Op = 0x87
	OpI64ShrU            Op = 0x88
	OpI64And             Op = 0x83
	OpI64ExtendI32U      Op = 0xad
	OpI32ReinterpretF32  Op = 0xbc
	OpI64ReinterpretF64  Op = 0xbd
	OpF32ReinterpretI32  Op = 0xbe
	OpF64ReinterpretI64  Op = 0xbf
	OpRefNull            Op = 0xd0
	OpRefFunc            Op = 0xd2
	OpMemoryInit         Op = 0xfc08
	OpDataDrop           Op = 0xfc09
	OpMemoryCopy         Op = 0xfc0a
	OpMemoryFill         Op = 0xfc0b
	OpTableInit          Op = 0xfc0c
	OpElemDrop           Op = 0xfc0d
	OpTableCopy          Op = 0xfc0e
	OpTableGrow          Op = 0xfc0f
	OpTableFill          Op = 0xfc11
	OpV128Or             Op = 0xfd50
)

// PaysByLength reports whether the work of an instruction is bounded by an operand only. Metering puts a branch before it.
func (op Op) PaysByLength() bool {
	switch op {
	case OpMemoryInit, OpMemoryCopy, OpMemoryFill, OpTableInit, OpTableCopy, OpTableGrow, OpTableFill:
		return true
	default:
		return false
	}
}

// traps reports whether the engine's code for an instruction checks operands and leaves for a trap. Memory accesses,
// for which it has a cheaper way, don't count.
func (op Op) traps() bool {
	switch {
	case op == OpCallIndirect, op == OpReturnCallIndirect, op == opTableGet, op == OpTableSet,
		op >= opI32DivS && op <= opI32RemU, op >= opI64DivS && op <= opI64RemU,
		op >= opI32TruncF32S && op <= opI32TruncF64U, op >= opI64TruncF32S && op <= opI64TruncF64U:
		return true
	default:
		return false
	}
}

// Opcodes of traps.
const (
	opTableGet     Op = 0x25
	opI32DivS      Op = 0x6d
	opI32RemU      Op = 0x70
	opI64DivS      Op = 0x7f
	opI64RemU      Op = 0x82
	opI32TruncF32S Op = 0xa8
	opI32TruncF64U Op = 0xab
	opI64TruncF32S Op = 0xae
	opI64TruncF64U Op = 0xb1
)

// immediate says what follows an opcode.
type immediate uint8

const (
	immUndefined immediate = iota
	immNone
	immBlock
	immLabel
	immBrTable
	immFunc
	immTypeTable // call_indirect: type, table
	immRefType
	immSelect
	immLocal
	immGlobal
	immTable
	immElemTable  // table.init: element segment, table
	immTableTable // table.copy
	immElem
	immData
	immDataMem // memory.init: data segment, 0
	immMem     // 0
	immMemMem  // 0, 0
	immMemarg
	immMemargLane
	immI32
	immI64
	imm4
	imm8
	imm16
	immLane
)

// plainImmediate gives the immediate of an opcode without prefix.
func plainImmediate(op byte) immediate {
	switch {
	case op >= 0x28 && op <= 0x3e:
		return immMemarg
	case op >= 0x45 && op <= 0xc4:
		return immNone
	}
	switch op {
	case 0x00, 0x01, 0x05, 0x0b, 0x0f, 0x1a, 0x1b, 0xd1:
		return immNone
	case 0x02, 0x03, 0x04:
		return immBlock
	case 0x0c, 0x0d:
		return immLabel
	case 0x0e:
		return immBrTable
	case 0x10, 0x12, 0xd2:
		return immFunc
	case 0x11, 0x13:
		return immTypeTable
	case 0x1c:
		return immSelect
	case 0x20, 0x21, 0x22:
		return immLocal
	case 0x23, 0x24:
		return immGlobal
	case 0x25, 0x26:
		return immTable
	case 0x3f, 0x40:
		return immMem
	case 0x41:
		return immI32
	case 0x42:
		return immI64
	case 0x43:
		return imm4
	case 0x44:
		return imm8
	case 0xd0:
		return immRefType
	}
	return immUndefined
}

// miscImmediate gives the immediate of an opcode behind the prefix 0xfc.
func miscImmediate(sub uint32) immediate {
	switch {
	case sub <= 7:
		return immNone
	case sub > 17:
		return immUndefined
	}
	return [...]immediate{
		immDataMem, immData, immMemMem, immMem, immElemTable, immElem, immTableTable, immTable, immTable, immTable,
	}[sub-8]
}

// simdImmediate gives the immediate of an opcode behind the prefix 0xfd.
func simdImmediate(sub uint32) immediate {
	switch {
	case sub <= 11, sub == 92, sub == 93:
		return immMemarg
	case sub == 12, sub == 13:
		return imm16
	case sub >= 21 && sub <= 34:
		return immLane
	case sub >= 84 && sub <= 91:
		return immMemargLane
	case sub > 255:
		return immUndefined
	}
	switch sub {
	case 0x9a, 0xa2, 0xa5, 0xa6, 0xaf, 0xb0, 0xb2, 0xb3, 0xb4, 0xbb, 0xc2, 0xc5, 0xc6, 0xcf, 0xd0, 0xd2, 0xd3, 0xd4, 0xe2, 0xee:
		return immUndefined
	}
	return immNone
}

// refusedFeature names the feature that an undefined opcode belongs to, or returns "".
func refusedFeature(op byte, sub uint32) string {
	switch op {
	case 0x06, 0x07, 0x08, 0x09, 0x0a, 0x18, 0x19, 0x1f:
		return FeatureExceptions
	case 0x14, 0x15, 0xd4, 0xd5, 0xd6:
		return FeatureFuncRefs
	case 0xd3, 0xfb:
		return FeatureGC
	case 0xfe:
		return FeatureThreads
	case 0xfd:
		if sub > 255 {
			return FeatureRelaxedSIMD
		}
	}
	return ""
}
