package meter

import (
	"bytes"
	"context"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime/internal/wasmbin"
)

var (
	i32     = []wasmbin.ValueType{wasmbin.I32}
	toI32   = wasmbin.FuncType{Results: i32}
	i32To   = wasmbin.FuncType{Params: i32}
	i32I32  = wasmbin.FuncType{Params: i32, Results: i32}
	nothing = wasmbin.FuncType{}
)

// module returns a module whose functions have their own types and are exported as "f0", "f1" and so on.
func module(functions ...wasmFunc) *wasmbin.Module {
	m := &wasmbin.Module{Memories: []wasmbin.Limits{{Min: 1}}}
	for i, f := range functions {
		m.Types = append(m.Types, f.t)
		m.Functions = append(m.Functions, uint32(i))
		m.Code = append(m.Code, wasmbin.Body{Expr: append(f.code, 0x0b)})
		m.Exports = append(m.Exports, wasmbin.Export{Name: "f" + string(rune('0'+i)), Index: uint32(i)})
	}
	return m
}

type wasmFunc struct {
	t    wasmbin.FuncType
	code []byte
}

// run instantiates m and calls f0.
func run(t *testing.T, m *wasmbin.Module, h *meterHost, args ...uint64) (results []uint64, used int64, err error) {
	t.Helper()
	return newGuest(t, m.Encode(), testOptions(), h, false).call(testOptions(), "f0", args...)
}

func ample() *meterHost { return &meterHost{slice: 1 << 20, budget: 1 << 40} }

func TestFuelCountsInstructions(t *testing.T) {
	// countdown: loop { local.get 0; i32.const 1; i32.sub; local.tee 0; br_if 0 }: 5 fuel a round.
	countdown := []byte{0x03, 0x40, 0x20, 0, 0x41, 1, 0x6b, 0x22, 0, 0x0d, 0, 0x0b}
	// arms: local.get 0; if { nop; nop } else { i32.const 1; drop; i32.const 2; drop }.
	arms := []byte{0x20, 0, 0x04, 0x40, 0x01, 0x01, 0x05, 0x41, 1, 0x1a, 0x41, 2, 0x1a, 0x0b}
	// skip: block { local.get 0; br_if 0; i32.const 1; drop }; i32.const 7; drop.
	skip := []byte{0x02, 0x40, 0x20, 0, 0x0d, 0, 0x41, 1, 0x1a, 0x0b, 0x41, 7, 0x1a}
	// table: block { block { local.get 0; br_table 0 1 }; i32.const 1; drop }.
	table := []byte{0x02, 0x40, 0x02, 0x40, 0x20, 0, 0x0e, 1, 0, 1, 0x0b, 0x41, 1, 0x1a, 0x0b}
	leaf := wasmFunc{nothing, []byte{0x41, 1, 0x1a}}
	tests := map[string]struct {
		functions []wasmFunc
		arg       uint64
		fuel      int64
	}{
		"straight line":        {[]wasmFunc{{i32To, []byte{0x41, 1, 0x41, 2, 0x6a, 0x1a}}}, 0, 4},
		"nop is free":          {[]wasmFunc{{i32To, []byte{0x01, 0x01}}}, 0, 0},
		"loop of one":          {[]wasmFunc{{i32To, countdown}}, 1, 5},
		"loop of a thousand":   {[]wasmFunc{{i32To, countdown}}, 1000, 5000},
		"then":                 {[]wasmFunc{{i32To, arms}}, 1, 2},
		"else":                 {[]wasmFunc{{i32To, arms}}, 0, 6},
		"branch taken":         {[]wasmFunc{{i32To, skip}}, 1, 4},
		"branch not taken":     {[]wasmFunc{{i32To, skip}}, 0, 6},
		"br_table to the end":  {[]wasmFunc{{i32To, table}}, 1, 2},
		"br_table to the next": {[]wasmFunc{{i32To, table}}, 0, 4},
		"return skips":         {[]wasmFunc{{i32To, []byte{0x41, 1, 0x1a, 0x0f, 0x41, 1, 0x1a}}}, 0, 3},
		"calls add up":         {[]wasmFunc{{i32To, []byte{0x10, 1, 0x10, 1}}, leaf}, 0, 6},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for _, slice := range []int64{0, 7, 1 << 20} {
				_, used, err := run(t, module(tt.functions...), &meterHost{slice: slice, budget: 1 << 40}, tt.arg)
				require.NoError(t, err)
				require.Equal(t, tt.fuel, used, "slice %d", slice)
			}
		})
	}
}

