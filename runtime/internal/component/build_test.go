package component

import "encoding/binary"

// builder assembles components as text of bytes: each call appends a section.
type builder struct{ b []byte }

func newBuilder() *builder { return &builder{[]byte("\x00asm\x0d\x00\x01\x00")} }

func leb(n int) string { return string(binary.AppendUvarint(nil, uint64(n))) }

func str(s string) string { return leb(len(s)) + s }

// raw appends a section with the given content.
func (c *builder) raw(id byte, content string) *builder {
	c.b = append(append(c.b, id), leb(len(content))+content...)
	return c
}

// items appends a section of a vector.
func (c *builder) items(id byte, items ...string) *builder {
	content := leb(len(items))
	for _, i := range items {
		content += i
	}
	return c.raw(id, content)
}

const (
	module = "\x00asm\x01\x00\x00\x00" // stands for any
	iface  = "wasi:messaging/incoming-handler@0.2.0-draft"
)

var wanted = []Wanted{{"longshore:messaging/batch-handler@0.1.0", "handle-batch"}, {iface, "handle"}}

// instantiate is a core instance of module 0 without arguments.
const instantiate = "\x00\x00\x00"

// coreAlias is an alias of a core export; sort is that of the core.
func coreAlias(sort byte, instance int, name string) string {
	return "\x00" + string([]byte{sort}) + "\x01" + leb(instance) + str(name)
}

// lift lifts core function f, with options.
func lift(f int, options ...string) string {
	s := "\x00\x00" + leb(f) + leb(len(options))
	for _, o := range options {
		s += o
	}
	return s + "\x00"
}

func optMemory(i int) string  { return "\x03" + leb(i) }
func optRealloc(i int) string { return "\x04" + leb(i) }
func optPost(i int) string    { return "\x05" + leb(i) }

// exportInstance exports instance i.
func exportInstance(name string, i int) string { return "\x00" + str(name) + "\x05" + leb(i) + "\x00" }

// inline is an instance whose exports are functions, by name and index.
func inline(name string, f int) string { return "\x01\x01\x00" + str(name) + "\x01" + leb(f) }

// shim is the component that toolchains nest to give an instance its type: it exports what it imports.
func shim() []byte {
	return newBuilder().
		items(sectionImport, "\x00"+str("import-func-handle")+"\x01\x00").
		items(sectionExport, "\x00"+str("handle")+"\x01\x00\x01\x01\x00").b
}

// upTo builds everything up to the lift: core functions 0 handle, 1 realloc, 2 post-return, memory 0.
func upTo(options ...string) *builder {
	return newBuilder().
		raw(sectionCoreModule, module).
		items(sectionCoreInstance, instantiate).
		items(sectionAlias, coreAlias(0, 0, "h"), coreAlias(0, 0, "r"), coreAlias(0, 0, "p"), coreAlias(2, 0, "m")).
		items(sectionCanon, lift(0, options...))
}

// whole is a component as toolchains make it.
func whole() []byte {
	return upTo("\x00", optMemory(0), optRealloc(1), optPost(2)).
		raw(sectionComponent, string(shim())).
		items(sectionInstance, "\x00\x00\x01"+str("import-func-handle")+"\x01\x00").
		items(sectionExport, exportInstance(iface, 0)).b
}
