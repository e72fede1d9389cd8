package meter

import "github.com/longshore/longshore/runtime/internal/wasmbin"

// statement makes code that leaves the stack as it was.
func (g *generator) statement() {
	if g.size--; g.size < 0 {
		return
	}
	deep := len(g.labels) > genNesting
	switch k := g.r.IntN(22); {
	case k < 5:
		t := g.number()
		if l, ok := g.local(t); ok {
			g.expr(t)
			g.c.index(wasmbin.OpLocalSet, l)
		}
	case k < 7:
		i := 1 + g.r.IntN(genGlobals)
		g.expr(g.m.Globals[i].Type.Type)
		g.c.index(wasmbin.OpGlobalSet, uint32(i))
	case k < 9:
		g.store()
	case k < 13 && !deep:
		ops := []wasmbin.Op{wasmbin.OpLoop, wasmbin.OpLoop, wasmbin.OpBlock, wasmbin.OpIf}
		results := g.values(3)
		params := g.values(3)
		if g.r.IntN(3) > 0 {
			params = nil
		}
		g.nested(ops[k-9], params, results)
		for range results {
			g.c.op(wasmbin.OpDrop)
		}
	case k < 15:
		label := g.r.IntN(len(g.labels))
		g.branchTo(label, wasmbin.OpBrIf)
		for range g.labels[len(g.labels)-1-label] {
			g.c.op(wasmbin.OpDrop)
		}
	case k < 17:
		g.bulk()
	case k == 17:
		g.leave()
	default:
		f := g.r.IntN(genFunctions)
		g.call(f)
		for range g.m.Types[f].Results {
			g.c.op(wasmbin.OpDrop)
		}
	}
}

// call calls a function directly or through the table.
func (g *generator) call(f int) {
	g.operands(g.m.Types[f].Params)
	if g.r.IntN(2) == 0 {
		g.c.index(wasmbin.OpCall, uint32(f))
		return
	}
	g.c.i32(int32(f + 1 + g.r.IntN(30)/29)) // now and then the wrong one
	g.c.index(wasmbin.OpCallIndirect, uint32(f))
	g.c.raw([]byte{0})
}

// leave makes code that doesn't go on, inside of a block that is left.
func (g *generator) leave() {
	g.expr(wasmbin.I32)
	g.c.open(wasmbin.OpIf, empty())
	g.labels = append(g.labels, nil)
	switch g.r.IntN(4) {
	case 0:
		g.branchTo(g.r.IntN(len(g.labels)), wasmbin.OpBr)
	case 1:
		g.operands(g.labels[0])
		g.c.op(wasmbin.OpReturn)
	case 2:
		g.table()
	case 3:
		g.tailCall()
	}
	g.labels = g.labels[:len(g.labels)-1]
	g.c.op(wasmbin.OpEnd)
}

// table makes a br_table to labels that carry nothing.
func (g *generator) table() {
	var labels []byte
	for i, l := range g.labels {
		if len(l) == 0 {
			labels = append(labels, byte(len(g.labels)-1-i))
		}
	}
	g.expr(wasmbin.I32)
	g.c.op(wasmbin.OpBrTable)
	g.c.raw(append([]byte{byte(len(labels) - 1)}, labels...))
}

// tailCall makes a tail call to a function of the right results, or none if there isn't one.
func (g *generator) tailCall() {
	f := g.r.IntN(genFunctions)
	if string(key(g.m.Types[f].Results)) != string(key(g.labels[0])) {
		return
	}
	g.operands(g.m.Types[f].Params)
	if g.r.IntN(2) == 0 {
		g.c.index(wasmbin.OpReturnCall, uint32(f))
		return
	}
	g.c.i32(int32(f + 1))
	g.c.index(wasmbin.OpReturnCallIndirect, uint32(f))
	g.c.raw([]byte{0})
}

func key(ts []wasmbin.ValueType) []byte {
	var b []byte
	for _, t := range ts {
		b = append(b, byte(t))
	}
	return b
}

func (g *generator) store() {
	ops := map[wasmbin.ValueType]wasmbin.Op{wasmbin.I32: 0x36, wasmbin.I64: 0x37, wasmbin.F32: 0x38, wasmbin.F64: 0x39}
	t := g.number()
	g.address()
	g.expr(t)
	g.c.op(ops[t])
	g.c.raw([]byte{0, byte(g.r.IntN(100))})
}

// address makes an i32 that is inside of memory most of the time.
func (g *generator) address() {
	if g.r.IntN(30) == 0 {
		g.c.i32(int32(g.r.Uint32()))
		return
	}
	g.expr(wasmbin.I32)
	g.c.i32(0x7fff)
	g.c.op(wasmbin.OpI32And)
}

