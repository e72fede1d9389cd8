package meter

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/runtime/internal/wasmbin"
)

func TestChangedGlobal(t *testing.T) {
	// changing has a table, a passive segment, two globals, and a function of these instructions.
	changing := func(body ...byte) []byte {
		m := module(wasmFunc{nothing, body})
		m.Tables = []wasmbin.Table{{Type: wasmbin.FuncRef, Limits: wasmbin.Limits{Min: 4}}}
		m.Elements = []wasmbin.Element{{Mode: wasmbin.Passive, Type: wasmbin.FuncRef, Funcs: []uint32{0}}}
		m.Globals = []wasmbin.Global{
			{Type: wasmbin.GlobalType{Type: wasmbin.I32, Mutable: true}, Init: wasmbin.ConstI32(0)},
			{Type: wasmbin.GlobalType{Type: wasmbin.FuncRef, Mutable: true}, Init: []byte{0xd0, 0x70, 0x0b}},
		}
		one := uint32(1)
		m.DataCount = &one
		m.Data = []wasmbin.Data{{Mode: wasmbin.Passive, Bytes: []byte("passive")}}
		return m.Encode()
	}
	zeros := []byte{0x41, 0, 0x41, 0, 0x41, 0}
	o := testOptions()
	o.DropInit = true
	for name, body := range map[string][]byte{
		"table.set":  {0x41, 0, 0xd0, 0x70, 0x26, 0},
		"table.grow": {0xd0, 0x70, 0x41, 0, 0xfc, 15, 0, 0x1a},
		"table.fill": {0x41, 0, 0xd0, 0x70, 0x41, 0, 0xfc, 17, 0},
		"table.copy": append(zeros[:6:6], 0xfc, 14, 0, 0),
		"table.init": append(zeros[:6:6], 0xfc, 12, 0, 0),
		"elem.drop":  {0xfc, 13, 0},
		"data.drop":  {0xfc, 9, 0},
		"global.set": {0xd0, 0x70, 0x24, 1},
	} {
		t.Run(name+"IsNotedWhenItRuns", func(t *testing.T) {
			g := newGuest(t, changing(body...), o, ample(), false)
			require.Contains(t, g.info.Globals, g.info.ChangedGlobal)
			require.Zero(t, g.ExportedGlobal(g.info.ChangedGlobal).Get())
			_, _, err := g.call(o, "f0")
			require.NoError(t, err)
			require.EqualValues(t, 1, g.ExportedGlobal(g.info.ChangedGlobal).Get())
		})
	}
	t.Run("WhatOnlyChangesMemoryAndNumbersIsNot", func(t *testing.T) {
		_, info, err := Instrument(changing(append(zeros[:6:6], 0xfc, 8, 0, 0, 0x41, 1, 0x24, 0)...), o)
		require.NoError(t, err)
		require.Empty(t, info.ChangedGlobal)
		require.Len(t, info.Globals, 4)
	})
}
