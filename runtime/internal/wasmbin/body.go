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
	all              bodyCounts
	localsByBranches int64
	branchesSquared  int64

	// Of the function at hand.
	fn     int
	locals uint32
	open   []label
	bodyCounts
}

// bodyCounts is what the caps on functions count.
type bodyCounts struct {
	blocks, branches, bulk, carried, calls, trapping int64

	height int64 // of the operand stack, as far as it is known: at least the real one
	most   int64 // of height
}

// label is what a branch can name: an open block or the function itself.
type label struct {
	op     Op
	arity  int64 // values that a branch carries
	params int64 // values that it takes
	result int64 // values that the end leaves
	base   int64 // height of the operand stack below its parameters
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
	v.bodyCounts = bodyCounts{}
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
	globals := v.s.mutableGlobals + addedGlobals
	v.check(globals*v.calls, v.caps.GlobalsByCalls, NameGlobalsByCalls)
	v.check(v.trapping, v.caps.Trapping, NameTrapping)
	v.check(v.most, v.caps.Operands, NameOperands)
	v.all.bulk += v.bulk
	v.all.carried += v.carried
	v.all.calls += v.calls
	v.all.trapping += v.trapping
	v.check(v.localsByBranches, v.caps.ModuleLocalsByBranches, NameModuleLocalsByBranches)
	v.check(v.branchesSquared, v.caps.ModuleBranchesSquared, NameModuleBranchesSquared)
	v.check(v.all.bulk, v.caps.ModuleBulkInstrs, NameModuleBulkInstrs)
	v.check(v.all.carried, v.caps.ModuleCarriedValues, NameModuleCarriedValues)
	v.check(globals*v.all.calls, v.caps.ModuleGlobalsByCalls, NameModuleGlobalsByCalls)
	v.check(v.all.trapping, v.caps.ModuleTrapping, NameModuleTrapping)
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
	v.trapping += asInt(in.Op.traps())
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
		v.height = top.base + top.params
		return
	case OpEnd:
		top := &v.open[len(v.open)-1]
		v.height = top.base
		v.push(top.result)
		v.open = v.open[:len(v.open)-1]
		return
	case OpReturn:
		v.carried += v.open[0].arity
		return
	case OpUnreachable:
		return
	default:
	}
	switch in.imm {
	case immLabel:
		v.branch(in.X)
		v.push(-asInt(in.Op == OpBrIf))
	case immBrTable:
		v.push(-1)
		v.check(int64(len(in.Targets))-1, v.caps.BrTable, NameBrTable)
		for _, l := range in.Targets {
			v.branch(l)
		}
	case immFunc:
		if !c.index("function", in.X, v.s.funcs) {
			return
		}
		if in.Op == OpRefFunc {
			v.push(1)
		} else {
			v.call(v.s.funcType[in.X])
		}
	case immTypeTable:
		c.index("table", in.Y, v.s.tables)
		v.push(-1)
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
	switch in.block {
	case blockEmpty:
	case blockValue:
		l.result = 1
	case blockIndexed:
		if !v.r.c.index("type", in.X, v.s.types) {
			return
		}
		t := &v.m.Types[in.X]
		l.params, l.result = int64(len(t.Params)), int64(len(t.Results))
	}
	l.arity = l.result
	if in.Op == OpLoop {
		l.arity = l.params
	}
	if in.Op == OpIf {
		v.push(-1)
	}
	v.push(-l.params)
	l.base = v.height
	v.push(l.params)
	v.blocks++
	if in.Op != OpBlock {
		v.branches++
	}
	v.carried += l.params + l.result
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
	v.push(-int64(len(t.Params)))
	v.push(int64(len(t.Results)))
}

// push notes n more operands, or fewer. Code that can't be reached may take operands that nobody gave.
func (v *bodyValidator) push(n int64) {
	v.height = max(v.height+n, v.open[len(v.open)-1].base)
	v.most = max(v.most, v.height)
}

// indices checks the indices of the instructions that neither branch nor call.
func (v *bodyValidator) indices(in *Instr) {
	c := &v.r.c
	v.push(in.Op.stackEffect())
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