func TestFuelEndsEndlessGuests(t *testing.T) {
	endless := map[string][]byte{
		"loop":             {0x03, 0x40, 0x0c, 0, 0x0b},
		"tail recursion":   {0x12, 0},
		"br_table":         {0x03, 0x40, 0x41, 0, 0x0e, 1, 0, 0, 0x0b},
		"loop of branches": {0x03, 0x40, 0x02, 0x40, 0x41, 1, 0x0d, 1, 0x0b, 0x0b},
		"loop of a value":  {0x41, 0, 0x03, 1, 0x0c, 0, 0x0b},
		"loop of many loops": slices.Concat(
			[]byte{0x03, 0x40, 0x41, 1, 0x0d, 0}, bytes.Repeat([]byte{0x03, 0x40}, 2*outsideHeight), bytes.Repeat([]byte{0x0b}, 2*outsideHeight+1)),
	}
	for name, code := range endless {
		t.Run(name, func(t *testing.T) {
			h := &meterHost{slice: 1000, budget: 100_000}
			_, used, err := run(t, module(wasmFunc{nothing, code}, wasmFunc{i32To, nil}), h)
			require.ErrorIs(t, err, errFuel)
			require.InDelta(t, 100_000, used, 10)
		})
	}
	t.Run("doubling calls", func(t *testing.T) {
		var fs []wasmFunc // f0 calls f1 twice, f1 calls f2 twice, …: 2^30 calls, none of which loops
		for i := range byte(9) {
			fs = append(fs, wasmFunc{nothing, bytes.Repeat([]byte{0x10, i + 1}, 10)})
		}
		fs = append(fs, wasmFunc{nothing, []byte{0x01}})
		_, _, err := run(t, module(fs...), &meterHost{slice: 1000, budget: 100_000})
		require.ErrorIs(t, err, errFuel)
	})
}

func TestBulkInstructionsPayByLength(t *testing.T) {
	// f0: memory.fill(0, 1, n); f1: i32.load8_u 0
	fill := module(
		wasmFunc{i32To, []byte{0x41, 0, 0x41, 1, 0x20, 0, 0xfc, 11, 0}},
		wasmFunc{toI32, []byte{0x41, 0, 0x2d, 0, 0}},
	)
	_, used, err := run(t, fill, ample(), 8_000)
	require.NoError(t, err)
	require.Equal(t, int64(4+1_000), used)

	t.Run("BeforeTheyRun", func(t *testing.T) {
		h := &meterHost{slice: 0, budget: 500}
		g := newGuest(t, fill.Encode(), testOptions(), h, false)
		_, _, err := g.call(testOptions(), "f0", 8_000)
		require.ErrorIs(t, err, errFuel)
		got, _, err := g.call(testOptions(), "f1")
		require.NoError(t, err)
		require.Equal(t, []uint64{0}, got, "nothing was filled")
	})
	t.Run("Copy", func(t *testing.T) {
		_, used, err := run(t, module(wasmFunc{i32To, []byte{0x41, 0, 0x41, 8, 0x20, 0, 0xfc, 10, 0, 0}}), ample(), 80)
		require.NoError(t, err)
		require.Equal(t, int64(4+10), used)
	})
	t.Run("AsMuchAsLengthsCanBe", func(t *testing.T) {
		m := module(wasmFunc{i32To, []byte{0x41, 0, 0xd0, 0x70, 0x20, 0, 0xfc, 17, 0}}) // table.fill(0, null, n)
		m.Tables = []wasmbin.Table{{Type: wasmbin.FuncRef}}
		_, used, err := run(t, m, &meterHost{budget: math.MaxUint32 + 3}, math.MaxUint32)
		require.ErrorIs(t, err, errFuel)
		require.EqualValues(t, math.MaxUint32+4, used)
	})
	t.Run("TableGrow", func(t *testing.T) {
		m := module(wasmFunc{i32I32, []byte{0xd0, 0x70, 0x20, 0, 0xfc, 15, 0}})
		m.Tables = []wasmbin.Table{{Type: wasmbin.FuncRef}}
		_, used, err := run(t, m, ample(), 1000)
		require.NoError(t, err)
		require.Equal(t, int64(3+1000), used)
		got, used, err := run(t, m, ample(), math.MaxUint32)
		require.NoError(t, err)
		require.Equal(t, uint64(math.MaxUint32), got[0], "refused")
		require.Equal(t, int64(3+limits.TableElements), used, "no more than the table could hold")
	})
}

