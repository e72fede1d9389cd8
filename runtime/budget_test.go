package runtime_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/runtime"
)

func TestBudget(t *testing.T) {
	e := newEngine(t)
	b := runtime.NewBudget(2)
	deploy := func(w runtime.Within) *runtime.Module {
		m, err := e.CompileWithin(t.Context(), "small", wasmModule{handler: []byte(opConst(0))}.assemble(), testLimits(), runtime.Instances{}, w)
		require.NoError(t, err)
		return m
	}
	invoke := func(m *runtime.Module) {
		require.Equal(t, runtime.OK, m.Invoke(t.Context(), newCall("", nil)).Class)
	}
	var modules []*runtime.Module
	for range 3 {
		modules = append(modules, deploy(runtime.Within{Budget: b}))
	}
	other := deploy(runtime.Within{})
	invoke(other)

	t.Run("IdleInstancesOfOneModuleMakeRoomForAnother", func(t *testing.T) {
		for range 2 {
			for _, m := range modules {
				invoke(m)
				require.LessOrEqual(t, b.Instances(), 2)
				require.Equal(t, 1, m.Idle(), "of the module that ran last")
			}
		}
		require.Equal(t, 2, b.Instances())
	})

	t.Run("OthersKeepTheirs", func(t *testing.T) {
		require.Equal(t, 1, other.Idle())
	})

	t.Run("AClosedModuleTakesNothing", func(t *testing.T) {
		for _, m := range modules {
			require.NoError(t, m.Close(t.Context()))
		}
		require.Zero(t, b.Instances())
	})
}
