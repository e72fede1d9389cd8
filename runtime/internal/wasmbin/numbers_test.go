package wasmbin

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestIntegersComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := rapid.Uint32().Draw(t, "u32")
		c := &cursor{buf: AppendU32(nil, u)}
		require.Equal(t, u, c.u32())
		require.True(t, c.atEnd() && c.err == nil)

		s := rapid.Int64().Draw(t, "s64")
		c = &cursor{buf: AppendS64(nil, s)}
		require.Equal(t, s, c.signed(64))
		require.True(t, c.atEnd() && c.err == nil)

		narrow := rapid.Int32().Draw(t, "s32")
		for _, bits := range []int{32, 33} {
			c = &cursor{buf: AppendS64(nil, int64(narrow))}
			require.Equal(t, int64(narrow), c.signed(bits))
			require.True(t, c.atEnd() && c.err == nil)
		}
	})
}

func TestIntegersThatDontFitAreRefused(t *testing.T) {
	for _, b := range [][]byte{
		{0xff, 0xff, 0xff, 0xff, 0x1f},             // 33 bits
		{0x80, 0x80, 0x80, 0x80, 0x80, 0x00},       // six bytes
		{0x80, 0x80, 0x80, 0x80},                   // cut
		AppendS64(nil, math.MaxUint32+1),           // 2^32
		{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80}, // never ends
	} {
		c := &cursor{buf: b}
		c.u32()
		require.Error(t, c.err, "% x as unsigned", b)
	}
	for _, v := range []int64{math.MaxInt32 + 1, math.MinInt32 - 1, math.MaxInt64, math.MinInt64} {
		c := &cursor{buf: AppendS64(nil, v)}
		c.signed(32)
		require.Error(t, c.err, "%d in 32 bits", v)
	}
	c := &cursor{buf: []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}}
	c.signed(64)
	require.Error(t, c.err, "spare bits that differ from the sign")
}

func TestConstExprI32(t *testing.T) {
	v, ok := ConstI32(-5).I32()
	require.True(t, ok)
	require.Equal(t, uint32(math.MaxUint32-4), v)

	v, ok = ConstExpr{0x41, 2, 0x41, 3, 0x6c, 0x41, 1, 0x6a, 0x0b}.I32()
	require.True(t, ok, "extended constant expression")
	require.Equal(t, uint32(7), v)

	for _, e := range []ConstExpr{{0x23, 0, 0x0b}, {0x0b}, {0x41, 1, 0x41, 1, 0x0b}, {0x6a, 0x0b}, ConstI64(1)} {
		_, ok = e.I32()
		require.False(t, ok, "% x", []byte(e))
	}
}
