package meter

import "github.com/longshore/longshore/runtime/internal/wasmbin"

// The methods of rewriter in this file append code that works on the fuel, which a function keeps in a local, with the
// calls that may still be nested: see word.go.

// enter takes the fuel from its global, and with it pays for the function's first block. A function whose calls nest
// takes one of them too, which ends the guest if there is none.
func (w *rewriter) enter() {
	take := w.plan.segments[0].cost * oneFuel
	if w.plan.nests {
		take++
	}
	w.out.index(wasmbin.OpGlobalGet, w.a.word)
	w.take(take)
	if !w.plan.nests {
		return
	}
	w.out.index(wasmbin.OpLocalGet, w.fuel)
	w.out.i64(tooDeep)
	w.out.op(wasmbin.OpI64And, wasmbin.OpI64Eqz)
	w.out.unless(func() {
		w.out.index(wasmbin.OpCall, w.a.overflow)
		w.out.op(wasmbin.OpUnreachable)
	})
}

// leave gives the fuel back to its global, and the nested call that enter took.
func (w *rewriter) leave() {
	w.out.index(wasmbin.OpLocalGet, w.fuel)
	if w.plan.nests {
		w.out.i64(1)
		w.out.op(wasmbin.OpI64Add)
	}
	w.out.index(wasmbin.OpGlobalSet, w.a.word)
}

// reload takes the fuel from its global.
func (w *rewriter) reload() {
	w.out.index(wasmbin.OpGlobalGet, w.a.word)
	w.out.index(wasmbin.OpLocalSet, w.fuel)
}

// flush gives the fuel back to its global.
func (w *rewriter) flush() {
	w.out.index(wasmbin.OpLocalGet, w.fuel)
	w.out.index(wasmbin.OpGlobalSet, w.a.word)
}

// take sets the fuel to the value on top of the stack less a constant.
func (w *rewriter) take(n int64) {
	if n != 0 {
		w.out.i64(n)
		w.out.op(wasmbin.OpI64Sub)
	}
	w.out.index(wasmbin.OpLocalSet, w.fuel)
}

// call appends a call, in which the fuel is in its global.
func (w *rewriter) call(call func()) {
	w.flush()
	call()
	w.reload()
}

// pay takes n fuel.
func (w *rewriter) pay(n int64) {
	w.out.index(wasmbin.OpLocalGet, w.fuel)
	w.take(n * oneFuel)
}

// checkOutside leaves for where yieldOutside is, so many labels out, if the fuel is negative.
func (w *rewriter) checkOutside(label uint32) {
	w.out.index(wasmbin.OpLocalGet, w.fuel)
	w.out.i64(0)
	w.out.op(wasmbin.OpI64LtS)
	w.out.index(wasmbin.OpBrIf, label)
}

// check yields if the fuel is negative.
func (w *rewriter) check() {
	w.out.index(wasmbin.OpLocalGet, w.fuel)
	w.out.i64(0)
	w.out.op(wasmbin.OpI64GeS)
	w.out.unless(w.yield)
}

// yield lets the host give more fuel.
func (w *rewriter) yield() {
	w.out.index(wasmbin.OpLocalGet, w.fuel)
	w.out.index(wasmbin.OpCall, w.a.refill)
	w.out.index(wasmbin.OpLocalSet, w.fuel)
}

// yieldOutside closes what surround opened. Who comes there has found its fuel negative: it yields, gets back the cost that
// it will pay again, and goes there again. Some locals become new values, so that it is these that live
// across the call, in memory, and not those in the registers of the loop.
func (w *rewriter) yieldOutside(refresh []uint32, cost int64) {
	w.out.index(wasmbin.OpBr, outsideLabels-1)
	w.out.op(wasmbin.OpEnd)
	for _, l := range refresh {
		w.out.refresh(l, w.types[l])
	}
	w.yield()
	if cost > 0 {
		w.pay(-cost)
	}
	w.out.index(wasmbin.OpBr, 0)
	w.out.op(wasmbin.OpEnd, wasmbin.OpEnd)
}

// Bulk instructions that pay by length: 1 fuel for 8 bytes of memory, or for an element of a table.
const (
	bytesShift = 3
	pageFuel   = pageBytes >> bytesShift
)

// bulk appends an instruction that pays by length, which is on top of the stack.
func (w *rewriter) bulk(in *wasmbin.Instr) {
	w.out.index(wasmbin.OpLocalSet, w.scratch)
	switch in.Op {
	case wasmbin.OpMemoryCopy, wasmbin.OpMemoryFill, wasmbin.OpMemoryInit:
		w.memory(in)
		return
	case wasmbin.OpTableGrow:
		w.payLength(func() { // a length over the limit is refused, and costs no more than the limit
			w.out.index(wasmbin.OpLocalGet, w.scratch)
			w.out.i32(int32(w.tableMax))
			w.out.index(wasmbin.OpLocalGet, w.scratch)
			w.out.i32(int32(w.tableMax))
			w.out.op(wasmbin.OpI32LtU, wasmbin.OpSelect)
		}, 0)
	default:
		w.payLength(func() { w.out.index(wasmbin.OpLocalGet, w.scratch) }, 0)
	}
	w.out.index(wasmbin.OpLocalGet, w.scratch)
	w.out.raw(in.Raw)
}

// payLength takes the i32 that length leaves, shifted right, in fuel, and checks.
func (w *rewriter) payLength(length func(), shift int64) {
	w.out.index(wasmbin.OpLocalGet, w.fuel)
	length()
	w.out.op(wasmbin.OpI64ExtendI32U)
	if shift > 0 {
		w.out.i64(shift)
		w.out.op(wasmbin.OpI64ShrU)
	}
	w.out.toWord()
	w.out.op(wasmbin.OpI64Sub)
	w.out.index(wasmbin.OpLocalSet, w.fuel)
	w.check()
}

// memory appends a bulk instruction on memory. A long one is done by a helper, in pieces, and so are all those of a
// function that has more than inlineBulk: the engine takes long over functions with many branches.
func (w *rewriter) memory(in *wasmbin.Instr) {
	get := func() { w.out.index(wasmbin.OpLocalGet, w.scratch) }
	help := func() { w.call(func() { w.out.index(wasmbin.OpCall, w.a.helper(in)) }) }
	get()
	if w.inlined++; w.inlined > inlineBulk {
		help()
		return
	}
	get()
	w.out.i32(pieceBytes)
	w.out.op(wasmbin.OpI32LeU)
	w.out.open(wasmbin.OpIf, w.blocks.bulk())
	w.payLength(get, bytesShift)
	w.out.raw(in.Raw)
	w.out.op(wasmbin.OpElse)
	help()
	w.out.op(wasmbin.OpEnd)
}

// inlineBulk is how many bulk instructions on memory a function does itself while they are short.
const inlineBulk = 32
