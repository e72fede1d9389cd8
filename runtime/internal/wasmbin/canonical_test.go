package wasmbin

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func readOne(t *testing.T, b []byte) *Instr {
	t.Helper()
	r := NewInstrReader()
	r.Reset(b, 0, "code")
	in := &Instr{}
	require.True(t, r.Next(in), "%v", r.Err())
	require.False(t, r.More())
	return in
}

func TestPaddedIntegersAreShortened(t *testing.T) {
	lane := string(make([]byte, 16))
	tests := map[string]struct{ padded, want string }{
		"block":         {"\x02\x85\x00", "\x02\x05"},
		"br":            {"\x0c\x81\x80\x80\x80\x00", "\x0c\x01"},
		"br_table":      {"\x0e\x82\x00\x81\x00\x80\x01\x83\x00", "\x0e\x02\x01\x80\x01\x03"},
		"call":          {"\x10\xe5\x8e\xa6\x80\x00", "\x10\xe5\x8e\x26"},
		"call_indirect": {"\x11\x80\x00\x83\x80\x00", "\x11\x00\x03"},
		"typed select":  {"\x1c\x81\x00\x7f", "\x1c\x01\x7f"},
		"local.get":     {"\x20\x87\x00", "\x20\x07"},
		"load":          {"\x28\x82\x00\x90\x80\x00", "\x28\x02\x10"},
		"i32.const":     {"\x41\xff\x7f", "\x41\x7f"},
		"i32.const 64":  {"\x41\xc0\x80\x80\x80\x00", "\x41\xc0\x00"},
		"i64.const":     {"\x42\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", "\x42\x00"},
		"i64.const -65": {"\x42\xbf\xff\x7f", "\x42\xbf\x7f"},
		"memory.fill":   {"\xfc\x8b\x80\x00\x00", "\xfc\x0b\x00"},
		"memory.copy":   {"\xfc\x8a\x00\x00\x00", "\xfc\x0a\x00\x00"},
		"memory.init":   {"\xfc\x88\x00\x84\x00\x00", "\xfc\x08\x04\x00"},
		"table.copy":    {"\xfc\x8e\x00\x81\x00\x00", "\xfc\x0e\x01\x00"},
		"v128.load":     {"\xfd\x00\x84\x00\x83\x00", "\xfd\x00\x04\x03"},
		"load8_lane":    {"\xfd\x54\x80\x00\x81\x00\x0f", "\xfd\x54\x00\x01\x0f"},
		"v128.const":    {"\xfd\x0c" + lane, "\xfd\x0c" + lane},
		"i16x8.shr_s":   {"\xfd\x8c\x01", "\xfd\x8c\x01"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.want, string(readOne(t, []byte(tt.padded)).Raw))
			require.Equal(t, tt.want, string(readOne(t, []byte(tt.want)).Raw), "the shortest form stays")
		})
	}
}

// Every opcode, with immediates of small numbers, is what canonical makes of it.
func TestCanonicalIsTheEncodingOfEveryOpcode(t *testing.T) {
	known := 0
	try := func(op []byte) {
		for _, fill := range []byte{0, 1, 0x70} { // an index, a count, a type
			b := append([]byte{}, op...)
			for range 20 {
				b = append(b, fill)
			}
			r := NewInstrReader()
			r.Reset(b, 0, "code")
			var in Instr
			if r.Next(&in) {
				known++
				require.Equal(t, in.Raw, r.canonical(&in), "% x", in.Raw)
			}
		}
	}
	for op := range 256 {
		try([]byte{byte(op)})
		try(AppendU32([]byte{0xfc}, uint32(op)))
		try(AppendU32([]byte{0xfd}, uint32(op)))
	}
	require.Greater(t, known, 3*400)
}

func TestPaddedSIMDOpcodeIsRefused(t *testing.T) {
	hidden := []byte("\x05\x03\x40\x0c\x00\x0b\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01")
	_, err := Decode(withCode(append([]byte{0xfd, 0x8c, 0x00}, hidden...)...).Encode(), DefaultCaps())
	require.ErrorContains(t, err, "shortest form")
}

func TestPaddedConstantExpressionIsShortened(t *testing.T) {
	m := small()
	m.Globals[0].Init = ConstExpr{0x41, 0x85, 0x80, 0x00, 0x0b}
	got, err := Decode(m.Encode(), DefaultCaps())
	require.NoError(t, err)
	require.Equal(t, ConstI32(5), got.Globals[0].Init)
}
