package runtime_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
)

// What modules of one memory limit share goes with the last of them.
func TestModulesLeaveNothingBehind(t *testing.T) {
	e, err := runtime.New(t.Context(), runtime.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close(t.Context())) })
	wasm := wasmModule{handler: []byte(opConst(0))}.assemble()
	var open []*runtime.Module
	for _, memory := range []int64{limits.MiB, 2 * limits.MiB, 2 * limits.MiB} {
		g := testLimits()
		g.MemoryBytes = memory
		m, err := e.Compile(t.Context(), "m", wasm, g)
		require.NoError(t, err)
		open = append(open, m)
	}
	refused := testLimits()
	refused.MemoryBytes = 3 * limits.MiB
	for _, bad := range []wasmModule{{handler: []byte("\x42\x00")}, {noMemory: true}} {
		_, err := e.Compile(t.Context(), "bad", bad.assemble(), refused)
		require.Error(t, err)
	}
	require.Equal(t, 2, e.Runtimes())
	for i, left := range []int{1, 1, 0} {
		require.NoError(t, open[i].Close(t.Context()))
		require.Equal(t, left, e.Runtimes())
	}
	again, err := e.Compile(t.Context(), "m", wasm, testLimits())
	require.NoError(t, err)
	require.NoError(t, again.Close(t.Context()))
}
