package wasmbin

// AppendU32 appends v as unsigned LEB128 in its shortest form.
func AppendU32(b []byte, v uint32) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// AppendS64 appends v as signed LEB128 in its shortest form, which is that of the 32-bit types for values that fit.
func AppendS64(b []byte, v int64) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// AppendName appends a name or another vector of bytes with its length.
func AppendName[T string | []byte](b []byte, s T) []byte {
	return append(AppendU32(b, uint32(len(s))), s...)
}

// AppendOp appends an opcode without immediates.
func AppendOp(b []byte, op Op) []byte {
	if op < 0x100 {
		return append(b, byte(op))
	}
	return AppendU32(append(b, byte(op>>8)), uint32(op&0xff))
}

// AppendIndex appends an opcode and one index.
func AppendIndex(b []byte, op Op, index uint32) []byte {
	return AppendU32(AppendOp(b, op), index)
}
