package hostile

import "github.com/longshore/longshore/runtime"

// malformed are bytes that are no module that the host runs, or claim to be a very large one.
func malformed() []Module {
	const header = "\x00asm\x01\x00\x00\x00"
	raw := func(s string) func() []byte { return func() []byte { return []byte(s) } }
	decode := func(name, words, s string) Module { return refused(name, runtime.StageDecode, words, raw(s)) }
	sec := func(id byte, content string) string { return header + section(id, content) }
	const most = "\xff\xff\xff\xff\x0f" // 2³²−1
	whole := (&guest{}).bytes()
	return []Module{
		decode("nothing", "not WebAssembly", ""),
		decode("a component", "component", "\x00asm\x0d\x00\x01\x00"),
		decode("a torn module", "bytes wanted", string(whole[:len(whole)-3])),
		decode("a section of four gigabytes", "bytes wanted", header+"\x01"+most),
		decode("a type section that says four billion", "over the limit", sec(1, most)),
		decode("a code section that says four billion", "over the limit", sec(10, most)),
		decode("a hundred thousand functions in two bytes", "can't fit", sec(3, uleb(100_000))),
		decode("data of four gigabytes in five bytes", "bytes wanted", sec(5, "\x01\x00\x01")+section(11, "\x01\x01"+most)),
		decode("an integer that never ends", "over 32 bits", sec(1, times(1<<16, "\xff"))),
		decode("sections out of order", "out of order", sec(3, "\x00")+section(1, "\x00")),
		decode("a section that nobody knows", "unknown section", sec(99, "")),
		decode("shared memory", "threads", sec(5, "\x01\x03\x01\x01")),
		decode("a memory of 64 bits", "memory64", sec(5, "\x01\x04\x01")),
		decode("two memories", "multiple memories", sec(5, "\x02\x00\x01\x00\x01")),
		decode("exceptions", "exception handling", sec(13, "\x01\x00\x00")),
		decode("garbage-collected types", "garbage collection", sec(1, "\x01\x5f\x00\x00")),
		refused("one name exported twice", runtime.StageDecode, "exported twice", with(func(m *module) {
			m.fn("", "", "\x00", "")
			m.export("f", kindFunc, 0)
			m.export("f", kindFunc, 0)
		})),
		refused("a name of the host's", runtime.StageDecode, "reserved", (&guest{imports: []imported{{"longshore:meter", "yield", "l", "l"}}}).bytes),
		refused("a label that isn't there", runtime.StageDecode, "label", (&guest{handler: br(9)}).bytes),
		refused("a local of the host's", runtime.StageDecode, "local", (&guest{handler: get(15), locals: "\x00"}).bytes),
		refused("a global of the host's", runtime.StageDecode, "global", (&guest{handler: "\x23\x00\x1a" + konst(0)}).bytes),
		refused("a function of the host's", runtime.StageDecode, "function", (&guest{handler: call(2) + konst(0)}).bytes),
		refused("operands of the wrong type", runtime.StageCompile, "", (&guest{handler: "\x42\x00"}).bytes),
		refused("a thousand imports that nobody serves", runtime.StageInterface, "more faults", (&guest{imports: unserved(1_000)}).bytes),
		refused("an import with another signature", runtime.StageInitialise, "", (&guest{imports: []imported{{fromWASI, "fd_write", "l", "l"}}}).bytes),
		refused("a start function that is imported", runtime.StageDecode, "parameters or results", (&guest{
			imports: []imported{{fromWASI, "proc_exit", "i", ""}},
			more:    func(m *module) { m.start = uleb(0) },
		}).bytes),
		refused("a start function that is imported as what it isn't", runtime.StageInitialise, "", (&guest{
			imports: []imported{{fromWASI, "proc_exit", "", ""}},
			more:    func(m *module) { m.start = uleb(0) },
		}).bytes),
		refused("no handler", runtime.StageInterface, "no handler", with(func(m *module) {
			m.memories = []string{"\x00\x01"}
			m.export("memory", kindMemory, 0)
		})),
		refused("a memory that is imported", runtime.StageInterface, "must define its own", with(func(m *module) {
			m.imports = []string{vec("a") + vec("memory") + kindMemory + "\x00\x01"}
			m.export("memory", kindMemory, 0)
			m.funcs = nil
		})),
		refused("data outside of memory", runtime.StageInitialise, "outside of memory", (&guest{
			more: func(m *module) { m.data = []string{"\x00" + konst(-4) + end + vec("1234567")} },
		}).bytes),
		// The engine writes none of them, which harms nobody but the module.
		ends("elements outside of the table", "", guest{table: "\x00\x01", more: func(m *module) {
			m.elements = []string{"\x00" + konst(-4) + end + "\x01\x00"}
		}}),
	}
}

func unserved(n int) []imported {
	var all []imported
	for range n {
		all = append(all, imported{"env", "abort", "", ""})
	}
	return all
}
