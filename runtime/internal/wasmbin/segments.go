package wasmbin

import "fmt"

// elements reads the element section. The flags of a segment tell its mode and the form of its items:
//
//	bit 0: passive or declarative   bit 1: bit 0 set: declarative; else: has a table index   bit 2: items are expressions
//
// A segment with neither bit 0 nor bit 1 has no type of its own: it holds functions.
func (d *decoder) elements(c *cursor) {
	n := c.count(2, NameElements, d.caps.Elements)
	d.m.Elements = make([]Element, 0, n)
	for range n {
		d.m.Elements = append(d.m.Elements, d.element(c))
	}
}

func (d *decoder) element(c *cursor) Element {
	flags := c.u32()
	if flags > 7 {
		c.fail("undefined flags %#x of an element segment", flags)
		return Element{}
	}
	e := Element{Type: FuncRef}
	switch flags & 3 {
	case 1:
		e.Mode = Passive
	case 3:
		e.Mode = Declarative
	case 2:
		e.Table = c.u32()
	}
	if e.Mode == Active {
		e.Offset = d.constExpr(c)
	}
	exprs := flags&4 != 0
	if flags&3 != 0 {
		e.Type = c.elementType(exprs)
	}
	d.items(c, &e, exprs)
	return e
}

// elementType reads a reference type, or for segments that list functions, the kind 0 that stands for them.
func (c *cursor) elementType(exprs bool) ValueType {
	if exprs {
		return c.refType()
	}
	if k := c.byte(); k != 0 {
		c.pos--
		c.fail("undefined kind %#02x of an element segment", k)
	}
	return FuncRef
}

func (d *decoder) items(c *cursor, e *Element, exprs bool) {
	itemBytes := 1
	if exprs {
		itemBytes = 3
	}
	n := c.count(itemBytes, NameElementItems, d.caps.ElementItems-d.elementItems)
	d.elementItems += int64(n)
	if !exprs {
		e.Funcs = make([]uint32, n)
		for i := range e.Funcs {
			e.Funcs[i] = c.u32()
		}
		return
	}
	e.Exprs = make([]ConstExpr, n)
	for i := range e.Exprs {
		e.Exprs[i] = d.constExpr(c)
	}
}

// data reads the data section. Flags: 0 active, 1 passive, 2 active with a memory index.
func (d *decoder) data(c *cursor) {
	n := c.count(2, NameDataSegments, d.caps.DataSegments)
	d.m.Data = make([]Data, 0, n)
	for range n {
		var s Data
		switch flags := c.u32(); flags {
		case 0:
		case 1:
			s.Mode = Passive
		case 2:
			if i := c.u32(); i != 0 {
				c.refuse(FeatureMultiMemory, fmt.Sprintf("memory index %d", i))
			}
		default:
			c.fail("undefined flags %#x of a data segment", flags)
		}
		if s.Mode == Active {
			s.Offset = d.constExpr(c)
		}
		s.Bytes = c.bytes(int(c.u32()))
		d.m.Data = append(d.m.Data, s)
	}
}

// code reads the code section but leaves the instructions to validate, which needs the sections that follow.
func (d *decoder) code(c *cursor) {
	n := c.count(3, NameFunctions, d.caps.Functions)
	d.m.Code = make([]Body, 0, n)
	for range n {
		size := c.u32()
		if !c.check(NameBodyBytes, int64(size), d.caps.BodyBytes) {
			return
		}
		b := c.sub(size, "code")
		d.m.Code = append(d.m.Code, d.body(b))
		if b.err != nil {
			c.stop(b.err)
		}
	}
}

func (d *decoder) body(c *cursor) Body {
	n := c.count(2, NameLocals, d.caps.Locals)
	var b Body
	if n > 0 {
		b.Locals = make([]LocalGroup, 0, n)
	}
	var total int64
	for range n {
		g := LocalGroup{Count: c.u32()}
		total += int64(g.Count)
		c.check(NameLocals, total, d.caps.Locals)
		g.Type = c.valueType()
		b.Locals = append(b.Locals, g)
	}
	d.locals += total
	c.check(NameModuleLocals, d.locals, d.caps.ModuleLocals)
	b.Offset = c.base + c.pos
	b.Expr = c.bytes(c.left())
	return b
}
