package meter

import (
	"bytes"

	"github.com/longshore/longshore/runtime/internal/wasmbin"
)

// rewriter rewrites functions, one after the other.
type rewriter struct {
	a        *added
	planner  planner
	r        *wasmbin.InstrReader
	blocks   *blockTypes
	tableMax int64 // elements that table.grow can't go beyond
	changes  bool  // some function changes tables or segments
	data     bool  // some function uses data segments

	// Of the function at hand.
	plan    *plan
	out     code
	frames  []frame             // open blocks; the first is the function
	types   []wasmbin.ValueType // of its locals
	loops   int                 // that have begun
	inlined int                 // bulk instructions on memory so far
	fuel    uint32              // index of an i64 local, see word.go
	scratch uint32              // index of an i32 local
}

// frame is an open block of the original function.
type frame struct {
	loop  int    // index of a loop that is checked outside, or -1
	added uint32 // labels that the rewriting added around this block and those that it is in
}

// outsideLabels is how many labels a loop or a function's body has around it that is checked outside.
const outsideLabels = 3

// function returns the rewritten body of a function of type t.
func (w *rewriter) function(b *wasmbin.Body, t *wasmbin.FuncType) wasmbin.Body {
	w.plan = w.planner.function(b.Expr)
	w.changes = w.changes || !w.plan.faithful
	w.data = w.data || w.plan.data
	w.out, w.loops, w.inlined = w.out[:0], 0, 0
	w.frames = append(w.frames[:0], frame{loop: -1})
	locals := w.locals(b, t)
	w.begin(t)
	w.r.Reset(b.Expr, 0, "code")
	pos := 0
	segments := w.plan.segments[1:] // begin has paid for the first
	var in wasmbin.Instr
	for w.r.Next(&in) {
		w.instr(&in)
		pos += len(in.Raw)
		segments = w.segment(segments, pos)
	}
	w.finish(t)
	return wasmbin.Body{Locals: locals, Expr: bytes.Clone(w.out)}
}

// locals adds what the rewritten function needs to the declared locals.
func (w *rewriter) locals(b *wasmbin.Body, t *wasmbin.FuncType) []wasmbin.LocalGroup {
	next := uint32(len(t.Params)) + uint32(b.LocalCount())
	groups := b.Locals[:len(b.Locals):len(b.Locals)]
	if w.plan.fuel {
		w.fuel, next = next, next+1
		groups = append(groups, wasmbin.LocalGroup{Count: 1, Type: wasmbin.I64})
	}
	if w.plan.lengths {
		w.scratch = next
		groups = append(groups, wasmbin.LocalGroup{Count: 1, Type: wasmbin.I32})
	}
	w.types = append(w.types[:0], t.Params...)
	for _, g := range b.Locals {
		for range g.Count {
			w.types = append(w.types, g.Type)
		}
	}
	return groups
}

// entry reports whether the function's entry is checked outside of its body.
func (w *rewriter) entry() bool { return w.plan.segments[0].check == outside }

// begin appends what comes before the body, and opens the block that the body is in.
func (w *rewriter) begin(t *wasmbin.FuncType) {
	if !w.plan.fuel {
		return
	}
	w.enter()
	blockType := w.blocks.results(t.Results)
	if w.entry() {
		w.surround(blockType)
		w.checkOutside(0)
	}
	w.out.open(wasmbin.OpBlock, blockType)
}

// finish appends what follows the body, whose final end has closed the block that it is in.
func (w *rewriter) finish(t *wasmbin.FuncType) {
	if !w.plan.fuel {
		return
	}
	if w.entry() {
		params := make([]uint32, len(t.Params))
		for i := range params {
			params[i] = uint32(i)
		}
		w.yieldOutside(params, 0)
	}
	w.leave()
	w.out.op(wasmbin.OpEnd)
}

// segment lets the first segments pay that begin at pos, and returns the rest.
func (w *rewriter) segment(s []segment, pos int) []segment {
	for len(s) > 0 && s[0].pos == pos {
		if s[0].cost > 0 {
			w.pay(s[0].cost)
		}
		switch s[0].check {
		case unchecked:
		case inline:
			w.check()
		case outside:
			w.checkOutside(1)
		}
		s = s[1:]
	}
	return s
}

