package meter

import (
	"strings"

	"github.com/longshore/longshore/runtime/internal/wasmbin"
)

// mergeImports gives functions that were imported several times their one name back; see Options.MergeImports.
func mergeImports(m *wasmbin.Module) {
	for i := range m.Imports {
		m.Imports[i].Name = withoutNumber(m.Imports[i].Name)
	}
}

// withoutNumber cuts " [v2]", or another number, off a name.
func withoutNumber(name string) string {
	rest, ok := strings.CutSuffix(name, "]")
	base, number, found := strings.Cut(rest, " [v")
	if !ok || !found || number == "" || strings.Trim(number, "0123456789") != "" {
		return name
	}
	return base
}
