package wasmbin

// canonical returns the encoding of i with every integer in its shortest form, in memory that the next call of Next
// reuses.
//
// The engine has shortcuts: it takes the one byte behind 0xfd for the opcode, and skips two bytes for the types of a
// select. A module whose integers are padded could thus mean one thing here and another there, and hide code from the
// meter. What Raw holds is therefore never padded.
func (r *InstrReader) canonical(i *Instr) []byte {
	b := AppendOp(r.raw[:0], i.Op)
	last := func(n int) []byte { return i.Raw[len(i.Raw)-n:] }
	switch i.imm {
	case immNone, immUndefined:
	case immBlock:
		if i.block == blockIndexed {
			b = AppendS64(b, int64(i.X))
		} else {
			b = append(b, last(1)...)
		}
	case immLabel, immFunc, immLocal, immGlobal, immTable, immElem, immData:
		b = AppendU32(b, i.X)
	case immTypeTable, immElemTable, immTableTable, immMemarg:
		b = AppendU32(AppendU32(b, i.X), i.Y)
	case immMemargLane:
		b = append(AppendU32(AppendU32(b, i.X), i.Y), last(1)...)
	case immBrTable:
		b = AppendU32(b, uint32(len(i.Targets)-1))
		for _, l := range i.Targets {
			b = AppendU32(b, l)
		}
	case immSelect:
		b = append(append(b, 1), last(1)...)
	case immDataMem:
		b = append(AppendU32(b, i.X), 0)
	case immI32, immI64:
		b = AppendS64(b, i.value)
	case immRefType, immMem, immLane:
		b = append(b, last(1)...)
	case immMemMem:
		b = append(b, last(2)...)
	case imm4:
		b = append(b, last(4)...)
	case imm8:
		b = append(b, last(8)...)
	case imm16:
		b = append(b, last(16)...)
	}
	r.raw = b
	return b
}