func TestMemoryGrow(t *testing.T) {
	m := module(wasmFunc{i32I32, []byte{0x20, 0, 0x40, 0}}).Encode()
	o := testOptions()
	o.MemoryBytes = 10 * pageBytes
	g := newGuest(t, m, o, ample(), false)
	require.Equal(t, int64(10*pageBytes), g.info.MemoryMax)
	failed := func() uint64 { return g.global(g.info.MemoryFailedGlobal).Get() }

	got, base, err := g.call(o, "f0", 0)
	require.NoError(t, err)
	require.Equal(t, []uint64{1}, got)
	got, used, err := g.call(o, "f0", 9)
	require.NoError(t, err)
	require.Equal(t, []uint64{1}, got)
	require.Equal(t, base+9*pageBytes/8, used)
	require.Zero(t, failed())

	for _, pages := range []uint64{1, math.MaxUint32} {
		g.global(g.info.MemoryFailedGlobal).Set(0)
		got, used, err = g.call(o, "f0", pages)
		require.NoError(t, err)
		require.Equal(t, uint64(math.MaxUint32), got[0])
		require.LessOrEqual(t, used, base, "a refusal costs nothing but its instructions")
		plausible := uint64(1)
		if pages > 10 {
			plausible = 0 // more than there could ever be
		}
		require.Equal(t, plausible, failed())
	}
}

func TestCallDepth(t *testing.T) {
	// f0(n) = n == 0 ? 0 : f0(n-1) + 1
	recursive := module(wasmFunc{i32I32, []byte{0x20, 0, 0x45, 0x04, 0x40, 0x41, 0, 0x0f, 0x0b, 0x20, 0, 0x41, 1, 0x6b, 0x10, 0, 0x41, 1, 0x6a}}).Encode()
	o := testOptions()
	o.CallDepth = 100
	g := newGuest(t, recursive, o, ample(), false)
	t.Run("EndsRecursionAtTheLimit", func(t *testing.T) {
		got, _, err := g.call(o, "f0", 99)
		require.NoError(t, err)
		require.Equal(t, []uint64{99}, got)
		_, _, err = g.call(o, "f0", 100)
		require.ErrorIs(t, err, errDepth)
	})
	t.Run("IsGivenBack", func(t *testing.T) {
		_, _, err := g.call(o, "f0", 50)
		require.NoError(t, err)
		require.Equal(t, int64(100), g.depth())
	})
	t.Run("IsClampedToWhatTheGlobalHolds", func(t *testing.T) {
		g := newGuest(t, recursive, Options{MemoryBytes: pageBytes, CallDepth: math.MaxInt64}, ample(), false)
		require.EqualValues(t, MaxCallDepth, g.depth())
	})
	t.Run("TailCallsDontNest", func(t *testing.T) {
		// f0(n): f1(); if n == 0 return; return_call f0(n-1)
		m := module(
			wasmFunc{i32To, []byte{0x10, 1, 0x20, 0, 0x45, 0x04, 0x40, 0x0f, 0x0b, 0x20, 0, 0x41, 1, 0x6b, 0x12, 0}},
			wasmFunc{nothing, nil},
		).Encode()
		g := newGuest(t, m, o, ample(), false)
		_, _, err := g.call(o, "f0", 10_000)
		require.NoError(t, err)
		require.Equal(t, int64(100), g.depth())
	})
}

