package wasmbin

import (
	"fmt"

	"github.com/longshore/longshore/limits"
)

// spaces are the sizes of the index spaces, imports included.
type spaces struct {
	types, funcs, tables, memories, globals, elements, data uint32
	mutableGlobals                                          int64
	funcType                                                []uint32 // type index of each function
}

// validate checks what can be checked only when all sections are known: sums of imported and defined, and indices.
func (d *decoder) validate(moduleBytes int) error {
	c := &cursor{base: moduleBytes, section: "import"}
	s := d.spaces(c)
	d.sums(c, s)
	c.section = "code"
	if len(d.m.Code) != len(d.m.Functions) {
		c.fail("%d function bodies for %d functions", len(d.m.Code), len(d.m.Functions))
	}
	d.checkGlobals(c, s)
	d.checkExports(c, s)
	d.checkElements(c, s)
	d.checkData(c, s)
	if c.err != nil {
		return c.err
	}
	v := newBodyValidator(d.m, &d.caps, s, d.instr)
	for i := range d.m.Code {
		if err := v.body(i); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) spaces(c *cursor) *spaces {
	m := d.m
	s := &spaces{
		types: uint32(len(m.Types)), memories: uint32(len(m.Memories)),
		elements: uint32(len(m.Elements)), data: uint32(len(m.Data)),
		tables: uint32(len(m.Tables)), globals: uint32(len(m.Globals)),
		funcType: make([]uint32, 0, len(m.Imports)+len(m.Functions)),
	}
	for i := range m.Imports {
		switch im := &m.Imports[i]; im.Kind {
		case KindFunc:
			c.index("type", im.Func, s.types)
			s.funcType = append(s.funcType, im.Func)
		case KindTable:
			s.tables++
		case KindMemory:
			s.memories++
		case KindGlobal:
			s.globals++
			s.mutableGlobals += asInt(im.Global.Mutable)
		}
	}
	for i := range m.Globals {
		s.mutableGlobals += asInt(m.Globals[i].Type.Mutable)
	}
	c.section = "function"
	for _, t := range m.Functions {
		c.index("type", t, s.types)
	}
	s.funcType = append(s.funcType, m.Functions...)
	s.funcs = uint32(len(s.funcType))
	return s
}

func asInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// sums checks the caps on imported and defined things together.
func (d *decoder) sums(c *cursor, s *spaces) {
	c.check(NameFunctions, int64(s.funcs), d.caps.Functions)
	c.check(NameTables, int64(s.tables), d.caps.Tables)
	c.check(NameGlobals, int64(s.globals), d.caps.Globals)
	c.check(NameMutableGlobals, s.mutableGlobals, d.caps.MutableGlobals)
	if s.memories > 1 {
		c.refuse(FeatureMultiMemory, fmt.Sprintf("%d memories", s.memories))
	}
	var elements int64
	for i := range d.m.Tables {
		elements += int64(d.m.Tables[i].Limits.Min)
	}
	c.check(limits.NameTableElements, elements, d.caps.TableElements)
}

// index checks that an index is below the size of its space.
func (c *cursor) index(space string, i, size uint32) bool {
	if i < size {
		return true
	}
	c.fail("%s %d doesn't exist, there are %d", space, i, size)
	return false
}

func (d *decoder) checkGlobals(c *cursor, s *spaces) {
	c.section = "global"
	for i := range d.m.Globals {
		d.checkConst(c, s, d.m.Globals[i].Init)
	}
}

// checkConst checks the indices of a constant expression, which constExpr has read before.
func (d *decoder) checkConst(c *cursor, s *spaces, e ConstExpr) {
	if c.err != nil {
		return
	}
	d.instr.Reset(e, 0, c.section)
	var i Instr
	for d.instr.Next(&i) {
		switch i.Op {
		case OpGlobalGet:
			c.index("global", i.X, s.globals)
		case OpRefFunc:
			c.index("function", i.X, s.funcs)
		case OpEnd:
			return
		default:
		}
	}
	c.stop(d.instr.Err())
}

func (d *decoder) checkExports(c *cursor, s *spaces) {
	c.section = "export"
	seen := make(map[string]struct{}, len(d.m.Exports))
	for i := range d.m.Exports {
		e := &d.m.Exports[i]
		switch e.Kind {
		case KindFunc:
			c.index("function", e.Index, s.funcs)
		case KindTable:
			c.index("table", e.Index, s.tables)
		case KindMemory:
			c.index("memory", e.Index, s.memories)
		case KindGlobal:
			c.index("global", e.Index, s.globals)
		}
		if _, ok := seen[e.Name]; ok {
			c.fail("name %.80q is exported twice", e.Name)
		}
		seen[e.Name] = struct{}{}
	}
	if d.m.Start != nil {
		d.checkStart(c, s, *d.m.Start)
	}
}

func (d *decoder) checkStart(c *cursor, s *spaces, f uint32) {
	c.section = "start"
	if !c.index("function", f, s.funcs) || c.err != nil {
		return
	}
	if t := &d.m.Types[s.funcType[f]]; len(t.Params)+len(t.Results) > 0 {
		c.fail("start function %d has parameters or results", f)
	}
}

func (d *decoder) checkElements(c *cursor, s *spaces) {
	c.section = "element"
	for i := range d.m.Elements {
		e := &d.m.Elements[i]
		if e.Mode == Active {
			c.index("table", e.Table, s.tables)
			d.checkConst(c, s, e.Offset)
		}
		for _, f := range e.Funcs {
			c.index("function", f, s.funcs)
		}
		for _, x := range e.Exprs {
			d.checkConst(c, s, x)
		}
	}
}

func (d *decoder) checkData(c *cursor, s *spaces) {
	c.section = "data"
	if n := d.m.DataCount; n != nil && *n != s.data {
		c.fail("%d data segments, the data count section says %d", s.data, *n)
	}
	for i := range d.m.Data {
		if d.m.Data[i].Mode == Active {
			c.index("memory", 0, s.memories)
			d.checkConst(c, s, d.m.Data[i].Offset)
		}
	}
}
