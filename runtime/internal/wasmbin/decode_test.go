package wasmbin

import (
	"errors"
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

// header begins every module.
const headerBytes = "\x00asm\x01\x00\x00\x00"

// module returns the encoding of a module of the given raw sections.
func rawModule(sections ...string) []byte {
	b := []byte(headerBytes)
	for _, s := range sections {
		b = append(b, s...)
	}
	return b
}

// rawSection returns the encoding of a section.
func rawSection(id byte, content string) string {
	return string(AppendName([]byte{id}, content))
}

// small returns a module with one of everything: a type, an imported and a defined function, a table, a memory, two
// globals, an export, a start function, segments, and code that does nothing.
func small() *Module {
	zero, one := uint32(1), uint32(1)
	return &Module{
		Types: []FuncType{{}, {Params: []ValueType{I32}, Results: []ValueType{I64, F64}}},
		Imports: []Import{
			{Module: "env", Name: "f", Kind: KindFunc, Func: 1},
			{Module: "env", Name: "g", Kind: KindGlobal, Global: GlobalType{Type: I32}},
		},
		Functions: []uint32{0},
		Tables:    []Table{{Type: FuncRef, Limits: Limits{Min: 1, Max: 2, HasMax: true}}},
		Memories:  []Limits{{Min: 1}},
		Globals:   []Global{{Type: GlobalType{Type: I64, Mutable: true}, Init: ConstI64(-1)}},
		Exports:   []Export{{Name: "memory", Kind: KindMemory}, {Name: "f", Kind: KindFunc, Index: 1}},
		Start:     &zero,
		Elements: []Element{
			{Type: FuncRef, Offset: ConstI32(0), Funcs: []uint32{0}},
			{Mode: Passive, Type: ExternRef, Exprs: []ConstExpr{{0xd0, 0x6f, 0x0b}}},
			{Mode: Declarative, Type: FuncRef, Funcs: []uint32{1}},
		},
		DataCount: &one,
		Code:      []Body{{Locals: []LocalGroup{{2, I32}, {1, V128}}, Expr: []byte{0x0b}}},
		Data:      []Data{{Offset: ConstExpr{0x23, 0, 0x0b}, Bytes: []byte("hello")}},
		Customs:   []Custom{{Name: "producers", Bytes: []byte{1, 2, 3}}},
	}
}

// withCode returns small with other instructions in its function.
func withCode(expr ...byte) *Module {
	m := small()
	m.Code[0].Expr = append(expr, 0x0b)
	return m
}

func TestDecode(t *testing.T) {
	t.Run("EncodeGivesTheModuleBack", func(t *testing.T) {
		b := small().Encode()
		m, err := Decode(b, DefaultCaps())
		require.NoError(t, err)
		require.Equal(t, b, m.Encode())
		m.Code[0].Offset = 0
		require.Equal(t, small(), m)
	})
	t.Run("EveryCutIsRefused", func(t *testing.T) {
		b := small().Encode()
		for n := range len(b) {
			m, err := Decode(b[:n], DefaultCaps())
			if err == nil {
				require.NotEqual(t, b, m.Encode(), "cut at %d", n)
			}
			require.NotPanics(t, func() { _, _ = Decode(b[n:], DefaultCaps()) })
		}
	})
	t.Run("ComponentIsToldApart", func(t *testing.T) {
		_, err := Decode([]byte("\x00asm\x0d\x00\x01\x00"), DefaultCaps())
		require.ErrorIs(t, err, ErrComponent)
	})
	t.Run("ErrorSaysWhere", func(t *testing.T) {
		_, err := Decode(withCode(0x20, 9).Encode(), DefaultCaps())
		var de *DecodeError
		require.ErrorAs(t, err, &de)
		require.Equal(t, "code", de.Section)
		require.Equal(t, byte(0x0b), withCode(0x20, 9).Encode()[de.Offset])
		require.ErrorContains(t, err, "local 9 doesn't exist, there are 3")
	})
}

func TestDecodeRefusesFeaturesByName(t *testing.T) {
	code := func(b ...byte) []byte { return withCode(b...).Encode() }
	tests := map[string]struct {
		feature string
		wasm    []byte
	}{
		"shared memory":         {FeatureThreads, rawModule(rawSection(secMemory, "\x01\x03\x01\x02"))},
		"atomics":               {FeatureThreads, code(0xfe, 0x03, 0x00)},
		"64-bit memory":         {FeatureMemory64, rawModule(rawSection(secMemory, "\x01\x04\x01"))},
		"two memories":          {FeatureMultiMemory, rawModule(rawSection(secMemory, "\x02\x00\x01\x00\x01"))},
		"memory index":          {FeatureMultiMemory, code(0x3f, 0x01)},
		"memory argument index": {FeatureMultiMemory, code(0x41, 0, 0x28, 0x42, 0x01, 0x00)},
		"data for memory 1":     {FeatureMultiMemory, rawModule(rawSection(secData, "\x01\x02\x01\x41\x00\x0b\x00"))},
		"struct type":           {FeatureGC, rawModule(rawSection(secType, "\x01\x5f\x00\x00"))},
		"GC instruction":        {FeatureGC, code(0xfb, 0x00)},
		"any reference":         {FeatureGC, rawModule(rawSection(secTable, "\x01\x6e\x00\x01"))},
		"typed reference":       {FeatureFuncRefs, rawModule(rawSection(secTable, "\x01\x64\x00\x00\x01"))},
		"call_ref":              {FeatureFuncRefs, code(0x14, 0x00)},
		"throw":                 {FeatureExceptions, code(0x08, 0x00)},
		"try_table":             {FeatureExceptions, code(0x1f, 0x40, 0x00)},
		"tag section":           {FeatureExceptions, rawModule(rawSection(secTag, "\x01\x00\x00"))},
		"imported tag":          {FeatureExceptions, rawModule(rawSection(secImport, "\x01\x00\x00\x04\x00\x00"))},
		"relaxed SIMD":          {FeatureRelaxedSIMD, code(0xfd, 0x80, 0x02)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Decode(tt.wasm, DefaultCaps())
			var de *DecodeError
			require.ErrorAs(t, err, &de)
			require.Equal(t, tt.feature, de.Feature)
			require.ErrorContains(t, err, tt.feature)
		})
	}
}

