package wasmbin

import "fmt"

// valueType reads a value type.
func (c *cursor) valueType() ValueType {
	b := c.byte()
	if c.err != nil {
		return 0
	}
	switch t := ValueType(b); t {
	case I32, I64, F32, F64, V128, FuncRef, ExternRef:
		return t
	}
	c.pos--
	msg := fmt.Sprintf("value type %#02x", b)
	switch b {
	case 0x63, 0x64:
		c.refuse(FeatureFuncRefs, msg)
	case 0x69, 0x74:
		c.refuse(FeatureExceptions, msg)
	case 0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x71, 0x72, 0x73:
		c.refuse(FeatureGC, msg)
	default:
		c.fail("undefined %s", msg)
	}
	return 0
}

// refType reads a reference type.
func (c *cursor) refType() ValueType {
	t := c.valueType()
	if c.err == nil && t != FuncRef && t != ExternRef {
		c.pos--
		c.fail("value type %#02x is not a reference type", byte(t))
	}
	return t
}

// valueTypes reads a vector of value types.
func (c *cursor) valueTypes(n int) []ValueType {
	if n == 0 {
		return nil
	}
	ts := make([]ValueType, n)
	for i := range ts {
		ts[i] = c.valueType()
	}
	return ts
}

func (c *cursor) funcType(caps *Caps) FuncType {
	switch form := c.byte(); {
	case c.err != nil || form == 0x60:
	case form == 0x4e || form == 0x4f || form == 0x50 || form == 0x5e || form == 0x5f:
		c.pos--
		c.refuse(FeatureGC, fmt.Sprintf("type form %#02x", form))
	default:
		c.pos--
		c.fail("type form %#02x, want a function type (0x60)", form)
	}
	params := c.valueTypes(c.count(1, NameParams, caps.Params))
	return FuncType{Params: params, Results: c.valueTypes(c.count(1, NameResults, caps.Results))}
}

// limits reads a minimum and an optional maximum.
func (c *cursor) limits() Limits {
	flags := c.byte()
	if flags > 1 && c.err == nil {
		c.pos--
		msg := fmt.Sprintf("limits flag %#02x", flags)
		switch {
		case flags < 8 && flags&4 != 0:
			c.refuse(FeatureMemory64, msg)
		case flags < 4:
			c.refuse(FeatureThreads, msg)
		default:
			c.fail("undefined %s", msg)
		}
	}
	l := Limits{Min: c.u32(), HasMax: flags == 1}
	if l.HasMax {
		l.Max = c.u32()
		if l.Max < l.Min {
			c.fail("maximum %d is below the minimum %d", l.Max, l.Min)
		}
	}
	return l
}

// maxPages is the size of a 32-bit address space in pages of 64 KiB.
const maxPages = 1 << 16

func (c *cursor) memory() Limits {
	l := c.limits()
	if c.err == nil && max(l.Min, l.Max) > maxPages {
		c.fail("memory of %d pages, at most %d have addresses", max(l.Min, l.Max), maxPages)
	}
	return l
}

func (c *cursor) table() Table {
	if !c.atEnd() && c.buf[c.pos] == 0x40 {
		c.refuse(FeatureFuncRefs, "table with an initializer")
		return Table{}
	}
	t := c.refType()
	return Table{Type: t, Limits: c.limits()}
}

func (c *cursor) globalType() GlobalType {
	t := c.valueType()
	m := c.byte()
	if m > 1 && c.err == nil {
		c.pos--
		if m < 4 {
			c.refuse(FeatureThreads, fmt.Sprintf("global mutability %#02x", m))
		} else {
			c.fail("undefined global mutability %#02x", m)
		}
	}
	return GlobalType{Type: t, Mutable: m == 1}
}
