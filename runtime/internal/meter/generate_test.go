package meter

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/longshore/longshore/runtime/internal/wasmbin"
)

// generator makes modules that are valid, end, and do a little of everything. Each function and each round of a loop
// takes one from global 0, which is exported as "budget", and traps where nothing is left of it.
type generator struct {
	r *rand.Rand
	m *wasmbin.Module

	// Of the function at hand.
	c      code
	locals []wasmbin.ValueType
	labels [][]wasmbin.ValueType // what a branch to each open block carries
	size   int                   // statements and expressions that may still be made
}

// Dimensions of generated modules.
const (
	genFunctions   = 6
	genSize        = 150 // of a function
	genNesting     = 8
	genMemoryPages = 20 // more than pieceBytes
	genTable       = 8
	genGlobals     = 5
)

func numbers() []wasmbin.ValueType {
	return []wasmbin.ValueType{wasmbin.I32, wasmbin.I64, wasmbin.F32, wasmbin.F64}
}

// generate makes a module from a seed.
func generate(seed uint64) *wasmbin.Module {
	count := uint32(1)
	g := &generator{r: rand.New(rand.NewPCG(seed, 0)), m: &wasmbin.Module{
		Memories: []wasmbin.Limits{{Min: genMemoryPages, Max: 2 * genMemoryPages, HasMax: true}},
		Tables:   []wasmbin.Table{{Type: wasmbin.FuncRef, Limits: wasmbin.Limits{Min: genTable, Max: 2 * genTable, HasMax: true}}},
		Exports: []wasmbin.Export{
			{Name: "memory", Kind: wasmbin.KindMemory}, {Name: "budget", Kind: wasmbin.KindGlobal},
		},
		Data:      []wasmbin.Data{{Mode: wasmbin.Passive, Bytes: make([]byte, pieceBytes+100)}},
		DataCount: &count,
	}}
	for i := range g.m.Data[0].Bytes {
		g.m.Data[0].Bytes[i] = byte(i * 7)
	}
	g.global(wasmbin.I32)
	for range genGlobals {
		g.global(g.number())
	}
	var functions []uint32
	for i := range genFunctions {
		t := wasmbin.FuncType{Params: g.values(9), Results: g.values(3)}
		g.m.Types = append(g.m.Types, t)
		g.m.Functions = append(g.m.Functions, uint32(i))
		g.m.Exports = append(g.m.Exports, wasmbin.Export{Name: fmt.Sprintf("f%d", i), Index: uint32(i)})
		functions = append(functions, uint32(i))
	}
	g.m.Elements = []wasmbin.Element{{Type: wasmbin.FuncRef, Offset: wasmbin.ConstI32(1), Funcs: functions}}
	for i := range genFunctions {
		g.m.Code = append(g.m.Code, g.function(&g.m.Types[i]))
	}
	return g.m
}

func (g *generator) number() wasmbin.ValueType { return numbers()[g.r.IntN(4)] }

// values gives up to most-1 types.
func (g *generator) values(most int) []wasmbin.ValueType {
	ts := make([]wasmbin.ValueType, g.r.IntN(most))
	for i := range ts {
		ts[i] = g.number()
	}
	return ts
}

func (g *generator) global(t wasmbin.ValueType) {
	var c code
	constant(&c, t, 7)
	c.op(wasmbin.OpEnd)
	g.m.Globals = append(g.m.Globals, wasmbin.Global{Type: wasmbin.GlobalType{Type: t, Mutable: true}, Init: wasmbin.ConstExpr(c)})
}

func constant(c *code, t wasmbin.ValueType, v int64) {
	switch t {
	case wasmbin.I32:
		c.i32(int32(v))
	case wasmbin.I64:
		c.i64(v)
	case wasmbin.F32:
		c.raw(binary.LittleEndian.AppendUint32([]byte{0x43}, math.Float32bits(float32(v))))
	default:
		c.raw(binary.LittleEndian.AppendUint64([]byte{0x44}, math.Float64bits(float64(v))))
	}
}