// A tail call whose arguments don't fit registers is an ordinary call to the engine.
func TestWideTailCallsNest(t *testing.T) {
	wide := wasmbin.FuncType{Params: slices.Repeat(i32, intRegisters+1)}
	counted := []byte{0x23, 0, 0x41, 1, 0x6b, 0x24, 0, 0x23, 0, 0x45, 0x04, 0x40, 0x0f, 0x0b} // if --g == 0 return
	args := bytes.Repeat([]byte{0x41, 5}, 7)
	direct := slices.Concat(counted, args, []byte{0x12, 0})
	indirect := slices.Concat(counted, args, []byte{0x41, 0, 0x13, 0, 0})
	for name, body := range map[string][]byte{"Direct": direct, "Indirect": indirect} {
		t.Run(name, func(t *testing.T) {
			m := module(wasmFunc{wide, body})
			m.Globals = []wasmbin.Global{{Type: wasmbin.GlobalType{Type: wasmbin.I32, Mutable: true}, Init: wasmbin.ConstI32(0)}}
			m.Tables = []wasmbin.Table{{Type: wasmbin.FuncRef, Limits: wasmbin.Limits{Min: 1}}}
			m.Elements = []wasmbin.Element{{Type: wasmbin.FuncRef, Offset: wasmbin.ConstI32(0), Funcs: []uint32{0}}}
			o := testOptions()
			o.CallDepth = 100
			g := newGuest(t, m.Encode(), o, ample(), false)
			g.global(g.info.Globals[0]).Set(100)
			_, _, err := g.call(o, "f0", make([]uint64, 7)...)
			require.NoError(t, err)
			require.Equal(t, int64(100), g.depth())
			g.global(g.info.Globals[0]).Set(101)
			_, _, err = g.call(o, "f0", make([]uint64, 7)...)
			require.ErrorIs(t, err, errDepth)
		})
	}
}

func TestStraightLinesAreChecked(t *testing.T) {
	checks := func(body []byte) (n int) {
		m := module(wasmFunc{nothing, body}, wasmFunc{nothing, nil})
		p := planner{r: wasmbin.NewInstrReader(), types: newCallTypes(m)}
		for _, s := range p.function(m.Code[0].Expr).segments {
			if s.check != unchecked {
				n++
			}
		}
		return n
	}
	call, add := []byte{0x10, 1}, []byte{0x41, 0, 0x1a} // two instructions
	block := func(body []byte) []byte {
		return slices.Concat([]byte{0x02, 0x40, 0x41, 0, 0x0d, 0}, body, []byte{0x0b})
	}
	require.Equal(t, 1, checks(bytes.Repeat(call, checkCalls-1)))
	require.Equal(t, 1+3, checks(bytes.Repeat(call, 3*checkCalls)))
	require.Equal(t, 1+3, checks(bytes.Repeat(add, 3*checkInstrs/2)))
	// A check inside of what a branch can skip doesn't help who skips it.
	skippable := append(bytes.Repeat(call, checkCalls-1), block(bytes.Repeat(call, 1))...)
	require.Equal(t, 1+2, checks(append(skippable, skippable...)), "one inside and one behind")
}

