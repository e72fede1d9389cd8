package hostile

import (
	"fmt"

	"github.com/longshore/longshore/limits"
)

// bare is a module of one function with these locals (with their number) and this body, n times.
func bare(n int, locals, body string) func() []byte {
	return func() []byte {
		m := &module{memories: []string{"\x00\x01"}, tables: []string{"\x70\x00\x01"}}
		t := m.typ("", "")
		for range n {
			m.fnOf(t, locals, body)
		}
		return m.bytes()
	}
}

// with builds a module by one function.
func with(build func(m *module)) func() []byte {
	return func() []byte {
		m := &module{}
		build(m)
		return m.bytes()
	}
}

func add1(n int, list *[]string, item string) {
	for range n {
		*list = append(*list, item)
	}
}

// manyExports exports function 0 under n names.
func manyExports(n int) func(m *module) {
	return func(m *module) {
		m.fn("", "", "\x00", "")
		for i := range n {
			m.export(fmt.Sprintf("f%d", i), kindFunc, 0)
		}
	}
}

// declarationBombs declare more than is good.
func declarationBombs() []Module {
	const zeroI32, mutableI32 = i32 + "\x00\x41\x00\x0b", i32 + "\x01\x41\x00\x0b"
	elements := "\x00\x41\x00\x0b\x00"
	return []Module{
		overCap("a type of a hundred and one parameters", "parameters of a type", with(func(m *module) { m.typ(times(101, i32), "") })),
		overCap("a type of a hundred and one results", "results of a type", with(func(m *module) { m.typ("", times(101, i32)) })),
		overCap("more types than ten thousand", "types", with(func(m *module) { add1(10_001, &m.types, "\x60\x00\x00") })),
		overCap("more imports than a thousand", "imports", with(func(m *module) {
			t := m.typ("", "")
			add1(1_001, &m.imports, vec("a")+vec("b")+kindFunc+uleb(t))
		})),
		overCap("more functions than a hundred thousand", "functions", bare(100_001, "\x00", "")),
		overCap("more exports than ten thousand", "exports", with(manyExports(10_001))),
		overCap("more globals than ten thousand", "globals", with(func(m *module) { add1(10_001, &m.globals, zeroI32) })),
		overCap("more mutable globals than a thousand", "mutable globals", with(func(m *module) { add1(1_001, &m.globals, mutableI32) })),
		overCap("five tables", "tables", with(func(m *module) { add1(5, &m.tables, "\x70\x00\x00") })),
		overCap("a table of 134217728 elements", limits.NameTableElements, with(func(m *module) { add1(1, &m.tables, "\x70\x00"+uleb(1<<27)) })),
		overCap("tables that are too large together", limits.NameTableElements, with(func(m *module) { add1(4, &m.tables, "\x70\x00"+uleb(30_000)) })),
		overCap("more element segments than ten thousand", "element segments", with(func(m *module) {
			m.tables = []string{"\x70\x00\x01"}
			add1(10_001, &m.elements, elements)
		})),
		overCap("element segments of too many items", "items of element segments", with(func(m *module) {
			m.fn("", "", "\x00", "")
			m.tables = []string{"\x70\x00\x01"}
			add1(3, &m.elements, "\x00\x41\x00\x0b"+uleb(70_000)+times(70_000, "\x00"))
		})),
		overCap("more data segments than a hundred thousand", "data segments", with(func(m *module) {
			m.memories = []string{"\x00\x01"}
			add1(100_001, &m.data, "\x00\x41\x00\x0b\x00")
		})),
		overCap("an import whose name has a megabyte", "name bytes", with(func(m *module) { m.imp("a", times(1<<20, "x"), "", "") })),
		overCap("more custom sections than a hundred", "custom sections", with(func(m *module) { add1(101, &m.customs, vec("c")) })),
		overCap("a constant expression of a thousand additions", "instructions of a constant expression", with(func(m *module) {
			m.globals = []string{i32 + "\x00" + konst(1) + times(1_000, konst(1)+add) + end}
		})),
		overCap("a module of 65 MiB", "module bytes", with(func(m *module) { m.customs = []string{vec("c") + times(65<<20, "\x00")} })),
		overCap("a memory of 65536 pages", limits.NameMemory, (&guest{memory: "\x00" + uleb(1<<16)}).bytes),
		overCap("a memory of one page more than allowed", limits.NameMemory, (&guest{memory: "\x00" + uleb(limits.GuestMemoryBytes>>16+1)}).bytes),
	}
}

