package conformance_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/internal/guestbuild"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/wasi/messaging"
)

// A module and the component that was made of it do the same here as the component does under Node, where another
// implementation of the canonical ABI runs all of it, shims included.
func TestNode(t *testing.T) {
	env := tools(t, guestbuild.JavaScript)
	clang := guestbuild.Require(t, guestbuild.C)
	dir := t.TempDir()
	core, wit, component := filepath.Join(dir, "core.wasm"), filepath.Join(dir, "world.wit"), filepath.Join(dir, "component.wasm")
	require.NoError(t, guestbuild.Run(t.Context(), "testdata", clang,
		"clang", "--target=wasm32", "-O2", "-nostdlib", "-Wl,--no-entry", "-o", core, "reverse.c"))
	world := string(guestbuild.Read(t, filepath.Join("..", "..", "wasi", "messaging", "wit", "wasi-messaging.wit")))
	world += "\nworld guest { import producer; export incoming-handler; }\n"
	require.NoError(t, os.WriteFile(wit, []byte(world), 0o600))

	messages := []string{"hello", "x", "", "a longer message, sent on"}
	node := exec.CommandContext(t.Context(), "node", append([]string{"node.mjs", core, wit, component}, messages...)...)
	node.Dir, node.Env, node.Stderr = source(guestbuild.JavaScript), env, os.Stderr
	there, err := node.Output()
	require.NoError(t, err)
	require.Contains(t, string(there), "send out olleh")

	for name, file := range map[string]string{"TheModuleUnmodified": core, "TheComponentMadeOfIt": component} {
		t.Run(name, func(t *testing.T) {
			wasm := guestbuild.Read(t, file)
			require.Equal(t, file == component, isComponent(wasm))
			module, err := shared.compiler.Compile(t.Context(), "reverse", wasm, patient())
			require.NoError(t, err)
			require.Equal(t, string(there), callLog(t, module, messages))
		})
	}
}

// callLog gives a module some messages, and writes down what it sends and answers as node.mjs does.
func callLog(t *testing.T, module *runtime.Module, messages []string) string {
	t.Helper()
	var log strings.Builder
	for _, data := range messages {
		call := messaging.NewCall(messaging.CallOptions{Message: text("in", data), Limits: patient(), Admit: admit()})
		o := module.Invoke(t.Context(), call)
		for _, sent := range call.Outbox() {
			fmt.Fprintf(&log, "send %s %s\n", sent.Topic, sent.Message.Data)
		}
		switch o.Class {
		case runtime.OK:
			fmt.Fprintln(&log, "ok")
		case runtime.GuestError:
			fmt.Fprintf(&log, "error %s %s\n", o.Detail, o.GuestText)
		default:
			t.Fatal(o.Reason(), o.Err)
		}
	}
	return log.String()
}
