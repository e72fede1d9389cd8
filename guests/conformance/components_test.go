package conformance_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/internal/guestbuild"
)

// worlds are the names of the worlds of the kinds, in the WIT of the SDK for JavaScript.
var worlds = map[kind]string{handler: "handle", outcome: "decide", batch: "handle-batch"}

// componentMagic begins a component; a core module has another layer after the version.
var componentMagic = []byte("\x00asm\x0d\x00\x01\x00")

// TestComponents makes components of the guests of all languages, with the tools of the Bytecode Alliance, and runs them through
// all cases. Those in JavaScript are components to begin with, and TestConformance has run them. That the tools take a module
// says that it fits the WIT; TestConformance runs the same file as it is.
func TestComponents(t *testing.T) {
	for _, l := range guestbuild.Languages() {
		if l == guestbuild.JavaScript {
			continue
		}
		t.Run(string(l), func(t *testing.T) { runCases(t, l, componentsOf(t, built(t, l))) })
	}
}

// componentsOf makes components of core modules, and returns their files.
func componentsOf(t *testing.T, modules map[kind]string) map[kind]string {
	t.Helper()
	env := tools(t, guestbuild.JavaScript) // whose guests depend on what makes components
	dir := t.TempDir()
	files := map[kind]string{}
	command := []string{"node", "components.mjs"}
	for _, k := range kinds() {
		files[k] = filepath.Join(dir, string(k)+".wasm")
		command = append(command, worlds[k], absolute(t, modules[k]), files[k])
	}
	require.NoError(t, guestbuild.Run(t.Context(), source(guestbuild.JavaScript), env, command...))
	for _, file := range files {
		require.True(t, isComponent(guestbuild.Read(t, file)))
	}
	return files
}

func absolute(t *testing.T, file string) string {
	t.Helper()
	abs, err := filepath.Abs(file)
	require.NoError(t, err)
	return abs
}

func isComponent(wasm []byte) bool { return bytes.HasPrefix(wasm, componentMagic) }
