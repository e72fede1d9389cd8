package wasmbin

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// nameMap returns a subsection of function names for functions that are given by index.
func nameMap(names ...any) string {
	b := AppendU32(nil, uint32(len(names)/2))
	for i := 0; i < len(names); i += 2 {
		b = AppendName(AppendU32(b, uint32(names[i].(int))), names[i+1].(string))
	}
	return rawSection(1, string(b))
}

func TestFunctionNames(t *testing.T) {
	module, locals := rawSection(0, "\x01m"), rawSection(2, "\x01\x01\x01\x00\x01x")
	long := strings.Repeat("n", functionNameBytes)
	tests := map[string]struct{ content, want string }{
		"OnlyFunctionsAreKept":      {module + nameMap(0, "f", 1, "g") + locals, nameMap(0, "f", 2, "g")},
		"WithoutNamesNothingIsKept": {module + locals, ""},
		"UnknownFunctionsAreLeft":   {nameMap(0, "f", 9, "g"), nameMap(0, "f")},
		"RepeatedOnesAreLeft":       {nameMap(0, "f", 0, "g"), nameMap(0, "f")},
		"OrderIsAscending":          {nameMap(3, "f", 1, "g"), nameMap(4, "f")},
		"LongOnesAreCut":            {nameMap(0, long+"more"), nameMap(0, long)},
		"NamesAreUTF8":              {nameMap(0, "a\xffb"), nameMap(0, "ab")},
		"CutContentKeepsItsStart":   {rawSection(1, "\x02\x00\x01f\x01\x7fg"), nameMap(0, "f")},
		"LyingCount":                {rawSection(1, "\xff\xff\xff\xff\x0f\x00\x01f"), nameMap(0, "f")},
		"Rubbish":                   {"\x01\x7f", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tt.want, string(FunctionNames([]byte(tt.content), 9, 1, 1)))
		})
	}
	t.Run("AllTogetherAreBounded", func(t *testing.T) {
		const funcs = functionNamesBytes/functionNameBytes + 1_000
		names := make([]any, 0, 2*funcs)
		for i := range funcs {
			names = append(names, i, long)
		}
		kept := FunctionNames([]byte(nameMap(names...)), funcs, funcs, 1)
		require.Less(t, len(kept), functionNamesBytes+8*funcs)
	})
}
