package hostile

// recursions call themselves, in one way or another.
func recursions() []Module {
	const self = 2 // the first function that a guest adds, where it imports nothing
	frame := "\x01" + uleb(1_900) + i64
	ring := func(body func(next int) string) func(m *module) {
		return func(m *module) {
			for i := range 3 {
				m.fn("", "", handlerLocals, body(self+(i+1)%3))
			}
		}
	}
	indirect := func(body string) guest {
		return guest{table: "\x00\x01", handler: call(self) + unreachable, more: func(m *module) {
			t := m.typ("", "")
			f := m.fnOf(t, handlerLocals, body+konst(0)+"\x11"+uleb(t)+"\x00")
			m.elements = []string{"\x00\x41\x00\x0b\x01" + uleb(f)}
		}}
	}
	tailIndirectly := guest{table: "\x00\x01", handler: call(self) + unreachable, more: func(m *module) {
		t := m.typ("", "")
		f := m.fnOf(t, "\x00", konst(0)+tailIndirect(t))
		m.elements = []string{"\x00\x41\x00\x0b\x01" + uleb(f)}
	}}
	single := func(locals, body string) guest {
		return guest{handler: call(self) + unreachable, more: func(m *module) { m.fn("", "", locals, body) }}
	}
	count := loop(bump(1) + get(1) + konst(1_000) + ltU + brIf0)
	fib := guest{handler: konst(900) + call(self) + unreachable, more: func(m *module) {
		deeper := get(0) + konst(1) + sub + call(self)
		m.fn(i32, "", "\x00", get(0)+when(deeper+deeper))
	}}
	wide := guest{handler: times(100, konst(1)) + call(self) + unreachable, more: func(m *module) {
		m.fn(times(100, i32), "", "\x00", hundredLocals()+tailCall(self))
	}}
	const over = "stack-overflow"
	return []Module{
		ends("recursion", over, single("\x00", call(self))),
		ends("recursion after a loop", over, single(handlerLocals, count+call(self))),
		ends("recursion within a loop", over, single(handlerLocals, forever(call(self)))),
		ends("recursion with large frames", over, single(frame, call(self))),
		ends("recursion round a ring", over, guest{handler: call(self) + unreachable, more: ring(call)}),
		ends("recursion round a ring with loops", over, guest{
			handler: call(self) + unreachable,
			more:    ring(func(next int) string { return count + call(next) }),
		}),
		ends("recursion through a table", over, indirect("")),
		ends("recursion through a table with a loop", over, indirect(count)),
		ends("wide tail recursion", over, wide),
		ends("recursion of the handler", over, guest{handler: get(0) + call(1)}),
		endless("tail recursion", single("\x00", tailCall(self))),
		endless("tail recursion round a ring", guest{handler: call(self) + unreachable, more: ring(tailCall)}),
		endless("tail recursion through a table", tailIndirectly),
		endless("a tree of calls, nine hundred deep", fib),
		ends("an allocator that needs allocating", "bad-abi", guest{
			imports: []imported{messageData}, realloc: konst(1) + konst(retAt) + call(0) + konst(allocAt),
			handler: get(0) + konst(retAt) + call(0) + konst(0),
		}),
	}
}
