package messaging

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
)

func TestBind(t *testing.T) {
	r := wazero.NewRuntime(t.Context())
	compiled, err := r.CompileModule(t.Context(), puppetWasm(role{}))
	require.NoError(t, err)
	t.Run("AModuleThatImportsEverythingFits", func(t *testing.T) {
		b, err := Bind(t.Context(), r, compiled, BindOptions{Served: []string{"test"}})
		require.NoError(t, err)
		require.NoError(t, b.Close(t.Context()))
	})
	t.Run("EveryFaultIsNamed", func(t *testing.T) {
		_, err := Bind(t.Context(), r, compiled, BindOptions{})
		for _, name := range []string{"handle", "realloc", "post"} {
			require.ErrorContains(t, err, `import "test" "`+name+`" is not served`)
		}
	})
}

func TestCheckPreamble(t *testing.T) {
	isComponent, err := CheckPreamble(puppetWasm(role{}))
	require.NoError(t, err)
	require.False(t, isComponent)
	isComponent, err = CheckPreamble([]byte("\x00asm\x0d\x00\x01\x00"))
	require.NoError(t, err)
	require.True(t, isComponent)
	for preamble, words := range map[string]string{
		"": "not WebAssembly", "\x00asm": "unknown version", "\x00asm\x02\x00\x00\x00": "unknown version", "\x7fELF": "not WebAssembly",
	} {
		_, err := CheckPreamble([]byte(preamble))
		require.ErrorContains(t, err, words)
	}
}