func TestClamps(t *testing.T) {
	table := func(least, most uint32) wasmbin.Table {
		return wasmbin.Table{Type: wasmbin.FuncRef, Limits: wasmbin.Limits{Min: least, Max: most, HasMax: most > 0}}
	}
	clamped := func(t *testing.T, m *wasmbin.Module, o Options) *wasmbin.Module {
		t.Helper()
		out, _, err := Instrument(m.Encode(), o)
		require.NoError(t, err)
		got, err := wasmbin.Decode(out, wasmbin.DefaultCaps())
		require.NoError(t, err)
		return got
	}
	t.Run("Maxima", func(t *testing.T) {
		m := &wasmbin.Module{
			Memories: []wasmbin.Limits{{Min: 1, Max: 60_000, HasMax: true}},
			Tables:   []wasmbin.Table{table(10, 0), table(10, 15), table(0, 9_999)},
		}
		got := clamped(t, m, Options{MemoryBytes: 5*pageBytes + 1, TableElements: 110})
		require.Equal(t, []wasmbin.Limits{{Min: 1, Max: 5, HasMax: true}}, got.Memories)
		require.Equal(t, []wasmbin.Table{table(10, 40), table(10, 15), table(0, 30)}, got.Tables)
	})
	t.Run("MoreItemsThanTheLimitAreRefused", func(t *testing.T) {
		m := module(wasmFunc{nothing, nil})
		m.Tables = []wasmbin.Table{table(10, 0)}
		segment := wasmbin.Element{Type: wasmbin.FuncRef, Offset: wasmbin.ConstI32(0), Funcs: make([]uint32, 10)}
		m.Elements = slices.Repeat([]wasmbin.Element{segment}, 3)
		_, _, err := Instrument(m.Encode(), Options{MemoryBytes: pageBytes, TableElements: 30})
		require.NoError(t, err)
		_, _, err = Instrument(m.Encode(), Options{MemoryBytes: pageBytes, TableElements: 29})
		require.ErrorIs(t, err, &limits.Error{Name: wasmbin.NameElementItems})
	})
	t.Run("MinimaOverTheLimitAreRefused", func(t *testing.T) {
		_, _, err := Instrument((&wasmbin.Module{Memories: []wasmbin.Limits{{Min: 2}}}).Encode(), Options{MemoryBytes: pageBytes})
		require.ErrorIs(t, err, &limits.Error{Name: limits.NameMemory})
		_, _, err = Instrument((&wasmbin.Module{Tables: []wasmbin.Table{table(60, 0), table(60, 0)}}).Encode(), Options{TableElements: 100})
		require.ErrorIs(t, err, &limits.Error{Name: limits.NameTableElements})
	})
}

func TestMutableGlobalsAreExported(t *testing.T) {
	m := module()
	m.Globals = []wasmbin.Global{
		{Type: wasmbin.GlobalType{Type: wasmbin.I32}, Init: wasmbin.ConstI32(1)},
		{Type: wasmbin.GlobalType{Type: wasmbin.I32, Mutable: true}, Init: wasmbin.ConstI32(2)},
	}
	g := newGuest(t, m.Encode(), testOptions(), ample(), false)
	require.Len(t, g.info.Globals, 3)
	require.Equal(t, uint64(2), g.global(g.info.Globals[0]).Get())
	require.Equal(t, []string{g.info.FuelGlobal, g.info.MemoryFailedGlobal}, g.info.Globals[1:])
	require.Zero(t, g.left())
	require.Equal(t, testOptions().CallDepth, g.depth())
}

func TestReservedNamesAreRefused(t *testing.T) {
	m := module(wasmFunc{nothing, nil})
	m.Exports[0].Name = ExportPrefix + "g0"
	_, _, err := Instrument(m.Encode(), testOptions())
	require.ErrorIs(t, err, ErrReservedName)

	m = &wasmbin.Module{Types: []wasmbin.FuncType{{}}, Imports: []wasmbin.Import{{Module: ImportModule, Name: ImportYield}}}
	_, _, err = Instrument(m.Encode(), testOptions())
	require.ErrorIs(t, err, ErrReservedName)
}