// codeBombs are functions that a compiler takes too long for.
func codeBombs() []Module {
	calls := func(n, globals int) func() []byte {
		return with(func(m *module) {
			add1(globals, &m.globals, i32+"\x01\x41\x00\x0b")
			m.fn("", "", "\x00", times(n, call(0)))
		})
	}
	wide := with(func(m *module) {
		t := m.typ(times(100, i32), times(100, i32))
		m.fnOf(t, "\x00", hundredLocals()+times(2_000, call(0)))
	})
	wideBlocks := with(func(m *module) {
		t := m.typ(times(100, i32), times(100, i32))
		m.fnOf(t, "\x00", hundredLocals()+times(2_000, "\x02"+sleb(int64(t))+end))
	})
	const loaded, divided = "\x41\x00\x28\x02\x00\x1a", "\x41\x01\x41\x01\x6d\x1a"
	return []Module{
		overCap("a hundred million locals", "locals of a function", bare(1, "\x01"+uleb(100_000_000)+i32, "")),
		overCap("four billion locals", "locals of a function", bare(1, "\x01"+uleb(4_000_000_000)+i64, "")),
		overCap("locals in a thousand groups", "locals of a function", bare(1, uleb(1_001)+times(1_001, "\x02"+v128), "")),
		overCap("thirty thousand nested blocks", "nesting of blocks", bare(1, "\x00", times(30_000, "\x02\x40")+times(30_000, end))),
		overCap("thirty thousand nested loops", "nesting of blocks", bare(1, "\x00", times(30_000, "\x03\x40")+times(30_000, end))),
		overCap("thirty thousand nested ifs", "nesting of blocks", bare(1, "\x00", times(30_000, "\x41\x00\x04\x40")+times(30_000, end))),
		overCap("a br_table of 400 KB", "targets of a br_table", bare(1, "\x00", konst(0)+"\x0e"+uleb(400_000)+times(400_001, "\x00"))),
		overCap("a hundred br_tables", "branches of a function", bare(1, "\x00", times(100, block(konst(0)+"\x0e"+uleb(4_000)+times(4_001, "\x00"))))),
		overCap("more blocks than eight thousand", "blocks of a function", bare(1, "\x00", times(9_000, block("")))),
		overCap("a chain of 16384 br_ifs", "branches of a function", bare(1, "\x00", times(16_384, konst(0)+brIf0))),
		overCap("two thousand locals beside a thousand branches", "locals times branches of a function",
			bare(1, "\x01"+uleb(2_000)+i64, times(1_000, konst(0)+brIf0))),
		overCap("calls that carry a hundred values each", "values at blocks, branches and calls of a function", wide),
		overCap("blocks that carry a hundred values each", "values at blocks, branches and calls of a function", wideBlocks),
		overCap("a function of a megabyte", "function body bytes", bare(1, "\x00", times(1<<20/len(loaded), loaded))),
		overCap("eighty thousand divisions", "trapping instructions of a function", bare(1, "\x00", times(80_000, divided))),
		overCap("four thousand memory.fills", "bulk instructions of a function",
			bare(1, "\x00", times(4_000, konst(0)+konst(0)+konst(0)+memoryFill))),
		overCap("a thousand globals beside a thousand calls", "mutable globals times calls of a function", calls(1_000, 900)),
		overCap("a hundred thousand operands on the stack", "operands of a function", bare(1, "\x00", times(100_000, konst(1))+unreachable)),
	}
}

// hundredLocals are instructions that read the first hundred locals.
func hundredLocals() string {
	all := ""
	for i := range 100 {
		all += get(i)
	}
	return all
}

// moduleBombs are modules whose functions are harmless one by one.
func moduleBombs() []Module {
	brIfs := times(4_000, konst(0)+brIf0)
	return []Module{
		overCap("thousands of functions with two thousand locals", "locals of a module", bare(2_600, "\x01"+uleb(2_000)+i32, "")),
		overCap("functions of four thousand branches", "squared branches of a module", bare(40, "\x00", brIfs)),
		overCap("functions of locals and branches", "locals times branches of a module",
			bare(100, "\x01"+uleb(1_000)+i32, times(240, konst(0)+brIf0))),
		overCap("functions of divisions", "trapping instructions of a module", bare(10, "\x00", times(7_000, "\x41\x01\x41\x01\x6d\x1a"))),
		overCap("functions of memory.fills", "bulk instructions of a module",
			bare(30, "\x00", times(1_000, konst(0)+konst(0)+konst(0)+memoryFill))),
		overCap("functions of calls beside globals", "mutable globals times calls of a module", with(func(m *module) {
			add1(900, &m.globals, i32+"\x01\x41\x00\x0b")
			t := m.typ("", "")
			for range 130 {
				m.fnOf(t, "\x00", times(200, call(0)))
			}
		})),
		overCap("functions of wide calls", "values at blocks, branches and calls of a module", with(func(m *module) {
			t := m.typ(times(100, i32), times(100, i32))
			for range 20 {
				m.fnOf(t, "\x00", hundredLocals()+times(900, call(0)))
			}
		})),
	}
}
