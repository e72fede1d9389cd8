package meter

import (
	"bytes"

	"github.com/longshore/longshore/runtime/internal/wasmbin"
)

// bytesShift makes 1 fuel of 8 bytes for instructions that pay by length.
const bytesShift = 3

// rewriter rewrites functions, one after the other.
type rewriter struct {
	a        *added
	planner  planner
	r        *wasmbin.InstrReader
	results  *resultTypes
	tableMax int64 // elements that table.grow can't go beyond
	changes  bool  // some function changes tables or segments
	data     bool  // some function uses data segments

	// Of the function at hand.
	plan    *plan
	out     code
	depth   int    // open blocks
	scratch uint32 // index of an i32 local
}

// function returns the rewritten body of a function of type t.
func (w *rewriter) function(b *wasmbin.Body, t *wasmbin.FuncType) wasmbin.Body {
	w.plan = w.planner.function(b.Expr)
	w.changes = w.changes || !w.plan.faithful
	w.data = w.data || w.plan.data
	locals := b.Locals
	if w.plan.lengths {
		w.scratch = uint32(len(t.Params)) + uint32(b.LocalCount())
		locals = append(locals[:len(locals):len(locals)], wasmbin.LocalGroup{Count: 1, Type: wasmbin.I32})
	}
	w.out, w.depth = w.out[:0], 1
	segments := w.segment(w.plan.segments, 0)
	if w.plan.nests {
		w.a.enter(&w.out)
		w.out.op(wasmbin.OpBlock)
		w.out.raw(w.results.blockType(t.Results))
	}
	w.r.Reset(b.Expr, 0, "code")
	pos := 0
	var in wasmbin.Instr
	for w.r.Next(&in) {
		w.instr(&in)
		pos += len(in.Raw)
		segments = w.segment(segments, pos)
	}
	if w.plan.nests {
		w.a.leave(&w.out)
		w.out.op(wasmbin.OpEnd)
	}
	return wasmbin.Body{Locals: locals, Expr: bytes.Clone(w.out)}
}

// segment lets the first segments pay that begin at pos, and returns the rest.
func (w *rewriter) segment(s []segment, pos int) []segment {
	for len(s) > 0 && s[0].pos == pos {
		if s[0].cost > 0 {
			w.a.charge(&w.out, s[0].cost)
		}
		if s[0].check {
			w.a.check(&w.out)
		}
		s = s[1:]
	}
	return s
}

// instr appends what becomes of an instruction.
func (w *rewriter) instr(in *wasmbin.Instr) {
	switch in.Op {
	case wasmbin.OpBlock, wasmbin.OpLoop, wasmbin.OpIf:
		w.depth++
	case wasmbin.OpEnd:
		w.depth--
	case wasmbin.OpReturn:
		if w.plan.nests {
			w.out.index(wasmbin.OpBr, uint32(w.depth-1))
			return
		}
	case wasmbin.OpReturnCall, wasmbin.OpReturnCallIndirect:
		w.tailCall(in)
		return
	case wasmbin.OpCall, wasmbin.OpRefFunc:
		w.out.index(in.Op, w.a.function(in.X))
		return
	case wasmbin.OpMemoryGrow:
		w.out.index(wasmbin.OpCall, w.a.grow)
		return
	case wasmbin.OpMemoryCopy, wasmbin.OpMemoryFill, wasmbin.OpMemoryInit:
		w.a.chargeLength(&w.out, w.scratch, bytesShift)
	case wasmbin.OpTableInit, wasmbin.OpTableCopy, wasmbin.OpTableFill:
		w.a.chargeLength(&w.out, w.scratch, 0)
	case wasmbin.OpTableGrow:
		w.a.chargeGrow(&w.out, w.scratch, w.tableMax)
	default:
	}
	w.out.raw(in.Raw)
}

// tailCall appends a tail call, which ends the function. A wide one becomes a call that nests.
func (w *rewriter) tailCall(in *wasmbin.Instr) {
	wide := w.planner.types.wide(in)
	if w.plan.nests && !wide {
		w.a.leave(&w.out)
	}
	switch {
	case in.Op == wasmbin.OpReturnCall && wide:
		w.out.index(wasmbin.OpCall, w.a.function(in.X))
	case in.Op == wasmbin.OpReturnCall:
		w.out.index(in.Op, w.a.function(in.X))
	case wide:
		w.out.index(wasmbin.OpCallIndirect, in.X)
		w.out.raw(wasmbin.AppendU32(nil, in.Y))
	default:
		w.out.raw(in.Raw)
	}
	if wide {
		w.out.index(wasmbin.OpBr, uint32(w.depth-1))
	}
}

// function returns the index, in the rewritten module, of the function i of the original.
func (a *added) function(i uint32) uint32 {
	if i >= a.yield {
		return i + 1
	}
	return i
}

// resultTypes gives block types for blocks that leave the results of a function, adding them to a module.
type resultTypes struct {
	m     *wasmbin.Module
	index map[string]int
}

// blockType returns the encoding of the type of a block without parameters.
func (r *resultTypes) blockType(results []wasmbin.ValueType) []byte {
	switch len(results) {
	case 0:
		return []byte{blockEmpty}
	case 1:
		return []byte{byte(results[0])}
	}
	key := make([]byte, len(results))
	for i, t := range results {
		key[i] = byte(t)
	}
	i, ok := r.index[string(key)]
	if !ok {
		i = len(r.m.Types)
		r.index[string(key)] = i
		r.m.Types = append(r.m.Types, wasmbin.FuncType{Results: results})
	}
	return wasmbin.AppendS64(nil, int64(i))
}
