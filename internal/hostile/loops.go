package hostile

// loops never end.
func loops() []Module {
	const sqrt, f64Mul, f64Max = "\x9f", "\xa2", "\xa5"
	number := func(bits string) string { return "\x44" + bits }
	tiny := number("\x01\x00\x00\x00\x00\x00\x00\x00") // the smallest there is
	chase := growTo(900) + forever(get(1)+konst(1_103_515_245)+mul+konst(12_345)+add+tee(1)+
		konst(0x37f_fffc)+and+load+get(1)+add+set(1))
	nested := ""
	for range 60 {
		nested = loop(nested + get(1) + eqz + brIf0)
	}
	return []Module{
		endless("a loop without a body", guest{handler: forever("")}),
		endless("a loop that branches if it is true", guest{handler: loop(konst(1)+brIf0) + unreachable}),
		endless("a loop by br_table", guest{handler: loop(bump(1)+get(1)+"\x0e\x03\x00\x00\x00\x00") + unreachable}),
		endless("a loop by br_table of four thousand targets", guest{
			handler: loop(bump(1)+get(1)+"\x0e"+uleb(3_900)+times(3_901, "\x00")) + unreachable,
		}),
		endless("sixty nested loops", guest{handler: nested + unreachable}),
		endless("a loop with a hundred parameters", guest{more: func(m *module) {
			t := m.typ(times(100, i32), "")
			m.fn("", "", "\x00", times(100, konst(1))+"\x03"+sleb(int64(t))+br(0)+end)
		}, handler: call(2) + unreachable}),
		endless("a loop over two thousand instructions", guest{handler: forever(times(500, bump(3)))}),
		endless("a loop of half a megabyte", guest{handler: forever(times(70_000, bump(3)))}),
		endless("counting", guest{handler: forever(bump(1))}),
		endless("dividing", guest{handler: konst(7) + set(1) + forever(konst(-1)+get(1)+divS+konst(1)+add+konst(3)+add+set(1))}),
		endless("taking roots", guest{handler: forever(get(localF64) + sqrt + number("\x00\x00\x00\x00\x00\x00\xf0\x3f") + f64Max + set(localF64))}),
		endless("multiplying what is almost nothing", guest{handler: forever(get(localF64) + tiny + f64Max + number("\x00\x00\x00\x00\x00\x00\xe8\x3f") + f64Mul + set(localF64))}),
		endless("chasing pointers", guest{handler: chase}),
		endless("calling a leaf", guest{handler: forever(call(2)), more: func(m *module) { m.fn("", "", "\x00", "") }}),
		endless("calling through a table", guest{table: "\x00\x01", handler: forever(konst(0) + callIndirect(2)), more: func(m *module) {
			m.elements = []string{"\x00\x41\x00\x0b\x01" + uleb(m.fn("", "", "\x00", ""))}
		}}),
		endless("asking for the size of memory", guest{handler: forever("\x3f\x00\x1a")}),
		endless("a loop in the allocator", guest{
			imports: []imported{messageData}, realloc: forever(""), handler: get(0) + konst(retAt) + call(0) + unreachable,
		}),
		endless("a loop after the answer", guest{more: func(m *module) {
			m.export("cabi_post_"+handleExport, kindFunc, m.fn(i32, "", "\x00", forever("")))
		}}),
	}
}

// straight is code that works without a loop.
func straight() []Module {
	doubling := func(m *module) {
		f := m.fn("", "", "\x00", "")
		for range 60 {
			f = m.fn("", "", "\x00", call(f)+call(f))
		}
	}
	fan := func(m *module) {
		f := m.fn("", "", "\x00", "")
		for range 6 {
			f = m.fn("", "", "\x00", times(400, call(f)))
		}
	}
	return []Module{
		endless("functions that call the one before twice", guest{handler: call(62) + unreachable, more: doubling}),
		endless("functions that call the one before four hundred times", guest{handler: call(8) + unreachable, more: fan}),
		ends("half a megabyte of additions", "", guest{handler: times(70_000, bump(3)) + konst(0)}),
		ends("half a megabyte of loads", "", guest{handler: times(80_000, konst(0)+load+drop) + konst(0)}),
		ends("half a megabyte of nothing", "", guest{handler: times(520_000, "\x01") + konst(0)}),
		ends("eight thousand divisions", "", guest{handler: times(7_900, konst(9)+konst(3)+divS+drop) + konst(0)}),
		endless("half a megabyte of long fills", guest{
			handler: growTo(900) + forever(times(900, konst(0)+konst(1)+konst(50<<20)+memoryFill)),
		}),
	}
}