// instr appends what becomes of an instruction.
func (w *rewriter) instr(in *wasmbin.Instr) {
	switch in.Op {
	case wasmbin.OpBlock, wasmbin.OpIf:
		w.push(frame{loop: -1})
		w.out.raw(in.Raw)
	case wasmbin.OpLoop:
		w.loop(in)
	case wasmbin.OpEnd:
		w.end()
	case wasmbin.OpBr, wasmbin.OpBrIf:
		w.out.index(in.Op, w.label(in.X))
	case wasmbin.OpBrTable:
		w.out.op(in.Op)
		w.out.raw(wasmbin.AppendU32(nil, uint32(len(in.Targets)-1)))
		for _, l := range in.Targets {
			w.out.raw(wasmbin.AppendU32(nil, w.label(l)))
		}
	case wasmbin.OpReturn:
		w.ret()
	case wasmbin.OpUnreachable:
		w.flush()
		w.out.raw(in.Raw)
	case wasmbin.OpReturnCall, wasmbin.OpReturnCallIndirect:
		w.tailCall(in)
	case wasmbin.OpCall:
		w.call(func() { w.out.index(in.Op, w.a.function(in.X)) })
	case wasmbin.OpCallIndirect:
		w.call(func() { w.out.raw(in.Raw) })
	case wasmbin.OpRefFunc:
		w.out.index(in.Op, w.a.function(in.X))
	case wasmbin.OpMemoryGrow:
		w.call(func() { w.out.index(wasmbin.OpCall, w.a.grow) })
	default:
		if in.Op.PaysByLength() {
			w.bulk(in)
			return
		}
		w.out.raw(in.Raw)
	}
}

func (w *rewriter) push(f frame) {
	f.added += w.frames[len(w.frames)-1].added
	w.frames = append(w.frames, f)
}

// label returns the number, in the rewritten code, of the label l.
func (w *rewriter) label(l uint32) uint32 {
	last := len(w.frames) - 1
	target := last - int(l)
	n := l + w.frames[last].added - w.frames[target].added
	if target == 0 && w.entry() {
		n += outsideLabels
	}
	return n
}

// ret returns from the function, through the block that its body is in.
func (w *rewriter) ret() { w.out.index(wasmbin.OpBr, w.label(uint32(len(w.frames)-1))) }

// surround opens what is around a loop, or around the block of a function's body, that is checked outside:
//
//	block $exit
//	  loop $again
//	    block $yield
//	      loop            ;; the original
//	        pay
//	        br_if $yield  ;; fuel < 0
//	        …
//	      end
//	      br $exit
//	    end
//	    refresh, yield
//	    br $again
//	  end
//	end
//
// A call inside the loop would make the engine's register allocator spill what the loop carries, in each round. A branch
// to the original loop stays one, and a return goes to $exit.
func (w *rewriter) surround(blockType []byte) {
	w.out.open(wasmbin.OpBlock, blockType)
	w.out.open(wasmbin.OpLoop, blockType)
	w.out.open(wasmbin.OpBlock, empty())
}

// loop opens a loop. One with parameters is checked in place.
func (w *rewriter) loop(in *wasmbin.Instr) {
	l := w.loops
	w.loops++
	f := frame{loop: -1}
	if w.plan.segments[w.plan.loops[l].header].check == outside {
		w.surround(in.BlockType())
		f = frame{loop: l, added: outsideLabels}
	}
	w.push(f)
	w.out.raw(in.Raw)
}

// end closes a block.
func (w *rewriter) end() {
	last := len(w.frames) - 1
	f := w.frames[last]
	w.frames = w.frames[:last]
	w.out.op(wasmbin.OpEnd)
	if f.loop >= 0 {
		l := &w.plan.loops[f.loop]
		w.yieldOutside(l.refresh, w.plan.segments[l.header].cost)
	}
}

// tailCall appends a tail call, which ends the function. A wide one becomes a call that nests.
func (w *rewriter) tailCall(in *wasmbin.Instr) {
	op, wide := in.Op, w.planner.types.wide(in)
	switch {
	case wide && op == wasmbin.OpReturnCall:
		op = wasmbin.OpCall
	case wide:
		op = wasmbin.OpCallIndirect
	}
	call := func() {
		if in.Op == wasmbin.OpReturnCall {
			w.out.index(op, w.a.function(in.X))
			return
		}
		w.out.index(op, in.X)
		w.out.raw(wasmbin.AppendU32(nil, in.Y))
	}
	if wide {
		w.call(call)
		w.ret()
		return
	}
	w.leave()
	call()
}
