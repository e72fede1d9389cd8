package wasmbin

import "fmt"

// Section ids.
const (
	secCustom    = 0
	secType      = 1
	secImport    = 2
	secFunction  = 3
	secTable     = 4
	secMemory    = 5
	secGlobal    = 6
	secExport    = 7
	secStart     = 8
	secElement   = 9
	secCode      = 10
	secData      = 11
	secDataCount = 12
	secTag       = 13
)

// sections lists the known sections in the order that modules must have.
func sections() []sectionKind {
	return []sectionKind{
		{secType, "type", (*decoder).types},
		{secImport, "import", (*decoder).imports},
		{secFunction, "function", (*decoder).functions},
		{secTable, "table", (*decoder).tables},
		{secMemory, "memory", (*decoder).memories},
		{secTag, "tag", (*decoder).tags},
		{secGlobal, "global", (*decoder).globals},
		{secExport, "export", (*decoder).exports},
		{secStart, "start", (*decoder).start},
		{secElement, "element", (*decoder).elements},
		{secDataCount, "data count", (*decoder).dataCount},
		{secCode, "code", (*decoder).code},
		{secData, "data", (*decoder).data},
	}
}

type sectionKind struct {
	id   byte
	name string
	read func(*decoder, *cursor)
}

type decoder struct {
	m     *Module
	caps  Caps
	instr *InstrReader

	expr         []byte // scratch of constExpr
	elementItems int64
	locals       int64
}

// Decode decodes and checks a module. It returns a *DecodeError for bytes that are no module it accepts, or a
// *limits.Error for one over a cap. It allocates no more than a small multiple of len(b), whatever b says.
//
// Not checked are the types of operands and of constant expressions, the alignment of memory accesses, mutability at
// global.set, and what imports resolve to: the compiler checks these.
func Decode(b []byte, caps Caps) (*Module, error) {
	d := &decoder{m: &Module{}, caps: caps, instr: NewInstrReader()}
	c := &cursor{buf: b, section: "header"}
	if c.check(NameModuleBytes, int64(len(b)), caps.ModuleBytes) {
		header(c)
	}
	rank := -1
	kinds := sections()
	for !c.atEnd() {
		rank = d.section(c, kinds, rank)
	}
	if c.err != nil {
		return nil, c.err
	}
	if err := d.validate(len(b)); err != nil {
		return nil, err
	}
	return d.m, nil
}

func header(c *cursor) {
	magic, version := c.bytes(4), c.bytes(4)
	switch {
	case c.err != nil:
	case string(magic) != "\x00asm":
		c.pos = 0
		c.fail("starts with %q, want a WebAssembly module", magic)
	case version[2] == 1 && version[3] == 0:
		c.stop(&DecodeError{Offset: 4, Section: c.section, Msg: ErrComponent.Error(), Err: ErrComponent})
	case string(version) != "\x01\x00\x00\x00":
		c.pos = 4
		c.fail("version %#x, want 1", version)
	}
}

// section reads one section and returns the rank of the last known one.
func (d *decoder) section(c *cursor, kinds []sectionKind, rank int) int {
	id := c.byte()
	size := c.u32()
	if id == secCustom {
		s := c.sub(size, "custom")
		d.custom(s)
		c.join(s)
		return rank
	}
	for r, k := range kinds {
		if k.id != id {
			continue
		}
		if r <= rank {
			c.fail("%s section is repeated or out of order", k.name)
			return rank
		}
		s := c.sub(size, k.name)
		k.read(d, s)
		c.join(s)
		return r
	}
	c.fail("unknown section %d", id)
	return rank
}

// join ends the section s inside c.
func (c *cursor) join(s *cursor) {
	if s.err == nil && !s.atEnd() {
		s.fail("%d bytes too many", s.left())
	}
	if s.err != nil {
		c.stop(s.err)
	}
}

func (d *decoder) custom(c *cursor) {
	name := c.name(d.caps.NameBytes)
	c.check(NameCustomSections, int64(len(d.m.Customs))+1, d.caps.CustomSections)
	d.m.Customs = append(d.m.Customs, Custom{Name: name, Bytes: c.bytes(c.left())})
}

func (d *decoder) types(c *cursor) {
	n := c.count(3, NameTypes, d.caps.Types)
	d.m.Types = make([]FuncType, 0, n)
	for range n {
		d.m.Types = append(d.m.Types, c.funcType(&d.caps))
	}
}

func (d *decoder) imports(c *cursor) {
	n := c.count(4, NameImports, d.caps.Imports)
	d.m.Imports = make([]Import, 0, n)
	for range n {
		d.m.Imports = append(d.m.Imports, d.imported(c))
	}
}

func (d *decoder) imported(c *cursor) Import {
	i := Import{Module: c.name(d.caps.NameBytes), Name: c.name(d.caps.NameBytes)}
	i.Kind = ExternKind(c.byte())
	switch i.Kind {
	case KindFunc:
		i.Func = c.u32()
	case KindTable:
		i.Table = c.table()
	case KindMemory:
		i.Memory = c.memory()
	case KindGlobal:
		i.Global = c.globalType()
	default:
		c.kind(i.Kind)
	}
	return i
}

// kind refuses an unknown kind of import or export.
func (c *cursor) kind(k ExternKind) {
	c.pos--
	if k == 4 {
		c.refuse(FeatureExceptions, "tag")
		return
	}
	c.fail("undefined kind %#02x", byte(k))
}

func (d *decoder) functions(c *cursor) {
	n := c.count(1, NameFunctions, d.caps.Functions)
	d.m.Functions = make([]uint32, n)
	for i := range d.m.Functions {
		d.m.Functions[i] = c.u32()
	}
}

func (d *decoder) tables(c *cursor) {
	for range c.count(3, NameTables, d.caps.Tables) {
		d.m.Tables = append(d.m.Tables, c.table())
	}
}

func (d *decoder) memories(c *cursor) {
	n := c.u32()
	if n > 1 {
		c.refuse(FeatureMultiMemory, fmt.Sprintf("%d memories", n))
	}
	if n == 1 {
		d.m.Memories = []Limits{c.memory()}
	}
}

func (d *decoder) tags(c *cursor) {
	c.refuse(FeatureExceptions, "tag section")
}

func (d *decoder) globals(c *cursor) {
	n := c.count(4, NameGlobals, d.caps.Globals)
	d.m.Globals = make([]Global, 0, n)
	for range n {
		t := c.globalType()
		d.m.Globals = append(d.m.Globals, Global{Type: t, Init: d.constExpr(c)})
	}
}

func (d *decoder) exports(c *cursor) {
	n := c.count(3, NameExports, d.caps.Exports)
	d.m.Exports = make([]Export, 0, n)
	for range n {
		e := Export{Name: c.name(d.caps.NameBytes)}
		if e.Kind = ExternKind(c.byte()); e.Kind > KindGlobal {
			c.kind(e.Kind)
		}
		e.Index = c.u32()
		d.m.Exports = append(d.m.Exports, e)
	}
}

func (d *decoder) start(c *cursor) {
	f := c.u32()
	d.m.Start = &f
}

func (d *decoder) dataCount(c *cursor) {
	n := c.u32()
	c.check(NameDataSegments, int64(n), d.caps.DataSegments)
	d.m.DataCount = &n
}
