package runtime_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
)

// Where there is no address space for the memory of an instance, the message is not to blame: its call ends as a fault of
// the module. Idle instances make room before that.
func TestRoom(t *testing.T) {
	e := newEngine(t)
	if e.Cleaning() == "heap-copy" {
		t.Skip("memories are not reserved")
	}
	g := testLimits()
	g.MemoryBytes = 64 * limits.MiB
	deploy := func() *runtime.Module {
		m, err := e.Compile(t.Context(), "guest", wasmModule{handler: []byte(opConst(0))}.assemble(), g)
		require.NoError(t, err)
		return m
	}
	invoke := func(m *runtime.Module) runtime.Outcome { return m.Invoke(t.Context(), newCall("", nil)) }
	one, two := deploy(), deploy()
	e.BoundRoom(g.MemoryBytes)
	for range 2 {
		for _, m := range []*runtime.Module{one, two} {
			o := invoke(m)
			require.Equal(t, runtime.OK, o.Class, o.Err)
			require.Equal(t, 1, m.Idle())
		}
		require.Zero(t, one.Idle(), "it made room for the other one")
	}

	spinning := hostile()["Spinning"]
	endless, running := endless(nil)
	m, err := e.Compile(t.Context(), "spinning", spinning.assemble(), g)
	require.NoError(t, err)
	ended := make(chan runtime.Outcome)
	ctx, cut := context.WithCancel(t.Context())
	defer cut()
	go func() { ended <- m.Invoke(ctx, endless) }()
	<-running
	o := invoke(one)
	require.Equal(t, "module-fault", o.Reason())
	require.ErrorContains(t, o.Err, "no room for another memory")
	require.Zero(t, o.FuelUsed)
	_, err = e.Compile(t.Context(), "guest", wasmModule{handler: []byte(opConst(0))}.assemble(), g)
	require.ErrorContains(t, err, "no room for another memory")
	var refused *runtime.ModuleError
	require.NotErrorAs(t, err, &refused, "the module isn't to blame")
	cut()
	require.Equal(t, runtime.Interrupted, (<-ended).Class)
	require.Equal(t, runtime.OK, invoke(one).Class, "there is room again")
}
