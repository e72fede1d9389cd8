package wasmbin

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The modules of the specification's suite that decode are equal after being encoded and decoded again. The suite ships
// with the engine.
func TestSpecificationModulesComeBackEqual(t *testing.T) {
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	require.NoError(t, err)
	suites := filepath.Join(strings.TrimSpace(string(dir)), "internal", "integration_test", "spectest")
	decoded := 0
	for _, suite := range []string{"v2", "tail-call", "extended-const"} {
		files, err := filepath.Glob(filepath.Join(suites, suite, "testdata", "*.wasm"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			b, err := os.ReadFile(file)
			require.NoError(t, err)
			first, err := Decode(b, DefaultCaps())
			if err != nil {
				continue
			}
			decoded++
			second, err := Decode(first.Encode(), DefaultCaps())
			require.NoError(t, err, file)
			require.Equal(t, normal(first), normal(second), file)
		}
	}
	require.Greater(t, decoded, 1_000)
	t.Logf("%d modules", decoded)
}

// normal forgets where in its module code was, and which sections were there without holding anything.
func normal(m *Module) *Module {
	for i := range m.Code {
		m.Code[i].Offset = 0
	}
	m.Types, m.Imports, m.Functions = some(m.Types), some(m.Imports), some(m.Functions)
	m.Tables, m.Memories, m.Globals, m.Exports = some(m.Tables), some(m.Memories), some(m.Globals), some(m.Exports)
	m.Elements, m.Code, m.Data, m.Customs = some(m.Elements), some(m.Code), some(m.Data), some(m.Customs)
	return m
}

func some[T any](s []T) []T {
	if len(s) == 0 {
		return nil
	}
	return s
}
