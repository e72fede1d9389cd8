package meter

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/longshore/longshore/runtime/internal/wasmbin"
)

const bulkMemory = 5 << 20

// bulkModule exports memory.fill, copy and init as f0, f1 and f2, and data.drop as f3.
func bulkModule() *wasmbin.Module {
	three := wasmbin.FuncType{Params: []wasmbin.ValueType{wasmbin.I32, wasmbin.I32, wasmbin.I32}}
	operands := []byte{0x20, 0, 0x20, 1, 0x20, 2}
	m := module(
		wasmFunc{three, append(operands[:6:6], 0xfc, 11, 0)},
		wasmFunc{three, append(operands[:6:6], 0xfc, 10, 0, 0)},
		wasmFunc{three, append(operands[:6:6], 0xfc, 8, 0, 0)},
		wasmFunc{nothing, []byte{0xfc, 9, 0}},
	)
	count := uint32(1)
	m.Memories[0].Min = bulkMemory / pageBytes
	m.Exports = append(m.Exports, wasmbin.Export{Name: "memory", Kind: wasmbin.KindMemory})
	m.Data, m.DataCount = []wasmbin.Data{{Mode: wasmbin.Passive, Bytes: pattern(3 << 20)}}, &count
	return m
}

// pattern makes bytes that no shift leaves as they are.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i>>16*31 + i>>8*7 + i)
	}
	return b
}

// Long bulk instructions are done in pieces. What they leave behind, or how they trap, is what the originals do.
func TestLongBulkInstructions(t *testing.T) {
	const piece = pieceBytes
	type operands struct{ to, from, bytes uint64 }
	tests := map[string][]operands{
		"f0": {{0, 1, piece}, {5, 0xabc, piece + 1}, {3, 2, 3*piece + 7}, {1, 3, bulkMemory - 1}, {1, 3, bulkMemory}, {1 << 31, 3, 1<<31 + 2}},
		"f1": {
			{0, 1, piece + 1},
			{1, 0, piece + 1},
			{100, 0, 3*piece + 5},
			{0, 100, 3*piece + 5},
			{2 * piece, 0, 2 * piece},
			{0, 2 * piece, 2 * piece},
			{piece / 2, 0, 3 * piece},
			{0, piece / 2, 3 * piece},
			{7, 7, 3 * piece},
			{0, 1, bulkMemory - 1},
			{1, 0, bulkMemory - 1},
			{2, 0, bulkMemory - 1},
			{0, 2, bulkMemory - 1},
			{0, 1<<32 - 1, 1<<32 - 1},
		},
		"f2": {{0, 0, 3 << 20}, {9, 5, 2*piece + 3}, {0, 1, 3 << 20}, {bulkMemory - 2*piece, 0, 2*piece + 1}, {0, 1<<32 - 1, piece + 1}},
	}
	h := ample()
	rt := h.runtime(t, false)
	m := bulkModule()
	out, info, err := Instrument(m.Encode(), testOptions())
	require.NoError(t, err)
	instance := func(wasm []byte) api.Module {
		i, err := rt.InstantiateWithConfig(t.Context(), wasm, wazero.NewModuleConfig().WithName(""))
		require.NoError(t, err)
		require.True(t, i.Memory().Write(0, pattern(bulkMemory)))
		return i
	}
	run := func(i api.Module, name string, o operands) (string, []byte) {
		_, err := i.ExportedFunction(name).Call(context.Background(), o.to, o.from, o.bytes)
		all, _ := i.Memory().Read(0, i.Memory().Size())
		if err != nil {
			return trap(err), all
		}
		return "ok", all
	}
	for name, all := range tests {
		for _, o := range all {
			t.Run(fmt.Sprintf("%s %v", name, o), func(t *testing.T) {
				want, wantMemory := run(instance(m.Encode()), name, o)
				g := &guest{Module: instance(out), host: h, info: info}
				h.granted, h.yields, h.slice = 0, 0, 0
				got, gotMemory := run(g, name, o)
				require.Equal(t, want, got)
				require.True(t, string(wantMemory) == string(gotMemory), "memory differs")
				if got != "ok" {
					return
				}
				used := h.granted - g.left()
				require.Equal(t, 4+int64(o.bytes)/8, used)
				require.GreaterOrEqual(t, h.yields, int((o.bytes+piece-1)/piece), "a yield for each piece")
			})
		}
	}
	t.Run("dropped segment", func(t *testing.T) {
		for _, wasm := range [][]byte{m.Encode(), out} {
			i := instance(wasm)
			_, err := i.ExportedFunction("f3").Call(t.Context())
			require.NoError(t, err)
			got, memory := run(i, "f2", operands{0, 0, 2 * piece})
			require.Equal(t, "wasm error: out of bounds memory access", got)
			require.True(t, string(pattern(bulkMemory)) == string(memory), "memory was changed")
		}
	})
}

// A long bulk instruction stops where its fuel ends.
func TestLongBulkInstructionsStopInTheMiddle(t *testing.T) {
	h := &meterHost{slice: 0, budget: 2 * pieceBytes / 8}
	g := newGuest(t, bulkModule().Encode(), testOptions(), h, false)
	_, used, err := g.call(testOptions(), "f0", 0, 1, 4*pieceBytes)
	require.ErrorIs(t, err, errFuel)
	require.Equal(t, int64(4+2*pieceBytes/8), used, "the second piece was not paid for")
	last, _ := g.Memory().ReadByte(pieceBytes - 1)
	next, _ := g.Memory().ReadByte(pieceBytes)
	require.Equal(t, []byte{1, 0}, []byte{last, next})
}
