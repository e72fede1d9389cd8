package wasmbin

import "fmt"

// Instr is one instruction. The index fields mean what the opcode says: of two indices, X is the first in the encoding.
type Instr struct {
	Op Op
	X  uint32 // label, function, type, local, global, table or segment; of a memory access, the alignment
	Y  uint32 // second index, a table; of a memory access, the offset

	// Raw is the whole encoding, with integers in their shortest form. It is valid until the next call of Next.
	Raw []byte

	// Targets are the labels of br_table, the default last. They are valid until the next call of Next.
	Targets []uint32

	value int64 // of an i32.const or i64.const
	block blockForm
	imm   immediate
}

// blockForm tells how the type of a block is given.
type blockForm uint8

const (
	blockEmpty   blockForm = iota // no parameters, no results
	blockValue                    // no parameters, one result
	blockIndexed                  // type X
)

// BlockTypeIndex returns the index of the type of a block, loop or if. It reports false if the type isn't given by an
// index: then there are no parameters, and at most one result.
func (i *Instr) BlockTypeIndex() (uint32, bool) { return i.X, i.block == blockIndexed }

// BlockType returns the encoding of the type of a block, loop or if. It is valid until the next call of Next.
func (i *Instr) BlockType() []byte { return i.Raw[1:] }

// InstrReader walks the instructions of a Body or ConstExpr.
type InstrReader struct {
	c       cursor
	plain   [256]immediate
	targets []uint32
	raw     []byte // of canonical
}

// NewInstrReader returns a reader that Reset must be called on.
func NewInstrReader() *InstrReader {
	r := &InstrReader{}
	for op := range r.plain {
		r.plain[op] = plainImmediate(byte(op))
	}
	return r
}

// Reset begins to read expr, whose first byte is at offset base of its module.
func (r *InstrReader) Reset(expr []byte, base int, section string) {
	r.c = cursor{buf: expr, base: base, section: section}
}

// More reports whether anything is left to read.
func (r *InstrReader) More() bool { return !r.c.atEnd() }

// Err returns the first failure.
func (r *InstrReader) Err() error { return r.c.err }

// Next reads an instruction into i and reports whether it could.
func (r *InstrReader) Next(i *Instr) bool {
	c := &r.c
	start := c.pos
	if n := r.short(i, c.buf[start:]); n > 0 {
		c.pos += n
		i.Raw = c.buf[start:c.pos:c.pos]
		return true
	}
	c.padded = false
	op := c.byte()
	i.Op, i.X, i.Y, i.imm = Op(op), 0, 0, r.plain[op]
	if i.imm == immUndefined {
		r.prefixed(op, i)
	}
	r.immediates(i)
	if c.err != nil {
		return false
	}
	i.Raw = c.buf[start:c.pos:c.pos]
	if c.padded {
		i.Raw = r.canonical(i)
	}
	return true
}

// short reads an instruction whose immediates are a byte each, as most are, and returns its length; 0 if it isn't one that it
// knows.
func (r *InstrReader) short(i *Instr, b []byte) int {
	if len(b) < 3 {
		return 0
	}
	n := 2
	i.Op, i.X, i.Y, i.imm = Op(b[0]), 0, 0, r.plain[b[0]]
	switch i.imm {
	case immNone:
		return 1
	case immLabel, immFunc, immLocal, immGlobal:
		i.X = uint32(b[1])
	case immI32, immI64:
		i.value = int64(int8(b[1]<<1) >> 1)
	case immMemarg:
		if b[1] >= 32 || b[2] >= 0x80 {
			return 0
		}
		i.X, i.Y, n = uint32(b[1]), uint32(b[2]), 3
	default:
		return 0
	}
	if b[1] >= 0x80 {
		return 0
	}
	return n
}

// prefixed reads the second part of an opcode behind a prefix.
func (r *InstrReader) prefixed(op byte, i *Instr) {
	c := &r.c
	if c.err != nil {
		return
	}
	at, sub := c.pos-1, uint32(0)
	switch op {
	case 0xfc:
		sub = c.u32()
		i.imm = miscImmediate(sub)
	case 0xfd:
		sub = c.u32()
		i.imm = simdImmediate(sub)
		if c.padded {
			c.fail("SIMD instruction %#x is not in its shortest form", sub)
		}
	}
	i.Op = Op(op)<<8 | Op(sub&0xff)
	if i.imm != immUndefined || c.err != nil {
		return
	}
	c.pos = at
	msg := fmt.Sprintf("undefined instruction %#02x", op)
	if op == 0xfc || op == 0xfd {
		msg = fmt.Sprintf("undefined instruction %#02x %#x", op, sub)
	}
	if f := refusedFeature(op, sub); f != "" {
		c.refuse(f, msg)
		return
	}
	c.fail("%s", msg)
}

func (r *InstrReader) immediates(i *Instr) {
	c := &r.c
	switch i.imm {
	case immNone, immUndefined:
	case immBlock:
		i.block, i.X = c.blockType()
	case immLabel, immFunc, immLocal, immGlobal, immTable, immElem, immData:
		i.X = c.u32()
	case immTypeTable, immElemTable, immTableTable:
		i.X, i.Y = c.u32(), c.u32()
	case immBrTable:
		r.brTable(i)
	case immRefType:
		c.refType()
	case immSelect:
		c.selectTypes()
	case immDataMem:
		i.X = c.u32()
		c.memoryIndex()
	case immMem:
		c.memoryIndex()
	case immMemMem:
		c.memoryIndex()
		c.memoryIndex()
	case immMemarg:
		i.X, i.Y = c.memarg()
	case immMemargLane:
		i.X, i.Y = c.memarg()
		c.byte()
	case immI32:
		i.value = c.signed(32)
	case immI64:
		i.value = c.signed(64)
	case imm4:
		c.bytes(4)
	case imm8:
		c.bytes(8)
	case imm16:
		c.bytes(16)
	case immLane:
		c.byte()
	}
}

func (r *InstrReader) brTable(i *Instr) {
	c := &r.c
	n := c.u32()
	if int64(n) >= int64(c.left()) {
		c.fail("br_table of %d targets can't fit into the %d bytes that are left", n, c.left())
		return
	}
	r.targets = r.targets[:0]
	for range n + 1 {
		r.targets = append(r.targets, c.u32())
	}
	i.Targets = r.targets
}

// blockType reads a block type, and its index if it is a blockIndexed one.
func (c *cursor) blockType() (blockForm, uint32) {
	start := c.pos
	v := c.signed(33)
	switch {
	case c.err != nil:
		return blockEmpty, 0
	case v >= 0:
		return blockIndexed, uint32(v)
	}
	c.pos = start
	if c.buf[start] == 0x40 {
		c.pos++
		return blockEmpty, 0
	}
	c.valueType()
	return blockValue, 0
}

func (c *cursor) selectTypes() {
	if n := c.u32(); n != 1 && c.err == nil {
		c.fail("select of %d types, want 1", n)
	}
	c.valueType()
}

// memoryIndex reads the index of a memory, which can only be 0.
func (c *cursor) memoryIndex() {
	if b := c.byte(); b != 0 && c.err == nil {
		c.pos--
		c.refuse(FeatureMultiMemory, fmt.Sprintf("memory index byte %#02x", b))
	}
}

func (c *cursor) memarg() (align, offset uint32) {
	align = c.u32()
	if align >= 0x40 && align < 0x80 {
		c.refuse(FeatureMultiMemory, "memory index in a memory argument")
		return 0, 0
	}
	if align >= 32 {
		c.fail("alignment of 2^%d", align)
	}
	return align, c.u32()
}
