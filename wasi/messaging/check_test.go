package messaging

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
)

func TestCheck(t *testing.T) {
	r := wazero.NewRuntime(t.Context())
	compiled, err := r.CompileModule(t.Context(), puppetWasm())
	require.NoError(t, err)
	t.Run("AModuleThatImportsEverythingFits", func(t *testing.T) {
		require.NoError(t, Check(compiled, "test"))
	})
	t.Run("EveryFaultIsNamed", func(t *testing.T) {
		err := Check(compiled)
		for _, name := range []string{"handle", "realloc", "post"} {
			require.ErrorContains(t, err, `import "test" "`+name+`" is not served`)
		}
	})
}

func TestCheckPreamble(t *testing.T) {
	require.NoError(t, CheckPreamble(puppetWasm()))
	for preamble, words := range map[string]string{
		"": "not WebAssembly", "\x00asm": "unknown version", "\x00asm\x02\x00\x00\x00": "unknown version",
		"\x00asm\x0d\x00\x01\x00": "component", "\x7fELF": "not WebAssembly",
	} {
		require.ErrorContains(t, CheckPreamble([]byte(preamble)), words)
	}
}
