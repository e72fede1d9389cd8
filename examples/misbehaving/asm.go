package misbehaving

import "encoding/binary"

// A module starts with its magic number and the version of the binary format.
const preamble = "\x00asm\x01\x00\x00\x00"

// Sections, in the order in which a module must have them.
const (
	sectionType   = 1
	sectionImport = 2
	sectionFunc   = 3
	sectionTable  = 4
	sectionMemory = 5
	sectionGlobal = 6
	sectionExport = 7
	sectionCode   = 10
	sectionData   = 11
)

// Kinds of imports and exports.
const (
	kindFunc   = 0x00
	kindMemory = 0x02
)

// Types.
const (
	typeFunc    = 0x60
	typeI32     = 0x7f
	typeFuncRef = 0x70
	typeEmpty   = 0x40 // of a block that leaves nothing
)

// Flags of a memory, a table and a global.
const (
	unbounded = 0x00 // only a minimum
	mutable   = 0x01
)

// signature is the type of a function. All parameters and results here are i32, as the canonical ABI lowers pointers,
// lengths and handles.
type signature struct {
	params, results int
}

// fn is the index of a function: imports come first, then definitions.
type fn uint32

// imported is one function import.
type imported struct {
	module, name string
	sig          signature
}

// defined is one function of the module itself.
type defined struct {
	sig    signature
	locals int // i32 locals beside the parameters
	body   code
}

// exported is one export.
type exported struct {
	name  string
	kind  byte
	index uint32
}

// segment is one active data segment of memory 0.
type segment struct {
	offset int32
	data   []byte
}

// module collects what assemble writes out. Imports must all be added before the first definition, because they share
// one index space.
type module struct {
	imports  []imported
	defined  []defined
	globals  []int32 // initial values of mutable i32 globals
	exports  []exported
	segments []segment
	pages    uint32 // initial size of memory 0, in pages of 64 KiB
	table    bool   // an empty table of function references
}

// importFunc adds an import and returns its index.
func (m *module) importFunc(from, name string, sig signature) fn {
	m.imports = append(m.imports, imported{from, name, sig})
	return fn(len(m.imports) - 1)
}

// define adds a function and returns its index.
func (m *module) define(sig signature, locals int, body ...code) fn {
	m.defined = append(m.defined, defined{sig, locals, seq(body...)})
	return fn(len(m.imports) + len(m.defined) - 1)
}

// exportFunc gives a function a name that the host can call.
func (m *module) exportFunc(name string, f fn) {
	m.exports = append(m.exports, exported{name, kindFunc, uint32(f)})
}

// data places bytes in memory 0 at instantiation.
func (m *module) data(offset int32, b []byte) {
	m.segments = append(m.segments, segment{offset, b})
}

// assemble encodes the module. Each function has a type of its own: shorter to write than sharing them.
func (m *module) assemble() []byte {
	var types, imports, funcs, codes [][]byte
	for i, f := range m.imports {
		types = append(types, f.sig.encode())
		imports = append(imports, seq(name(f.module), name(f.name), code{kindFunc}, uleb(i)))
	}
	for i, f := range m.defined {
		types = append(types, f.sig.encode())
		funcs = append(funcs, uleb(len(m.imports)+i))
		codes = append(codes, f.encode())
	}
	out := []byte(preamble)
	out = appendSection(out, sectionType, types)
	out = appendSection(out, sectionImport, imports)
	out = appendSection(out, sectionFunc, funcs)
	if m.table {
		out = appendSection(out, sectionTable, [][]byte{seq(code{typeFuncRef, unbounded}, uleb(0))})
	}
	out = appendSection(out, sectionMemory, [][]byte{seq(code{unbounded}, uleb(m.pages))})
	out = appendSection(out, sectionGlobal, m.encodeGlobals())
	out = appendSection(out, sectionExport, m.encodeExports())
	out = appendSection(out, sectionCode, codes)
	return appendSection(out, sectionData, m.encodeSegments())
}

func (s signature) encode() []byte {
	b := seq(code{typeFunc}, uleb(s.params))
	for range s.params {
		b = append(b, typeI32)
	}
	b = append(b, uleb(s.results)...)
	for range s.results {
		b = append(b, typeI32)
	}
	return b
}

func (f defined) encode() []byte {
	locals := uleb(0)
	if f.locals > 0 {
		locals = seq(uleb(1), uleb(f.locals), code{typeI32})
	}
	body := seq(locals, f.body, code{opEnd})
	return seq(uleb(len(body)), body)
}

func (m *module) encodeGlobals() [][]byte {
	items := make([][]byte, 0, len(m.globals))
	for _, v := range m.globals {
		items = append(items, seq(code{typeI32, mutable}, i32Const(v), code{opEnd}))
	}
	return items
}

func (m *module) encodeExports() [][]byte {
	items := make([][]byte, 0, len(m.exports))
	for _, e := range m.exports {
		items = append(items, seq(name(e.name), code{e.kind}, uleb(e.index)))
	}
	return items
}

func (m *module) encodeSegments() [][]byte {
	items := make([][]byte, 0, len(m.segments))
	for _, s := range m.segments {
		const activeInMemory0 = 0
		items = append(items, seq(uleb(activeInMemory0), i32Const(s.offset), code{opEnd}, uleb(len(s.data)), s.data))
	}
	return items
}

// appendSection appends a section that is a vector of items, or nothing if there are none.
func appendSection(out []byte, id byte, items [][]byte) []byte {
	if len(items) == 0 {
		return out
	}
	content := uleb(len(items))
	for _, item := range items {
		content = append(content, item...)
	}
	return seq(out, code{id}, uleb(len(content)), content)
}

// name encodes a string: its length, then its bytes.
func name(s string) code {
	return seq(uleb(len(s)), code(s))
}

// uleb encodes an unsigned number in LEB128, which is also Go's uvarint.
func uleb[T int | uint32](v T) code {
	return binary.AppendUvarint(nil, uint64(v)) // no caller has a negative count
}