func TestDropInit(t *testing.T) {
	start := uint32(0)
	build := func(code []byte) *wasmbin.Module {
		m := module(wasmFunc{nothing, code}) // the start function stores 42 at 0
		m.Start = &start
		m.Data = []wasmbin.Data{{Offset: wasmbin.ConstI32(8), Bytes: []byte("data")}}
		count := uint32(1)
		m.DataCount = &count
		return m
	}
	store := []byte{0x41, 0, 0x41, 42, 0x3a, 0, 0}
	o := testOptions()
	t.Run("OffRunsAndWritesAsBefore", func(t *testing.T) {
		g := newGuest(t, build(store).Encode(), o, ample(), false)
		require.True(t, g.info.HasStart)
		require.Empty(t, g.info.StartExport)
		got, _ := g.Memory().Read(0, 12)
		require.Equal(t, []byte("\x2a\x00\x00\x00\x00\x00\x00\x00data"), got)
	})
	o.DropInit = true
	t.Run("OnLeavesItToTheHost", func(t *testing.T) {
		g := newGuest(t, build(store).Encode(), o, ample(), false)
		got, _ := g.Memory().Read(0, 12)
		require.Equal(t, make([]byte, 12), got)
		require.Equal(t, []DataSegment{{Offset: 8, Bytes: []byte("data")}}, g.info.DataSegments)
		_, _, err := g.call(o, g.info.StartExport)
		require.NoError(t, err)
		got, _ = g.Memory().Read(0, 1)
		require.Equal(t, []byte{42}, got)
	})
	t.Run("KeepsSegmentsThatCodeNames", func(t *testing.T) {
		m := build([]byte{0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 8, 0, 0, 0xfc, 9, 0}) // memory.init 0; data.drop 0
		m.Data = append(m.Data, wasmbin.Data{Mode: wasmbin.Passive, Bytes: []byte("passive")})
		*m.DataCount = 2
		g := newGuest(t, m.Encode(), o, ample(), false)
		_, _, err := g.call(o, g.info.StartExport)
		require.NoError(t, err)
		require.Len(t, g.info.DataSegments, 1)
	})
	t.Run("RefusesOffsetsOfImports", func(t *testing.T) {
		m := build(store)
		m.Imports = []wasmbin.Import{{Module: "env", Name: "g", Kind: wasmbin.KindGlobal, Global: wasmbin.GlobalType{Type: wasmbin.I32}}}
		m.Data[0].Offset = wasmbin.ConstExpr{0x23, 0, 0x0b}
		_, _, err := Instrument(m.Encode(), o)
		require.ErrorIs(t, err, ErrDataOffset)
	})
}

func TestFaithfulReset(t *testing.T) {
	edit := func(f func(m *wasmbin.Module), code ...byte) *wasmbin.Module {
		count := uint32(1)
		m := module(wasmFunc{nothing, code})
		m.Tables = []wasmbin.Table{{Type: wasmbin.FuncRef}}
		m.Data, m.DataCount = []wasmbin.Data{{Mode: wasmbin.Passive}}, &count
		m.Elements = []wasmbin.Element{{Mode: wasmbin.Passive, Type: wasmbin.FuncRef}}
		f(m)
		return m
	}
	code := func(code ...byte) *wasmbin.Module { return edit(func(*wasmbin.Module) {}, code...) }
	zeros := []byte{0x41, 0, 0x41, 0, 0x41, 0}
	tests := map[string]*wasmbin.Module{
		"table.set":   code(0x41, 0, 0xd0, 0x70, 0x26, 0),
		"table.grow":  code(0xd0, 0x70, 0x41, 0, 0xfc, 15, 0, 0x1a),
		"table.fill":  code(0x41, 0, 0xd0, 0x70, 0x41, 0, 0xfc, 17, 0),
		"table.copy":  code(append(zeros, 0xfc, 14, 0, 0)...),
		"table.init":  code(append(zeros, 0xfc, 12, 0, 0)...),
		"memory.init": code(append(zeros, 0xfc, 8, 0, 0)...),
		"elem.drop":   code(0xfc, 13, 0),
		"data.drop":   code(0xfc, 9, 0),
		"exported table": edit(func(m *wasmbin.Module) {
			m.Exports = append(m.Exports, wasmbin.Export{Name: "t", Kind: wasmbin.KindTable})
		}),
		"imported table": edit(func(m *wasmbin.Module) {
			m.Imports = []wasmbin.Import{{Kind: wasmbin.KindTable, Table: wasmbin.Table{Type: wasmbin.FuncRef}}}
		}),
		"imported mutable global": edit(func(m *wasmbin.Module) {
			m.Imports = []wasmbin.Import{{Kind: wasmbin.KindGlobal, Global: wasmbin.GlobalType{Type: wasmbin.I32, Mutable: true}}}
		}),
		"mutable reference": edit(func(m *wasmbin.Module) {
			m.Globals = []wasmbin.Global{{Type: wasmbin.GlobalType{Type: wasmbin.ExternRef, Mutable: true}, Init: []byte{0xd0, 0x6f, 0x0b}}}
		}),
	}
	for name, m := range tests {
		t.Run(name, func(t *testing.T) {
			_, info, err := Instrument(m.Encode(), testOptions())
			require.NoError(t, err)
			require.False(t, info.FaithfulReset)
		})
	}
	_, info, err := Instrument(code(append(zeros, 0xfc, 10, 0, 0)...).Encode(), testOptions())
	require.NoError(t, err)
	require.True(t, info.FaithfulReset, "memory.copy changes memory alone")
}

