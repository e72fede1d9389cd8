package rollout

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
)

func TestRehearse(t *testing.T) {
	s := openStore(t, t.TempDir())
	digest := put(t, s, "acme", "module")
	var compiled []string
	var given dispatcher.Consumer
	d := New(Options{
		Host: config.DefaultHost(), Store: s, Logger: zap.NewNop(),
		Compile: func(_ context.Context, c *config.Consumer, wasm []byte) (*runtime.Module, error) {
			compiled = append(compiled, c.Name+" "+string(wasm))
			return nil, nil
		},
		Consumer: func(c *config.Consumer, _ *runtime.Module) dispatcher.Consumer {
			return dispatcher.Consumer{Name: c.Name, Tenant: c.Tenant, MaxAttempts: c.MaxAttempts}
		},
		Rehearse: func(next dispatcher.Consumer) (*dispatcher.Rehearsal, error) {
			given = next
			return &dispatcher.Rehearsal{}, nil
		},
	})
	who := Who{Subject: "local:1000", Tenant: "acme"}
	ask := wire.Rehearse{
		Consumer: "a", File: "x/consumers.yaml", Modules: map[string]string{"a.wasm": digest},
		Manifest: "consumers:\n  - {name: a, tenant: acme, topic: t, module: a.wasm, max_attempts: 2, canary: {share: 5%}}\n" +
			"  - {name: b, tenant: acme, topic: t, group: g, module: gone.wasm}\n",
	}

	t.Run("OneConsumerIsResolvedAndCompiledAsAppliedAndNothingElse", func(t *testing.T) {
		r, err := d.Rehearse(t.Context(), who, ask)
		require.NoError(t, err)
		defer r.Close(t.Context())
		require.Equal(t, []string{"a module"}, compiled)
		require.Equal(t, dispatcher.Consumer{Name: "a", Tenant: "acme", MaxAttempts: 2, Version: "1"}, given)
		require.Empty(t, d.current)
		require.Empty(t, s.Versions("acme"))
	})
	t.Run("OneATenantAndFewAtOnce", func(t *testing.T) {
		first, err := d.Rehearse(t.Context(), who, ask)
		require.NoError(t, err)
		_, err = d.Rehearse(t.Context(), who, ask)
		require.ErrorIs(t, err, ErrRehearsing)
		var ends []func()
		for i := range limits.Rehearsals - 1 {
			end, err := d.rehearsals.begin(fmt.Sprint("t", i))
			require.NoError(t, err)
			ends = append(ends, end)
		}
		_, err = d.Rehearse(t.Context(), Who{Tenant: "another"}, ask)
		require.ErrorIs(t, err, &limits.Error{Name: limits.NameRehearsals})
		for _, end := range append(ends, func() { first.Close(t.Context()) }) {
			end()
		}
		_, err = d.Rehearse(t.Context(), who, wire.Rehearse{Consumer: "nobody", Manifest: ask.Manifest})
		require.ErrorIs(t, err, ErrNoConsumer)
		r, err := d.Rehearse(t.Context(), who, ask)
		require.NoError(t, err, "after an error the turn is free")
		r.Close(t.Context())
	})
	t.Run("AModuleThatIsAnothersIsRefused", func(t *testing.T) {
		others := ask
		others.Modules = map[string]string{"a.wasm": put(t, s, "other", "secret")}
		_, err := d.Rehearse(t.Context(), who, others)
		require.ErrorContains(t, err, "consumers.yaml:2:")
		require.ErrorContains(t, err, "the host doesn't have "+digestOf("secret"))
	})
	t.Run("AConsumerOfAnotherTenantIsNotThere", func(t *testing.T) {
		_, err := d.Rehearse(t.Context(), Who{Tenant: "other"}, ask)
		require.ErrorIs(t, err, ErrNoConsumer)
	})
}