func TestDecodeRefusesWhatIsOutOfRange(t *testing.T) {
	edit := func(f func(m *Module)) *Module {
		m := small()
		f(m)
		return m
	}
	tests := map[string]struct {
		m    *Module
		want string
	}{
		"local":              {withCode(0x20, 3), "local 3"},
		"global":             {withCode(0x23, 2), "global 2"},
		"function":           {withCode(0x10, 2), "function 2"},
		"tail call":          {withCode(0x12, 2), "function 2"},
		"function reference": {withCode(0xd2, 2), "function 2"},
		"indirect type":      {withCode(0x41, 0, 0x11, 2, 0), "type 2"},
		"indirect table":     {withCode(0x41, 0, 0x11, 0, 1), "table 1"},
		"block type":         {withCode(0x02, 2, 0x0b), "type 2"},
		"label":              {withCode(0x0c, 1), "label 1"},
		"label in a block":   {withCode(0x02, 0x40, 0x0c, 2, 0x0b), "label 2"},
		"br_table label":     {withCode(0x41, 0, 0x0e, 1, 0, 1), "label 1"},
		"table":              {withCode(0x25, 1), "table 1"},
		"table copy":         {withCode(0xfc, 14, 0, 1), "table 1"},
		"element segment":    {withCode(0xfc, 13, 3), "element segment 3"},
		"data segment":       {withCode(0xfc, 9, 1), "data segment 1"},
		"else without if":    {withCode(0x05), "else without if"},
		"code after the end": {withCode(0x0b, 0x01), "after the end"},
		"undefined opcode":   {withCode(0x27), "undefined instruction 0x27"},
		"undefined SIMD":     {withCode(0xfd, 0x9a, 0x01), "undefined instruction 0xfd 0x9a"},
		"no memory": {edit(func(m *Module) {
			*m = *withCode(0x3f, 0)
			m.Memories, m.Data, m.Exports = nil, []Data{{Mode: Passive}}, nil
		}), "memory 0"},
		"no data count":      {edit(func(m *Module) { *m = *withCode(0xfc, 9, 0); m.DataCount = nil }), "data count"},
		"imported type":      {edit(func(m *Module) { m.Imports[0].Func = 2 }), "type 2"},
		"function type":      {edit(func(m *Module) { m.Functions[0] = 2 }), "type 2"},
		"export function":    {edit(func(m *Module) { m.Exports[1].Index = 2 }), "function 2"},
		"export global":      {edit(func(m *Module) { m.Exports[1] = Export{Name: "g", Kind: KindGlobal, Index: 2} }), "global 2"},
		"export twice":       {edit(func(m *Module) { m.Exports[1].Name = "memory" }), "exported twice"},
		"start":              {edit(func(m *Module) { *m.Start = 2 }), "function 2"},
		"start's type":       {edit(func(m *Module) { *m.Start = 0 }), "parameters or results"},
		"element function":   {edit(func(m *Module) { m.Elements[0].Funcs[0] = 2 }), "function 2"},
		"element table":      {edit(func(m *Module) { m.Elements[0].Table = 1 }), "table 1"},
		"element expression": {edit(func(m *Module) { m.Elements[1].Exprs[0] = ConstExpr{0xd2, 2, 0x0b} }), "function 2"},
		"initializer":        {edit(func(m *Module) { m.Globals[0].Init = ConstExpr{0x23, 2, 0x0b} }), "global 2"},
		"constant with load": {edit(func(m *Module) { m.Globals[0].Init = ConstExpr{0x41, 0, 0x28, 0, 0, 0x0b} }), "constant expression"},
		"data count":         {edit(func(m *Module) { *m.DataCount = 2 }), "1 data segments"},
		"bodies":             {edit(func(m *Module) { m.Code = nil }), "0 function bodies for 1 functions"},
		"maximum":            {edit(func(m *Module) { m.Tables[0].Limits.Min = 3 }), "below the minimum"},
		"memory pages":       {edit(func(m *Module) { m.Memories[0].Min = 65537 }), "65537 pages"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Decode(tt.m.Encode(), DefaultCaps())
			var de *DecodeError
			require.ErrorAs(t, err, &de)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestDecodeMemoryIsBounded(t *testing.T) {
	huge := "\xff\xff\xff\xff\x0f"
	tests := map[string][]byte{
		"locals":       rawModule(rawSection(secType, "\x01\x60\x00\x00"), rawSection(secFunction, "\x01\x00"), rawSection(secCode, "\x01\x08\x01"+huge+"\x7f\x0b")),
		"types":        rawModule(rawSection(secType, huge+"\x60\x00\x00")),
		"parameters":   rawModule(rawSection(secType, "\x01\x60"+huge)),
		"imports":      rawModule(rawSection(secImport, huge)),
		"functions":    rawModule(rawSection(secFunction, huge)),
		"table":        rawModule(rawSection(secTable, "\x01\x70\x00"+huge)),
		"globals":      rawModule(rawSection(secGlobal, huge)),
		"exports":      rawModule(rawSection(secExport, huge)),
		"elements":     rawModule(rawSection(secElement, huge)),
		"items":        rawModule(rawSection(secElement, "\x01\x01\x00"+huge)),
		"bodies":       rawModule(rawSection(secCode, huge)),
		"data":         rawModule(rawSection(secData, huge)),
		"data bytes":   rawModule(rawSection(secData, "\x01\x01"+huge)),
		"section size": rawModule("\x01" + huge),
		"br_table":     withCode(append([]byte{0x41, 0, 0x0e}, huge...)...).Encode(),
	}
	for name, wasm := range tests {
		t.Run(name, func(t *testing.T) {
			var err error
			grown := allocated(func() { _, err = Decode(wasm, DefaultCaps()) })
			require.Error(t, err)
			require.LessOrEqual(t, grown, memoryBound(wasm))
		})
	}
}

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	f()
	goruntime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// memoryBound is what decoding may allocate: the small multiple that Decode promises.
func memoryBound(wasm []byte) uint64 { return 256*limits.KiB + 64*uint64(len(wasm)) }

func FuzzDecode(f *testing.F) {
	f.Add(small().Encode())
	f.Add(withCode(0x02, 0x40, 0x41, 0, 0x0e, 1, 0, 1, 0x0b, 0xfd, 0x0c, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 0x1a).Encode())
	f.Add(rawModule(rawSection(secData, "\x01\x02\x80\x00\x41\x00\x0b\x00")))
	f.Fuzz(func(t *testing.T, wasm []byte) {
		var m *Module
		var err error
		if grown := allocated(func() { m, err = Decode(wasm, DefaultCaps()) }); grown > memoryBound(wasm) {
			t.Fatalf("%d bytes allocated for a module of %d", grown, len(wasm))
		}
		if err != nil {
			var de *DecodeError
			var le *limits.Error
			require.True(t, errors.As(err, &de) || errors.As(err, &le), "error of type %T", err)
			return
		}
		once := m.Encode()
		again, err := Decode(once, DefaultCaps())
		require.NoError(t, err, "an encoded module decodes")
		require.Equal(t, once, again.Encode(), "encoding is stable")
	})
}
