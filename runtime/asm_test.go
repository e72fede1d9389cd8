package runtime_test

import "encoding/binary"

// wasmModule is a small consumer, given as instructions. Its functions have eight i32 locals; its memory has one page
// and no maximum; a handler that answers 0 is ok, because memory begins with zeros.
type wasmModule struct {
	imports  []wasmImport
	handler  []byte // (message i32) -> i32; nil = not exported
	start    []byte // () -> (); nil = none
	init     []byte // () -> (), exported as _initialize; nil = none
	data     []byte // active at 1024
	passive  []byte // a passive segment, number 0, if there are no data
	table    bool   // a table of ten elements
	noMemory bool   // memory isn't exported
	noAlloc  bool   // no cabi_realloc
	realloc  string // body of cabi_realloc; "" = it answers 32768
	exported string // name under which the first import is exported; "" = none
	extra    string // one more exported function, of the handler's type if extraBody is ""

	extraBody string // () -> ()
}

// wasmImport is a function import; types are value type bytes.
type wasmImport struct {
	module, name    string
	params, results string
}

// Value types and instructions that the tests use.
const (
	i32 = "\x7f"
	i64 = "\x7e"

	handleExport = "wasi:messaging/incoming-handler@0.2.0-draft#handle"
)

func opConst(v int32) string  { return "\x41" + string(sleb(v)) }
func opCall(f int) string     { return "\x10" + string(uleb(f)) }
func opGet(local int) string  { return "\x20" + string(uleb(local)) }
func opLoop(b string) string  { return "\x03\x40" + b + "\x0c\x00\x0b\x00" } // for ever
func opLoad(at int32) string  { return opConst(at) + "\x28\x02\x00" }
func opStore(at int32) string { return opConst(at) + opConst(1) + "\x36\x02\x00" }

const (
	opUnreachable = "\x00"
	opDrop        = "\x1a"
	opFill        = "\xfc\x0b\x00"     // dst, value, n
	opCopy        = "\xfc\x0a\x00\x00" // dst, src, n
	opGrow        = "\x40\x00"
	opDataDrop0   = "\xfc\x09\x00"
	opInit0       = "\xfc\x08\x00\x00" // dst, src, n
)

// assemble encodes the module. Functions: imports, realloc, handler, start, init.
func (m wasmModule) assemble() []byte {
	var types, imports, funcs, exports, code [][]byte
	define := func(params, results, body string) int {
		types = append(types, vec("\x60", params, results))
		funcs = append(funcs, uleb(len(types)-1))
		b := "\x01\x08\x7f" + body + "\x0b"
		code = append(code, append(uleb(len(b)), b...))
		return len(types) - 1
	}
	export := func(name string, kind byte, index int) {
		exports = append(exports, append(append(uleb(len(name)), name...), append([]byte{kind}, uleb(index)...)...))
	}
	for _, i := range m.imports {
		types = append(types, vec("\x60", i.params, i.results))
		imports = append(imports, append(append(append(append(uleb(len(i.module)), i.module...), uleb(len(i.name))...), i.name...),
			append([]byte{0}, uleb(len(types)-1)...)...))
	}
	body := m.realloc
	if body == "" {
		body = opConst(32768)
	}
	realloc := define(i32+i32+i32+i32, i32, body)
	if !m.noAlloc {
		export("cabi_realloc", 0, realloc)
	}
	if m.handler != nil {
		export(handleExport, 0, define(i32, i32, string(m.handler)))
	}
	if m.exported != "" {
		export(m.exported, 0, 0)
	}
	switch {
	case m.extra != "" && m.extraBody != "":
		export(m.extra, 0, define("", "", m.extraBody))
	case m.extra != "":
		export(m.extra, 0, define(i32, i32, opConst(0)))
	}
	var sections []byte
	start := -1
	if m.start != nil {
		start = define("", "", string(m.start))
	}
	if m.init != nil {
		export("_initialize", 0, define("", "", string(m.init)))
	}
	if !m.noMemory {
		export("memory", 2, 0)
	}
	sections = appendSection(sections, 1, types)
	sections = appendSection(sections, 2, imports)
	sections = appendSection(sections, 3, funcs)
	if m.table {
		sections = appendSection(sections, 4, [][]byte{{0x70, 0, 10}})
	}
	sections = appendSection(sections, 5, [][]byte{{0, 1}})
	sections = appendSection(sections, 6, [][]byte{[]byte(i32 + "\x01" + opConst(0) + "\x0b")})
	sections = appendSection(sections, 7, exports)
	if start >= 0 {
		sections = append(sections, append([]byte{8, byte(len(uleb(start)))}, uleb(start)...)...)
	}
	segment := m.segment()
	if segment != nil {
		sections = append(sections, 12, 1, 1)
	}
	sections = appendSection(sections, 10, code)
	if segment != nil {
		sections = appendSection(sections, 11, [][]byte{segment})
	}
	return append([]byte("\x00asm\x01\x00\x00\x00"), sections...)
}

func (m wasmModule) segment() []byte {
	switch {
	case m.data != nil:
		return append(append([]byte("\x00"+opConst(1024)+"\x0b"), uleb(len(m.data))...), m.data...)
	case m.passive != nil:
		return append(append([]byte{1}, uleb(len(m.passive))...), m.passive...)
	}
	return nil
}

func vec(prefix, params, results string) []byte {
	b := append([]byte(prefix), uleb(len(params))...)
	b = append(append(b, params...), uleb(len(results))...)
	return append(b, results...)
}

func appendSection(out []byte, id byte, items [][]byte) []byte {
	if len(items) == 0 {
		return out
	}
	body := uleb(len(items))
	for _, i := range items {
		body = append(body, i...)
	}
	return append(append(append(out, id), uleb(len(body))...), body...)
}

func uleb(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }

func sleb(v int32) (b []byte) {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if (v == 0 && c&0x40 == 0) || (v == -1 && c&0x40 != 0) {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}
