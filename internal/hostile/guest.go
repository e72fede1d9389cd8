package hostile

// The names of the ABI that the modules import and export.
const (
	handleExport = "wasi:messaging/incoming-handler@0.2.0-draft#handle"
	fromTypes    = "wasi:messaging/types@0.2.0-draft"
	fromProducer = "wasi:messaging/producer@0.2.0-draft"
	fromPublish  = "longshore:messaging/publisher@0.1.0"
	fromWASI     = "wasi_snapshot_preview1"
)

// Locals of a handler: its message, then eight i32, two i64, two f64 and two v128.
const (
	handlerLocals = "\x04" + "\x08" + i32 + "\x02" + i64 + "\x02" + f64 + "\x02" + v128
	localI64      = 9
	localF64      = 11
)

// Places in the memory of a guest: what its data segment holds, where results go, and what its allocator gives out.
const (
	dataAt  = 1024
	retAt   = 4096
	allocAt = 32768
)

// guest is a consumer: what isn't given is harmless. Its functions are numbered after its imports: realloc, handler,
// then what more adds.
type guest struct {
	imports []imported
	handler string // (message i32) -> i32; "" answers ok
	locals  string // of handler, with their number; "" = handlerLocals
	realloc string // "" answers allocAt
	data    string // active at dataAt
	passive string // passive data, segment 0
	table   string // limits of a table of functions; "" = none
	init    string // _initialize: () -> ()
	start   string // start function: () -> ()
	memory  string // limits of the memory; "" = one page
	more    func(m *module)
}

// imported is a function import; each parameter is a letter: i = i32, l = i64.
type imported struct{ from, name, params, results string }

// bytes encodes g.
func (g *guest) bytes() []byte {
	m := &module{}
	for _, i := range g.imports {
		m.imp(i.from, i.name, valueTypes(i.params), valueTypes(i.results))
	}
	m.export("cabi_realloc", kindFunc, m.fn(i32+i32+i32+i32, i32, handlerLocals, or(g.realloc, konst(allocAt))))
	m.export(handleExport, kindFunc, m.fn(i32, i32, or(g.locals, handlerLocals), or(g.handler, konst(0))))
	m.export("memory", kindMemory, 0)
	m.memories = []string{or(g.memory, "\x00\x01")}
	if g.table != "" {
		m.tables = []string{"\x70" + g.table}
	}
	if g.init != "" {
		m.export("_initialize", kindFunc, m.fn("", "", handlerLocals, g.init))
	}
	if g.start != "" {
		m.start = uleb(m.fn("", "", handlerLocals, g.start))
	}
	if g.data != "" {
		m.data = append(m.data, "\x00"+konst(dataAt)+end+vec(g.data))
	}
	if g.passive != "" {
		m.data, m.dataCount = append(m.data, "\x01"+vec(g.passive)), true
	}
	if g.more != nil {
		g.more(m)
	}
	return m.bytes()
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func valueTypes(letters string) string {
	t := ""
	for _, l := range letters {
		if l == 'l' {
			t += i64
		} else {
			t += i32
		}
	}
	return t
}

// zeros are arguments for the parameters that the letters stand for.
func zeros(letters string) string {
	args := ""
	for _, l := range letters {
		if l == 'l' {
			args += "\x42\x00"
		} else {
			args += konst(0)
		}
	}
	return args
}
