package meter

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/runtime/internal/wasmbin"
)

func TestMergeImports(t *testing.T) {
	names := func(o Options) (list []string) {
		m := &wasmbin.Module{Types: []wasmbin.FuncType{{}}}
		for _, name := range []string{"f", "f [v2]", "f [v13]", "[constructor]f", "f [v]", "f [vx]", "f [v2] "} {
			m.Imports = append(m.Imports, wasmbin.Import{Module: "m", Name: name})
		}
		out, _, err := Instrument(m.Encode(), o)
		require.NoError(t, err)
		metered, err := wasmbin.Decode(out, wasmbin.DefaultCaps())
		require.NoError(t, err)
		for _, im := range metered.Imports {
			if im.Module == "m" {
				list = append(list, im.Name)
			}
		}
		return list
	}
	t.Run("GivesAFunctionThatIsImportedAgainItsNameBack", func(t *testing.T) {
		require.Equal(t, []string{"f", "f", "f", "[constructor]f", "f [v]", "f [vx]", "f [v2] "}, names(Options{MergeImports: true}))
	})
	t.Run("LeavesNamesAsTheyAreElsewhere", func(t *testing.T) {
		require.Equal(t, []string{"f", "f [v2]", "f [v13]"}, names(Options{})[:3])
	})
}
