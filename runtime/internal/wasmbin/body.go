package wasmbin

import (
	"fmt"

	"github.com/longshore/longshore/limits"
)

// bodyValidator checks the instructions of one function after the other.
type bodyValidator struct {
	m    *Module
	caps *Caps
	s    *spaces
	r    *InstrReader

	// Of all functions so far.
	localsByBranches int64
	branchesSquared  int64

	// Of the function at hand.
	fn       int
	locals   uint32
	open     []label
	blocks   int64
	branches int64
	bulk     int64
	carried  int64
	calls    int64
}

// label is what a branch can name: an open block or the function itself.
type label struct {
	op     Op
	arity  int64 // values that a branch carries
	result int64 // values that the end leaves
}

func newBodyValidator(m *Module, caps *Caps, s *spaces, r *InstrReader) *bodyValidator {
	return &bodyValidator{m: m, caps: caps, s: s, r: r}
}

// body checks the code of the defined function i.
func (v *bodyValidator) body(i int) error {
	b := &v.m.Code[i]
	t := &v.m.Types[v.m.Functions[i]]
	v.fn = len(v.s.funcType) - len(v.m.Functions) + i
	v.r.Reset(b.Expr, b.Offset, "code")
	c := &v.r.c
	locals := b.LocalCount() + int64(len(t.Params))
	v.check(locals, v.caps.Locals, NameLocals)
	v.locals = uint32(locals)
	v.blocks, v.branches, v.bulk, v.carried, v.calls = 0, 0, 0, 0, 0
	n := int64(len(t.Results))
	v.open = append(v.open[:0], label{op: OpBlock, arity: n, result: n})
	var in Instr
	for len(v.open) > 0 && v.r.Next(&in) {
		v.instr(&in)
	}
	if c.err == nil && !c.atEnd() {
		c.fail("%d bytes after the end of function %d", c.left(), v.fn)
	}
	v.counts(locals)
	return c.err
}

// counts checks what was counted in a function.
func (v *bodyValidator) counts(locals int64) {
	work := locals * (v.blocks + v.branches)
	v.localsByBranches += work
	v.branchesSquared += v.branches * v.branches
	v.check(v.blocks, v.caps.Blocks, NameBlocks)
	v.check(v.branches, v.caps.Branches, NameBranches)
	v.check(v.bulk, v.caps.BulkInstrs, NameBulkInstrs)
	v.check(v.carried, v.caps.CarriedValues, NameCarriedValues)
	v.check(work, v.caps.LocalsByBranches, NameLocalsByBranches)
	v.check((v.s.mutableGlobals+addedGlobals)*v.calls, v.caps.GlobalsByCalls, NameGlobalsByCalls)
	v.check(v.localsByBranches, v.caps.ModuleLocalsByBranches, NameModuleLocalsByBranches)
	v.check(v.branchesSquared, v.caps.ModuleBranchesSquared, NameModuleBranchesSquared)
}

// addedGlobals is how many mutable globals instrumentation adds at most; the compiler reloads each after each call.
const addedGlobals = 3

// check stops with a *limits.Error that names the function if actual is over the cap.
func (v *bodyValidator) check(actual, limit int64, name limits.Name) {
	if actual > limit {
		v.r.c.stop(&limits.Error{Name: name, Limit: limit, Actual: actual, Where: fmt.Sprintf("function %d", v.fn)})
	}
}

func (v *bodyValidator) instr(in *Instr) {
	c := &v.r.c
	switch in.Op {
	case OpBlock, OpLoop, OpIf:
		v.block(in)
		return
	case OpElse:
		top := &v.open[len(v.open)-1]
		if top.op != OpIf {
			c.fail("else without if")
		}
		top.op = OpElse
		return
	case OpEnd:
		v.open = v.open[:len(v.open)-1]
		return
	case OpReturn:
		v.carried += v.open[0].arity
		return
	default:
	}
	switch in.imm {
	case immLabel:
		v.branch(in.X)
	case immBrTable:
		v.check(int64(len(in.Targets))-1, v.caps.BrTable, NameBrTable)
		for _, l := range in.Targets {
			v.branch(l)
		}
	case immFunc:
		if c.index("function", in.X, v.s.funcs) && in.Op != OpRefFunc {
			v.call(v.s.funcType[in.X])
		}
	case immTypeTable:
		c.index("table", in.Y, v.s.tables)
		if c.index("type", in.X, v.s.types) {
			v.call(in.X)
		}
	default:
		v.indices(in)
	}
}

// block opens a block, loop or if.
func (v *bodyValidator) block(in *Instr) {
	l := label{op: in.Op}
	params := int64(0)
	switch in.block {
	case blockEmpty:
	case blockValue:
		l.result = 1
	case blockIndexed:
		if !v.r.c.index("type", in.X, v.s.types) {
			return
		}
		t := &v.m.Types[in.X]
		params, l.result = int64(len(t.Params)), int64(len(t.Results))
	}
	l.arity = l.result
	if in.Op == OpLoop {
		l.arity = params
	}
	v.blocks++
	if in.Op != OpBlock {
		v.branches++
	}
	v.carried += params + l.result
	v.open = append(v.open, l)
	v.check(int64(len(v.open))-1, v.caps.Nesting, NameNesting)
}

func (v *bodyValidator) branch(l uint32) {
	if v.r.c.index("label", l, uint32(len(v.open))) {
		v.carried += v.open[len(v.open)-1-int(l)].arity
		v.branches++
	}
}

func (v *bodyValidator) call(typ uint32) {
	t := &v.m.Types[typ]
	v.calls++
	v.carried += int64(len(t.Params) + len(t.Results))
}

// indices checks the indices of the instructions that neither branch nor call.
func (v *bodyValidator) indices(in *Instr) {
	c := &v.r.c
	if in.Op.PaysByLength() {
		v.branches++
		v.bulk++
	}
	switch in.imm {
	case immLocal:
		c.index("local", in.X, v.locals)
	case immGlobal:
		c.index("global", in.X, v.s.globals)
	case immTable:
		c.index("table", in.X, v.s.tables)
	case immTableTable:
		c.index("table", in.X, v.s.tables)
		c.index("table", in.Y, v.s.tables)
	case immElemTable:
		c.index("element segment", in.X, v.s.elements)
		c.index("table", in.Y, v.s.tables)
	case immElem:
		c.index("element segment", in.X, v.s.elements)
	case immMem, immMemMem, immMemarg, immMemargLane:
		c.index("memory", 0, v.s.memories)
	case immData, immDataMem:
		if in.imm == immDataMem {
			c.index("memory", 0, v.s.memories)
		}
		if v.m.DataCount == nil {
			c.fail("data segment used without a data count section")
			return
		}
		c.index("data segment", in.X, v.s.data)
	default:
	}
}
