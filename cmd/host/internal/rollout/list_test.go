package rollout

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/runtime"
)

func TestListingVersions(t *testing.T) {
	type step struct{ reached, goOn chan struct{} }
	newStep := func() step { return step{make(chan struct{}), make(chan struct{})} }
	// A deployer that stops where it compiles and where it swaps.
	prepare := func(t *testing.T) (d *Deployer, apply func() error, compile, swap step) {
		t.Helper()
		compile, swap = newStep(), newStep()
		s := openStore(t, t.TempDir())
		d = New(Options{
			Host: config.DefaultHost(), Store: s, Logger: zap.NewNop(),
			Compile: func(context.Context, *config.Consumer, []byte) (*runtime.Module, error) {
				close(compile.reached)
				<-compile.goOn
				return nil, nil
			},
			Consumer: func(c *config.Consumer, _ *runtime.Module) dispatcher.Consumer {
				return dispatcher.Consumer{Name: c.Name}
			},
			Lanes: func(context.Context, []config.Consumer) error { return nil },
			Swap: func(context.Context, []dispatcher.Consumer) error {
				close(swap.reached)
				<-swap.goOn
				return nil
			},
		})
		a := wire.Apply{
			Manifest: "consumers: [{name: a, tenant: acme, topic: t, module: a.wasm}]",
			Modules:  map[string]string{"a.wasm": put(t, s, "acme", "module")},
		}
		return d, func() error {
			_, err := d.Apply(t.Context(), Who{Tenant: "acme"}, a)
			return err
		}, compile, swap
	}
	listed := func(d *Deployer) [2]int { return [2]int{len(d.History("acme").Versions), len(d.Current().Versions)} }

	t.Run("DoesNotWaitForADeploymentAndShowsItWhenItRuns", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d, apply, compile, swap := prepare(t)
			done := make(chan error, 1)
			go func() { done <- apply() }()
			<-compile.reached
			before := d.Current().Tag
			require.Equal(t, [2]int{}, listed(d))
			close(compile.goOn)
			<-swap.reached
			require.Len(t, d.Store.Versions("acme"), 1, "it is kept before it runs")
			require.Equal(t, [2]int{}, listed(d))
			require.Equal(t, before, d.Current().Tag)
			close(swap.goOn)
			require.NoError(t, <-done)
			require.Equal(t, [2]int{1, 1}, listed(d))
			require.True(t, d.History("acme").Versions[0].Runs)
			require.NotEqual(t, before, d.Current().Tag)
		})
	})
}
