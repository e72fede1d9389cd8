package runtime_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/runtime"
)

// jco is the toolchain that makes and transpiles components, as npm knows it.
const jco = "@bytecodealliance/jco@1.35.0"

// A component does the same here as under Node, where another implementation of the canonical ABI runs all of it, shims
// included.
func TestComponent_DoesTheSameAsUnderNode(t *testing.T) {
	if testing.Short() || os.Getenv("LONG") == "" {
		t.Skip("takes the network and a minute; LONG=1 runs it")
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("npm is missing")
	}
	clang, err := exec.LookPath("clang")
	if err != nil {
		t.Skip("clang is missing")
	}
	dir := t.TempDir()
	run := func(name string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.Stderr = dir, os.Stderr
		out, err := cmd.Output()
		require.NoError(t, err, string(out))
		return string(out)
	}
	script, err := os.ReadFile(filepath.Join("testdata", "component", "run.mjs"))
	require.NoError(t, err)
	wit, err := os.ReadFile(filepath.Join("..", "wasi", "messaging", "wit", "wasi-messaging.wit"))
	require.NoError(t, err)
	world := append(wit, "\nworld guest { import producer; export incoming-handler; }\n"...)
	for name, b := range map[string][]byte{"run.mjs": script, "world.wit": world, "package.json": []byte("{}")} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), b, 0o600))
	}
	source, err := filepath.Abs(filepath.Join("testdata", "component", "guest.c"))
	require.NoError(t, err)
	run(clang, "--target=wasm32", "-O2", "-nostdlib", "-Wl,--no-entry", "-o", "core.wasm", source)
	run(npm, "install", "--silent", "--no-audit", "--no-fund", jco)
	messages := []string{"hello", "x", "", "a longer message, sent on"}
	there := run("node", append([]string{"run.mjs", "core.wasm", "world.wit"}, messages...)...)

	component, err := os.ReadFile(filepath.Join(dir, "component.wasm"))
	require.NoError(t, err)
	m, err := newEngine(t).Compile(t.Context(), "component", component, testLimits())
	require.NoError(t, err)
	var here strings.Builder
	for _, data := range messages {
		call := newCall(data, nil)
		o := m.Invoke(t.Context(), call)
		for _, sent := range call.Outbox() {
			fmt.Fprintf(&here, "send %s %s\n", sent.Topic, sent.Message.Data)
		}
		switch o.Class {
		case runtime.OK:
			fmt.Fprintln(&here, "ok")
		case runtime.GuestError:
			fmt.Fprintf(&here, "error %s %s\n", o.Detail, o.GuestText)
		default:
			t.Fatal(o.Reason(), o.Err)
		}
	}
	require.Equal(t, there, here.String())
	require.Contains(t, there, "send out olleh")
}
