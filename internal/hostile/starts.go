package hostile

import "github.com/longshore/longshore/runtime"

// initialisations do their harm before the first message.
func initialisations() []Module {
	failing := func(name, reason string, g guest) Module {
		return refused(name, runtime.StageInitialise, reason+":", g.bytes)
	}
	exit := []imported{{fromWASI, "proc_exit", "i", ""}}
	write := []imported{{fromWASI, "fd_write", "iiii", "i"}}
	random := []imported{{fromWASI, "random_get", "ii", "i"}}
	clock := []imported{{fromWASI, "clock_time_get", "ili", "i"}}
	poll := []imported{{fromWASI, "poll_oneoff", "iiii", "i"}}
	line := u32s(dataAt, 1000) + times(1000, "x")
	const self = 3 // the function after realloc, handler and start or _initialize
	recursing := func(m *module) { m.fn("", "", "\x00", call(self)) }
	full := konst(0) + konst(1) + konst(mostBytes) + memoryFill
	return []Module{
		failing("a start function that never ends", "out-of-fuel", guest{start: forever("")}),
		failing("an _initialize that never ends", "out-of-fuel", guest{init: forever(bump(1))}),
		failing("a start function that recurses", "stack-overflow", guest{start: call(self), more: recursing}),
		failing("an _initialize that recurses", "stack-overflow", guest{init: call(self), more: recursing}),
		failing("a start function that traps", "guest-trap", guest{start: unreachable}),
		failing("an exit in _initialize", "exit", guest{imports: exit, init: konst(7) + call(0)}),
		failing("an exit in the start function", "exit", guest{imports: exit, start: konst(0) + call(0)}),
		failing("an _initialize that writes for ever", "output-limit", guest{
			imports: write, data: line, init: forever(konst(1) + konst(dataAt) + konst(1) + konst(retAt) + call(0) + drop),
		}),
		failing("an _initialize that calls the host for ever", "host-call-limit", guest{
			imports: clock, init: forever(konst(0) + "\x42\x00" + konst(retAt) + call(0) + drop),
		}),
		failing("an _initialize that sleeps for a year", "timeout", guest{
			imports: poll, data: sleep(1), init: konst(dataAt) + konst(8192) + konst(1) + konst(retAt) + call(0) + drop,
		}),
		failing("an _initialize that wants randomness for ever", "timeout", guest{
			imports: random, init: growTo(mostPages-1) + forever(konst(0)+konst(mostBytes-1)+call(0)+drop),
		}),
		ends("an _initialize that fills all memory", "", guest{
			init: growTo(mostPages-1) + full, handler: konst(0) + konst(0) + konst(64) + memoryFill + konst(0),
		}),
		ends("a start function that leaves no memory", "out-of-memory", guest{
			start:   loop(konst(1) + grow + konst(-1) + eq + eqz + brIf0),
			handler: konst(1) + grow + konst(-1) + eq + when(unreachable) + konst(0),
		}),
		endless("data and a loop in every message's _initialize", guest{
			table: "\x00\x01", init: bump(1), handler: konst(0) + nullFunc + "\x26\x00" + forever(""),
		}),
	}
}

// traps end a call as WebAssembly says.
func traps() []Module {
	trap := func(kind, name, body string) Module {
		return ends(name, "guest-trap: "+kind, guest{table: "\x00\x01", handler: body + konst(0)})
	}
	const nan = "\x44\x00\x00\x00\x00\x00\x00\xf8\x7f"
	names := (&module{})
	names.customs = []string{vec("name") + "\x01" + vec("\x01\x00"+vec(times(1<<20, "\x1b[2J")))}
	named := ends("a function named by a megabyte of control characters", "guest-trap: unreachable", guest{
		handler: unreachable, more: func(m *module) { m.customs = names.customs },
	})
	liar := ends("a name section that says four billion", "", guest{more: func(m *module) {
		m.customs = []string{vec("name") + "\x01" + vec("\xff\xff\xff\xff\x0f"), vec("name") + "\x01\xff\xff\xff\xff\x0f"}
	}})
	return []Module{
		trap("unreachable", "an unreachable", unreachable),
		trap("memory-out-of-bounds", "a load at the end of the address space", konst(-1)+load+drop),
		trap("memory-out-of-bounds", "a store just behind memory", konst(65_533)+konst(1)+store),
		trap("memory-out-of-bounds", "a load with an offset of four gigabytes", konst(-1)+"\x28\x02\xff\xff\xff\xff\x0f"+drop),
		trap("integer-divide-by-zero", "a division by zero", konst(1)+konst(0)+divS+drop),
		trap("integer-overflow", "the division that overflows", konst(-1<<31)+konst(-1)+divS+drop),
		trap("invalid-conversion", "a number that is none", nan+"\xaa"+drop),
		trap("invalid-table-access", "a call behind the table", get(0)+konst(-1)+callIndirect(1)+drop),
		trap("invalid-table-access", "a call of nothing", get(0)+konst(0)+callIndirect(1)+drop),
		ends("a call of the wrong type", "guest-trap: indirect-call-mismatch", guest{
			table: "\x00\x01", handler: get(0) + konst(0) + callIndirect(1),
			more: func(m *module) { m.elements = []string{"\x00\x41\x00\x0b\x01\x00"} },
		}),
		named, liar,
	}
}
