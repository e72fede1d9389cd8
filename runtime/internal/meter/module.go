package meter

import (
	"fmt"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime/internal/wasmbin"
)

// resets reports whether the declarations of m allow Info.FaithfulReset.
func resets(m *wasmbin.Module) bool {
	for i := range m.Imports {
		switch im := &m.Imports[i]; im.Kind {
		case wasmbin.KindFunc:
		case wasmbin.KindTable, wasmbin.KindMemory:
			return false
		case wasmbin.KindGlobal:
			if im.Global.Mutable {
				return false
			}
		}
	}
	for i := range m.Exports {
		if m.Exports[i].Kind == wasmbin.KindTable {
			return false
		}
	}
	for i := range m.Globals {
		if t := m.Globals[i].Type; t.Mutable && !number(t.Type) {
			return false
		}
	}
	return true
}

func number(t wasmbin.ValueType) bool {
	switch t {
	case wasmbin.I32, wasmbin.I64, wasmbin.F32, wasmbin.F64:
		return true
	case wasmbin.V128, wasmbin.FuncRef, wasmbin.ExternRef:
	}
	return false
}

// clampMemory lowers the maximum of the module's memory. An imported memory has the bounds of its owner.
func clampMemory(m *wasmbin.Module, limitBytes int64, info *Info) error {
	if len(m.Memories) == 0 {
		return nil
	}
	l := &m.Memories[0]
	if err := limits.Check(limits.NameMemory, int64(l.Min)*pageBytes, limitBytes); err != nil {
		return err
	}
	pages := maxPages(limitBytes)
	if !l.HasMax || int64(l.Max) > pages {
		l.Max, l.HasMax = uint32(pages), true
	}
	info.HasMemory, info.MemoryMin, info.MemoryMax = true, int64(l.Min)*pageBytes, int64(l.Max)*pageBytes
	return nil
}

// maxPages gives the pages of a limit in bytes, at most those of a 32-bit address space.
func maxPages(limitBytes int64) int64 { return min(max(limitBytes, 0)/pageBytes, 1<<16) }

// clampTables lowers the maxima of the module's tables so that together they stay within the limit: what their minima
// leave of it is shared out evenly. What active segments write into them at each instantiation is bounded alike.
func clampTables(m *wasmbin.Module, limit int64) error {
	var sum int64
	for i := range m.Tables {
		sum += int64(m.Tables[i].Limits.Min)
	}
	if err := limits.Check(limits.NameTableElements, sum, limit); err != nil {
		return err
	}
	var items int64
	for i := range m.Elements {
		if e := &m.Elements[i]; e.Mode == wasmbin.Active {
			items += int64(len(e.Funcs) + len(e.Exprs))
		}
	}
	if err := limits.Check(wasmbin.NameElementItems, items, limit); err != nil {
		return err
	}
	for i := range m.Tables {
		l := &m.Tables[i].Limits
		most := int64(l.Min) + (limit-sum)/int64(len(m.Tables))
		if !l.HasMax || int64(l.Max) > most {
			l.Max, l.HasMax = uint32(most), true
		}
	}
	return nil
}

// addGlobals appends the meter's globals and exports every mutable one.
func addGlobals(m *wasmbin.Module, a *added, info *Info) {
	first := uint32(m.ImportCount(wasmbin.KindGlobal))
	m.Globals = append(
		m.Globals,
		wasmbin.Global{Type: wasmbin.GlobalType{Type: wasmbin.I64, Mutable: true}, Init: wasmbin.ConstI64(int64(Word(0, a.callDepth)))},
		wasmbin.Global{Type: wasmbin.GlobalType{Type: wasmbin.I32, Mutable: true}, Init: wasmbin.ConstI32(0)},
	)
	i := uint32(0)
	for j := range m.Imports {
		if im := &m.Imports[j]; im.Kind == wasmbin.KindGlobal {
			exportGlobal(m, i, im.Global, info)
			i++
		}
	}
	for j := range m.Globals {
		exportGlobal(m, first+uint32(j), m.Globals[j].Type, info)
	}
	info.FuelGlobal, info.MemoryFailedGlobal = globalName(a.word), globalName(a.memoryFailed)
}

func globalName(i uint32) string { return fmt.Sprintf("%sg%d", ExportPrefix, i) }

func exportGlobal(m *wasmbin.Module, i uint32, t wasmbin.GlobalType, info *Info) {
	if !t.Mutable {
		return
	}
	info.Globals = append(info.Globals, globalName(i))
	m.Exports = append(m.Exports, wasmbin.Export{Name: globalName(i), Kind: wasmbin.KindGlobal, Index: i})
}

// shift makes room for the yield import in everything but code: function indices from there on grow by one.
func shift(m *wasmbin.Module, a *added) {
	for i := range m.Exports {
		if e := &m.Exports[i]; e.Kind == wasmbin.KindFunc {
			e.Index = a.function(e.Index)
		}
	}
	if m.Start != nil {
		s := a.function(*m.Start)
		m.Start = &s
	}
	for i := range m.Globals {
		m.Globals[i].Init = shiftConst(m.Globals[i].Init, a)
	}
	for i := range m.Elements {
		e := &m.Elements[i]
		e.Offset = shiftConst(e.Offset, a)
		for j := range e.Funcs {
			e.Funcs[j] = a.function(e.Funcs[j])
		}
		for j := range e.Exprs {
			e.Exprs[j] = shiftConst(e.Exprs[j], a)
		}
	}
	shiftNames(m, a)
}

// shiftConst returns e with its functions shifted.
func shiftConst(e wasmbin.ConstExpr, a *added) wasmbin.ConstExpr {
	if !e.HasFunc() {
		return e
	}
	r := wasmbin.NewInstrReader()
	r.Reset(e, 0, "constant expression")
	var out code
	var in wasmbin.Instr
	for r.Next(&in) {
		if in.Op == wasmbin.OpRefFunc {
			out.index(in.Op, a.function(in.X))
		} else {
			out.raw(in.Raw)
		}
	}
	return wasmbin.ConstExpr(out)
}

// shiftNames keeps the names of functions alone of the custom sections: others may hold offsets into the old code.
func shiftNames(m *wasmbin.Module, a *added) {
	var kept []wasmbin.Custom
	for _, c := range m.Customs {
		if c.Name != nameSection {
			continue
		}
		if b := wasmbin.FunctionNames(c.Bytes, a.yield+uint32(len(m.Functions)), a.yield, 1); b != nil {
			kept = []wasmbin.Custom{{Name: nameSection, Bytes: b}}
		}
	}
	m.Customs = kept
}

// dropInit takes out what runs or writes at instantiation, except for element segments. An active data segment becomes
// an empty passive one, which is what it is after instantiation anyway, or goes for good.
func dropInit(m *wasmbin.Module, keepData bool, info *Info) error {
	if m.Start != nil {
		info.StartExport = ExportPrefix + "start"
		m.Exports = append(m.Exports, wasmbin.Export{Name: info.StartExport, Kind: wasmbin.KindFunc, Index: *m.Start})
		m.Start = nil
	}
	for i := range m.Data {
		d := &m.Data[i]
		if d.Mode != wasmbin.Active {
			continue
		}
		offset, ok := d.Offset.I32()
		if !ok {
			return fmt.Errorf("data segment %d: %w", i, ErrDataOffset)
		}
		info.DataSegments = append(info.DataSegments, DataSegment{Offset: offset, Bytes: d.Bytes})
		*d = wasmbin.Data{Mode: wasmbin.Passive}
	}
	if !keepData {
		m.Data, m.DataCount = nil, nil
	}
	return nil
}
