package meter

import "github.com/longshore/longshore/runtime/internal/wasmbin"

// noteChanges adds a global that is set to 1 before each instruction that changes state which neither memory nor a
// number of Info.Globals holds: tables, segments, and mutable globals of other types. A module without such instructions
// is left as it is.
func noteChanges(m *wasmbin.Module, info *Info) {
	opaque := opaqueGlobals(m)
	note := wasmbin.Global{Type: wasmbin.GlobalType{Type: wasmbin.I32, Mutable: true}, Init: wasmbin.ConstI32(0)}
	index := uint32(m.ImportCount(wasmbin.KindGlobal) + len(m.Globals))
	r, found := wasmbin.NewInstrReader(), false
	for i := range m.Code {
		found = noteIn(r, &m.Code[i], opaque, index) || found
	}
	if found {
		m.Globals = append(m.Globals, note)
		info.ChangedGlobal = globalName(index)
	}
}

// opaqueGlobals tells of each global whether it can change and isn't a number.
func opaqueGlobals(m *wasmbin.Module) []bool {
	var opaque []bool
	for i := range m.Imports {
		if im := &m.Imports[i]; im.Kind == wasmbin.KindGlobal {
			opaque = append(opaque, im.Global.Mutable && !number(im.Global.Type))
		}
	}
	for i := range m.Globals {
		t := m.Globals[i].Type
		opaque = append(opaque, t.Mutable && !number(t.Type))
	}
	return opaque
}

// noteIn rewrites a function, if there is anything to note, and reports whether there was.
func noteIn(r *wasmbin.InstrReader, b *wasmbin.Body, opaque []bool, index uint32) bool {
	var in wasmbin.Instr
	found := false
	for r.Reset(b.Expr, 0, "code"); !found && r.Next(&in); {
		found = changes(&in, opaque)
	}
	if !found {
		return false
	}
	var out code
	for r.Reset(b.Expr, 0, "code"); r.Next(&in); {
		if changes(&in, opaque) {
			out.i32(1)
			out.index(wasmbin.OpGlobalSet, index)
		}
		out.raw(in.Raw)
	}
	b.Expr = out
	return true
}

// changes reports whether an instruction changes state that noteChanges is about.
func changes(in *wasmbin.Instr, opaque []bool) bool {
	switch in.Op {
	case wasmbin.OpTableSet, wasmbin.OpTableInit, wasmbin.OpTableCopy, wasmbin.OpTableGrow, wasmbin.OpTableFill,
		wasmbin.OpElemDrop, wasmbin.OpDataDrop:
		return true
	case wasmbin.OpGlobalSet:
		return opaque[in.X]
	default:
		return false
	}
}