// bulk makes a bulk instruction, on a few bytes or on many.
func (g *generator) bulk() {
	length := func() {
		lengths := []int32{0, 1, 100, 5_000, pieceBytes, pieceBytes + 1, pieceBytes + 70_000, 1 << 24}
		if g.r.IntN(10) > 0 {
			lengths = lengths[:len(lengths)-1]
		}
		g.c.i32(lengths[g.r.IntN(len(lengths))])
	}
	switch g.r.IntN(6) {
	case 0:
		g.address()
		g.expr(wasmbin.I32)
		length()
		g.c.raw([]byte{0xfc, 11, 0})
	case 1:
		g.address()
		g.address()
		length()
		g.c.raw([]byte{0xfc, 10, 0, 0})
	case 2:
		g.address()
		g.c.i32(int32(g.r.IntN(40)))
		length()
		g.c.raw([]byte{0xfc, 8, 0, 0})
	case 3:
		g.c.i32(int32(g.r.IntN(genTable)))
		g.c.i32(int32(g.r.IntN(genTable)))
		g.c.i32(int32(g.r.IntN(genTable)))
		g.c.raw([]byte{0xfc, 14, 0, 0})
	case 4:
		g.c.raw([]byte{0xd0, 0x70})
		g.c.i32(int32(g.r.IntN(3)))
		g.c.raw([]byte{0xfc, 15, 0, 0x1a})
	case 5:
		g.c.i32(int32(g.r.IntN(3)))
		g.c.raw([]byte{0x40, 0, 0x1a})
	}
}

// expr makes a value of a type.
func (g *generator) expr(t wasmbin.ValueType) {
	g.size--
	if g.size < 0 {
		g.leaf(t)
		return
	}
	switch k := g.r.IntN(14); {
	case k < 5:
		g.leaf(t)
	case k < 9:
		g.expr(t)
		g.expr(t)
		ops := map[wasmbin.ValueType][]wasmbin.Op{
			wasmbin.I32: {0x6a, 0x6b, 0x6c, 0x6a, 0x6b, 0x6c, 0x70, 0x71, 0x72, 0x73, 0x74, 0x75, 0x77},
			wasmbin.I64: {0x7c, 0x7d, 0x7e, 0x7c, 0x7d, 0x7f, 0x83, 0x84, 0x85, 0x86, 0x87, 0x89},
			wasmbin.F32: {0x92, 0x93, 0x94, 0x96}, wasmbin.F64: {0xa0, 0xa1, 0xa2, 0xa4},
		}[t]
		g.c.op(ops[g.r.IntN(len(ops))])
	case k == 9:
		g.address()
		g.c.op(map[wasmbin.ValueType]wasmbin.Op{wasmbin.I32: 0x2d, wasmbin.I64: 0x35, wasmbin.F32: 0x2a, wasmbin.F64: 0x2b}[t])
		g.c.raw([]byte{0, byte(g.r.IntN(100))})
	case k == 10:
		from := g.number()
		g.expr(from)
		g.convert(from, t)
	case k == 11:
		g.expr(t)
		g.expr(t)
		g.expr(wasmbin.I32)
		g.c.op(wasmbin.OpSelect)
	case len(g.labels) > genNesting:
		g.leaf(t)
	default:
		ops := []wasmbin.Op{wasmbin.OpLoop, wasmbin.OpBlock, wasmbin.OpIf}
		g.nested(ops[g.r.IntN(3)], nil, []wasmbin.ValueType{t})
	}
}

// leaf makes a value in one instruction.
func (g *generator) leaf(t wasmbin.ValueType) {
	if g.r.IntN(3) > 0 {
		if l, ok := g.local(t); ok {
			g.c.index(wasmbin.OpLocalGet, l)
			return
		}
	}
	if i := 1 + g.r.IntN(genGlobals); g.m.Globals[i].Type.Type == t {
		g.c.index(wasmbin.OpGlobalGet, uint32(i))
		return
	}
	constant(&g.c, t, int64(g.r.IntN(200)-20))
}

// convert appends an instruction, or two, that make a number of another type.
func (g *generator) convert(from, to wasmbin.ValueType) {
	key := [2]wasmbin.ValueType{from, to}
	g.c.op(map[[2]wasmbin.ValueType][]wasmbin.Op{
		{wasmbin.I32, wasmbin.I32}: {0x68}, {wasmbin.I64, wasmbin.I64}: {0x7b}, {wasmbin.F32, wasmbin.F32}: {0x8b}, {wasmbin.F64, wasmbin.F64}: {0x9c},
		{wasmbin.I32, wasmbin.I64}: {0xac}, {wasmbin.I32, wasmbin.F32}: {0xb2}, {wasmbin.I32, wasmbin.F64}: {0xb7},
		{wasmbin.I64, wasmbin.I32}: {0xa7}, {wasmbin.I64, wasmbin.F32}: {0xb4}, {wasmbin.I64, wasmbin.F64}: {0xb9},
		{wasmbin.F32, wasmbin.I32}: {0xa8}, {wasmbin.F32, wasmbin.I64}: {0xfc04}, {wasmbin.F32, wasmbin.F64}: {0xbb},
		{wasmbin.F64, wasmbin.I32}: {0xfc02}, {wasmbin.F64, wasmbin.I64}: {0xb0}, {wasmbin.F64, wasmbin.F32}: {0xb6},
	}[key]...)
}
