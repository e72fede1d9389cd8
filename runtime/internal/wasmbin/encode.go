package wasmbin

// Encode returns the encoding of m, with integers in their shortest form and custom sections last. Decode gives back
// an equal module, provided that m satisfies its caps.
func (m *Module) Encode() []byte {
	out := make([]byte, 0, m.sizeHint())
	out = append(out, "\x00asm\x01\x00\x00\x00"...)
	s := make([]byte, 0, m.codeHint()) // scratch for one section
	section := func(id byte, present bool, write func([]byte) []byte) {
		if !present {
			return
		}
		s = write(s[:0])
		out = append(AppendU32(append(out, id), uint32(len(s))), s...)
	}
	section(secType, len(m.Types) > 0, func(b []byte) []byte { return vector(b, m.Types, appendFuncType) })
	section(secImport, len(m.Imports) > 0, func(b []byte) []byte { return vector(b, m.Imports, appendImport) })
	section(secFunction, len(m.Functions) > 0, func(b []byte) []byte { return vector(b, m.Functions, appendIndexItem) })
	section(secTable, len(m.Tables) > 0, func(b []byte) []byte { return vector(b, m.Tables, appendTable) })
	section(secMemory, len(m.Memories) > 0, func(b []byte) []byte { return vector(b, m.Memories, appendLimits) })
	section(secGlobal, len(m.Globals) > 0, func(b []byte) []byte { return vector(b, m.Globals, appendGlobal) })
	section(secExport, len(m.Exports) > 0, func(b []byte) []byte { return vector(b, m.Exports, appendExport) })
	section(secStart, m.Start != nil, func(b []byte) []byte { return AppendU32(b, *m.Start) })
	section(secElement, len(m.Elements) > 0, func(b []byte) []byte { return vector(b, m.Elements, appendElement) })
	section(secDataCount, m.DataCount != nil, func(b []byte) []byte { return AppendU32(b, *m.DataCount) })
	section(secCode, len(m.Code) > 0, func(b []byte) []byte { return vector(b, m.Code, appendBody) })
	section(secData, len(m.Data) > 0, func(b []byte) []byte { return vector(b, m.Data, appendData) })
	for _, c := range m.Customs {
		section(secCustom, true, func(b []byte) []byte { return append(AppendName(b, c.Name), c.Bytes...) })
	}
	return out
}

// sizeHint guesses the size of the encoding from its largest parts.
func (m *Module) sizeHint() int {
	n := 4096 + m.codeHint()
	for i := range m.Data {
		n += len(m.Data[i].Bytes) + 8
	}
	for i := range m.Customs {
		n += len(m.Customs[i].Bytes) + 16
	}
	return n
}

// codeHint guesses the size of the code section, which most modules have as their largest.
func (m *Module) codeHint() int {
	n := 16
	for i := range m.Code {
		n += len(m.Code[i].Expr) + 8 + 6*len(m.Code[i].Locals)
	}
	return n
}

func vector[T any](b []byte, items []T, item func([]byte, *T) []byte) []byte {
	b = AppendU32(b, uint32(len(items)))
	for i := range items {
		b = item(b, &items[i])
	}
	return b
}

func appendIndexItem(b []byte, i *uint32) []byte { return AppendU32(b, *i) }

func appendValueTypes(b []byte, ts []ValueType) []byte {
	return vector(b, ts, func(b []byte, t *ValueType) []byte { return append(b, byte(*t)) })
}

func appendFuncType(b []byte, t *FuncType) []byte {
	return appendValueTypes(appendValueTypes(append(b, 0x60), t.Params), t.Results)
}

func appendLimits(b []byte, l *Limits) []byte {
	if !l.HasMax {
		return AppendU32(append(b, 0), l.Min)
	}
	return AppendU32(AppendU32(append(b, 1), l.Min), l.Max)
}

func appendTable(b []byte, t *Table) []byte { return appendLimits(append(b, byte(t.Type)), &t.Limits) }

func appendGlobalType(b []byte, t GlobalType) []byte {
	if t.Mutable {
		return append(b, byte(t.Type), 1)
	}
	return append(b, byte(t.Type), 0)
}

func appendGlobal(b []byte, g *Global) []byte { return append(appendGlobalType(b, g.Type), g.Init...) }

func appendImport(b []byte, i *Import) []byte {
	b = append(AppendName(AppendName(b, i.Module), i.Name), byte(i.Kind))
	switch i.Kind {
	case KindFunc:
		return AppendU32(b, i.Func)
	case KindTable:
		return appendTable(b, &i.Table)
	case KindMemory:
		return appendLimits(b, &i.Memory)
	default:
		return appendGlobalType(b, i.Global)
	}
}

func appendExport(b []byte, e *Export) []byte {
	return AppendU32(append(AppendName(b, e.Name), byte(e.Kind)), e.Index)
}

// appendElement uses the shortest of the eight forms, see elements.
func appendElement(b []byte, e *Element) []byte {
	var flags byte
	switch {
	case e.Mode == Passive:
		flags = 1
	case e.Mode == Declarative:
		flags = 3
	case e.Table != 0 || e.Type != FuncRef:
		flags = 2
	}
	if e.Exprs != nil {
		flags |= 4
	}
	b = append(b, flags)
	if flags&3 == 2 {
		b = AppendU32(b, e.Table)
	}
	if e.Mode == Active {
		b = append(b, e.Offset...)
	}
	if e.Exprs != nil {
		if flags&3 != 0 {
			b = append(b, byte(e.Type))
		}
		return vector(b, e.Exprs, func(b []byte, x *ConstExpr) []byte { return append(b, *x...) })
	}
	if flags&3 != 0 {
		b = append(b, 0)
	}
	return vector(b, e.Funcs, appendIndexItem)
}

func appendData(b []byte, d *Data) []byte {
	if d.Mode == Passive {
		b = append(b, 1)
	} else {
		b = append(append(b, 0), d.Offset...)
	}
	return AppendName(b, d.Bytes)
}

func appendBody(b []byte, f *Body) []byte {
	var head [2*5 + 1]byte
	locals := head[:0]
	if len(f.Locals) > 0 {
		locals = vector(make([]byte, 0, 6*len(f.Locals)+5), f.Locals, func(b []byte, g *LocalGroup) []byte {
			return append(AppendU32(b, g.Count), byte(g.Type))
		})
	} else {
		locals = append(locals, 0)
	}
	b = AppendU32(b, uint32(len(locals)+len(f.Expr)))
	return append(append(b, locals...), f.Expr...)
}
