package wasmbin

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStackEffect(t *testing.T) {
	tests := map[int64][]Op{
		1:  {OpLocalGet, OpGlobalGet, OpMemorySize, OpI32Const, OpI64Const, opF32Const, opF64Const, opV128Const, OpRefNull, 0xfc10},
		0:  {OpNop, OpLocalTee, 0x28, 0x35, OpMemoryGrow, 0x45, 0x50, 0x67, 0x7b, 0x91, 0x9f, 0xa7, 0xc4, 0xd1, opTableGet, 0xfc00, OpDataDrop, OpElemDrop, 0xfd00, 0xfd0f, 0xfd15, 0xfd4d, 0xfdff},
		-1: {OpDrop, OpLocalSet, OpGlobalSet, OpI32Eq, OpI64LtS, OpI32Add, OpI64Add, 0x98, 0xa6, OpTableGrow, 0xfd0d, 0xfd17, 0xfd23, 0xfd54, 0xfd6e, 0xfdae},
		-2: {OpSelect, 0x1c, 0x36, 0x3e, OpTableSet, 0xfd0b, 0xfd52, 0xfd58},
		-3: {OpMemoryCopy, OpMemoryFill, OpMemoryInit, OpTableInit, OpTableCopy, OpTableFill},
	}
	for want, ops := range tests {
		for _, op := range ops {
			require.Equal(t, want, op.stackEffect(), "%#x", uint16(op))
		}
	}
}

func TestOperandsAreCountedAsTheyLive(t *testing.T) {
	caps := DefaultCaps()
	caps.Operands = 2
	fits := map[string][]byte{
		"two":             {0x41, 0, 0x41, 0, 0x1a, 0x1a},
		"one after one":   {0x41, 0, 0x1a, 0x41, 0, 0x1a, 0x41, 0, 0x1a},
		"branches":        {0x41, 0, 0x04, 0x7f, 0x41, 0, 0x41, 0, 0x6a, 0x05, 0x41, 0, 0x0b, 0x1a},
		"block's results": {0x02, 0x7f, 0x41, 0, 0x0b, 0x1a, 0x02, 0x7f, 0x41, 0, 0x0b, 0x1a},
		"unreachable":     {0x00, 0x6a, 0x6a, 0x6a, 0x1a},
		"calls":           {0x10, 0, 0x10, 0, 0x10, 0},
	}
	for name, code := range fits {
		t.Run(name, func(t *testing.T) {
			_, err := Decode(oneFunction(FuncType{}, 0, code).Encode(), caps)
			require.NoError(t, err)
			_, err = Decode(oneFunction(FuncType{}, 0, append([]byte{0x41, 0, 0x41, 0}, code...)).Encode(), caps)
			if name == "calls" || name == "unreachable" {
				require.NoError(t, err)
			} else {
				require.Error(t, err)
			}
		})
	}
}