func TestInstrumentIsAPureFunction(t *testing.T) {
	wasm := module(wasmFunc{i32I32, []byte{0x20, 0, 0x10, 0}}).Encode()
	before := bytes.Clone(wasm)
	first, _, err := Instrument(wasm, testOptions())
	require.NoError(t, err)
	second, _, err := Instrument(wasm, testOptions())
	require.NoError(t, err)
	require.Equal(t, first, second)
	require.Equal(t, before, wasm)
}

// FuzzInstrument checks that rewriting never makes a valid module invalid, or the other way round.
func FuzzInstrument(f *testing.F) {
	f.Add(module(wasmFunc{i32I32, []byte{0x20, 0, 0x10, 0}}).Encode())
	f.Add(module(wasmFunc{i32I32, []byte{0x20, 0, 0x40, 0}}, wasmFunc{nothing, []byte{0x12, 1}}).Encode())
	f.Add(module(wasmFunc{i32To, []byte{0x03, 0x40, 0x20, 0, 0x41, 1, 0x6b, 0x22, 0, 0x0d, 0, 0x0b}}).Encode())
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features))
	f.Cleanup(func() { _ = rt.Close(ctx) })
	compiles := func(wasm []byte) error {
		c, err := rt.CompileModule(ctx, wasm)
		if err == nil {
			err = c.Close(ctx)
		}
		return err
	}
	f.Fuzz(func(t *testing.T, wasm []byte) {
		out, _, err := Instrument(wasm, testOptions())
		if err != nil {
			return
		}
		m, err := wasmbin.Decode(wasm, wasmbin.DefaultCaps())
		require.NoError(t, err)
		if len(m.Customs) > 0 {
			return // the engine refuses some custom sections that Instrument leaves out
		}
		plain, instrumented := compiles(wasm), compiles(out)
		require.Equal(t, plain == nil, instrumented == nil, "plain: %v, instrumented: %v", plain, instrumented)
	})
}

func TestPaddedIntegersChangeNothing(t *testing.T) {
	body := func(selectTypes, constant string) []byte {
		return []byte("\x20\x00" + "\x41\x07" + "\x20\x00" + "\x1c" + selectTypes + "\x7f" + "\x41" + constant + "\x6a")
	}
	want, _, err := Instrument(module(wasmFunc{i32I32, body("\x01", "\x05")}).Encode(), testOptions())
	require.NoError(t, err)
	got, _, err := Instrument(module(wasmFunc{i32I32, body("\x81\x80\x00", "\x85\x80\x80\x00")}).Encode(), testOptions())
	require.NoError(t, err)
	require.Equal(t, want, got)
}
