package hostile

import (
	"encoding/binary"
	"strings"
)

// Value types, and the empty block type.
const (
	i32   = "\x7f"
	i64   = "\x7e"
	f64   = "\x7c"
	v128  = "\x7b"
	empty = "\x40"
)

// Kinds of imports and exports.
const (
	kindFunc   = "\x00"
	kindTable  = "\x01"
	kindMemory = "\x02"
)

// Instructions without immediates, or with fixed ones.
const (
	unreachable = "\x00"
	end         = "\x0b"
	brIf0       = "\x0d\x00"
	drop        = "\x1a"
	grow        = "\x40\x00"
	load        = "\x28\x02\x00"
	store       = "\x36\x02\x00"
	store8      = "\x3a\x00\x00"
	eqz         = "\x45"
	eq          = "\x46"
	ltU         = "\x49"
	add         = "\x6a"
	sub         = "\x6b"
	mul         = "\x6c"
	divS        = "\x6d"
	and         = "\x71"
	memoryInit0 = "\xfc\x08\x00\x00" // dst, src, n
	dataDrop0   = "\xfc\x09\x00"
	memoryCopy  = "\xfc\x0a\x00\x00" // dst, src, n
	memoryFill  = "\xfc\x0b\x00"     // dst, value, n
	tableInit0  = "\xfc\x0c\x00\x00" // dst, src, n
	tableCopy   = "\xfc\x0e\x00\x00" // dst, src, n
	tableGrow   = "\xfc\x0f\x00"     // ref, n
	tableFill   = "\xfc\x11\x00"     // at, ref, n
	nullFunc    = "\xd0\x70"
)

func konst(v int32) string         { return "\x41" + sleb(int64(v)) }
func get(local int) string         { return "\x20" + uleb(local) }
func set(local int) string         { return "\x21" + uleb(local) }
func tee(local int) string         { return "\x22" + uleb(local) }
func br(label int) string          { return "\x0c" + uleb(label) }
func call(f int) string            { return "\x10" + uleb(f) }
func callIndirect(typ int) string  { return "\x11" + uleb(typ) + "\x00" }
func tailCall(f int) string        { return "\x12" + uleb(f) }
func tailIndirect(typ int) string  { return "\x13" + uleb(typ) + "\x00" }
func loop(body string) string      { return "\x03" + empty + body + end }
func block(body string) string     { return "\x02" + empty + body + end }
func times(n int, s string) string { return strings.Repeat(s, n) }
func forever(body string) string   { return loop(body+br(0)) + unreachable }
func storeAt(at, v int32) string   { return konst(at) + konst(v) + store }
func when(body string) string      { return "\x04" + empty + body + end }
func growTo(pages int32) string    { return konst(pages) + grow + drop }

// bump adds n to local 1, the first i32 of a handler.
func bump(n int32) string { return get(1) + konst(n) + add + set(1) }

// module is a module under construction. Imports come first, because functions are numbered after them.
type module struct {
	types, imports, funcs, tables, memories, globals, exports, elements, code, data, customs []string

	start     string // section content; "" = none
	dataCount bool
}

// typ adds a function type.
func (m *module) typ(params, results string) int {
	m.types = append(m.types, "\x60"+vec(params)+vec(results))
	return len(m.types) - 1
}

// imp imports a function.
func (m *module) imp(from, name, params, results string) {
	m.imports = append(m.imports, vec(from)+vec(name)+kindFunc+uleb(m.typ(params, results)))
}

// fn adds a function; locals are its groups of locals, with their number.
func (m *module) fn(params, results, locals, body string) int {
	return m.fnOf(m.typ(params, results), locals, body)
}

// fnOf is fn with a type that is there.
func (m *module) fnOf(typ int, locals, body string) int {
	m.funcs = append(m.funcs, uleb(typ))
	m.code = append(m.code, vec(locals+body+end))
	return len(m.imports) + len(m.funcs) - 1
}

func (m *module) export(name, kind string, index int) {
	m.exports = append(m.exports, vec(name)+kind+uleb(index))
}

// bytes encodes the module.
func (m *module) bytes() []byte {
	var b strings.Builder
	b.WriteString("\x00asm\x01\x00\x00\x00")
	put := func(id byte, items []string) {
		if len(items) > 0 {
			b.WriteString(section(id, uleb(len(items))+strings.Join(items, "")))
		}
	}
	put(1, m.types)
	put(2, m.imports)
	put(3, m.funcs)
	put(4, m.tables)
	put(5, m.memories)
	put(6, m.globals)
	put(7, m.exports)
	if m.start != "" {
		b.WriteString(section(8, m.start))
	}
	put(9, m.elements)
	if m.dataCount {
		b.WriteString(section(12, uleb(len(m.data))))
	}
	put(10, m.code)
	put(11, m.data)
	for _, c := range m.customs {
		b.WriteString(section(0, c))
	}
	return []byte(b.String())
}

func section(id byte, content string) string { return string(id) + vec(content) }

// vec is a vector of bytes: its length, then s.
func vec(s string) string { return uleb(len(s)) + s }

func uleb(n int) string { return string(binary.AppendUvarint(nil, uint64(n))) }

func sleb(v int64) string {
	var b []byte
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return string(append(b, c))
		}
		b = append(b, c|0x80)
	}
}

// u32s are little-endian words of memory.
func u32s(words ...uint32) string {
	var b []byte
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return string(b)
}