func (g *generator) function(t *wasmbin.FuncType) wasmbin.Body {
	b := wasmbin.Body{}
	g.locals = append([]wasmbin.ValueType(nil), t.Params...)
	for range g.r.IntN(6) {
		l := wasmbin.LocalGroup{Count: uint32(g.r.IntN(4)), Type: g.number()}
		b.Locals = append(b.Locals, l)
		for range l.Count {
			g.locals = append(g.locals, l.Type)
		}
	}
	g.c, g.size, g.labels = nil, genSize, [][]wasmbin.ValueType{t.Results}
	g.tick()
	g.block(t.Results)
	g.c.op(wasmbin.OpEnd)
	b.Expr = g.c
	return b
}

// tick takes one from the budget.
func (g *generator) tick() {
	g.c.index(wasmbin.OpGlobalGet, 0)
	g.c.i32(1)
	g.c.op(wasmbin.OpI32Sub)
	g.c.index(wasmbin.OpGlobalSet, 0)
	g.c.index(wasmbin.OpGlobalGet, 0)
	g.c.op(0x45)
	g.c.ifThen(func() { g.c.op(wasmbin.OpUnreachable) })
}

// block makes statements and then values of the given types.
func (g *generator) block(results []wasmbin.ValueType) {
	for range 1 + g.r.IntN(5) {
		g.statement()
	}
	g.operands(results)
}

func (g *generator) operands(ts []wasmbin.ValueType) {
	for _, t := range ts {
		g.expr(t)
	}
}

// nested makes a block, loop or if with parameters and results.
func (g *generator) nested(op wasmbin.Op, params, results []wasmbin.ValueType) {
	carried := results
	if op == wasmbin.OpLoop {
		carried = params
	}
	typ := wasmbin.AppendS64(nil, int64(len(g.m.Types)))
	if len(params) == 0 && len(results) <= 1 && g.r.IntN(2) == 0 {
		typ = (&blockTypes{}).results(results)
	} else {
		g.m.Types = append(g.m.Types, wasmbin.FuncType{Params: params, Results: results})
	}
	g.operands(params)
	if op == wasmbin.OpIf {
		g.expr(wasmbin.I32)
	}
	g.c.open(op, typ)
	g.labels = append(g.labels, carried)
	g.arm(params, results, op == wasmbin.OpLoop)
	if op == wasmbin.OpIf && (len(params)+len(results) > 0 || g.r.IntN(2) == 0) {
		g.c.op(wasmbin.OpElse)
		g.arm(params, results, false)
	}
	g.labels = g.labels[:len(g.labels)-1]
	g.c.op(wasmbin.OpEnd)
}

// arm makes the inside of a block, which finds its parameters on the stack.
func (g *generator) arm(params, results []wasmbin.ValueType, loop bool) {
	for range params {
		g.c.op(wasmbin.OpDrop)
	}
	if loop {
		g.tick()
	}
	g.block(results)
	if loop && g.r.IntN(4) > 0 {
		// Go round again, sometimes for the values that the loop leaves.
		for range results {
			g.c.op(wasmbin.OpDrop)
		}
		g.branchTo(0, wasmbin.OpBrIf)
		for range g.labels[len(g.labels)-1] {
			g.c.op(wasmbin.OpDrop)
		}
		g.operands(results)
	}
}

// branchTo makes a branch to a label, with a condition for br_if.
func (g *generator) branchTo(label int, op wasmbin.Op) {
	g.operands(g.labels[len(g.labels)-1-label])
	if op == wasmbin.OpBrIf {
		g.expr(wasmbin.I32)
	}
	g.c.index(op, uint32(label))
}

// local chooses a local of a type.
func (g *generator) local(t wasmbin.ValueType) (uint32, bool) {
	for range 2 * len(g.locals) {
		if i := g.r.IntN(len(g.locals)); g.locals[i] == t {
			return uint32(i), true
		}
	}
	return 0, false
}
