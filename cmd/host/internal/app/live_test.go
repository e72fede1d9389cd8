package app

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/longshore/longshore/cmd/host/internal/telemetry"
	"github.com/longshore/longshore/examples/misbehaving"
	"github.com/longshore/longshore/internal/config"
)

// liveHost runs a host until the test ends. The returned function calls f while the host has no consumers yet.
func liveHost(t *testing.T) func(t *testing.T, f func(ctx context.Context, l *Live)) {
	t.Helper()
	h := parseHost(t, "data: "+t.TempDir()+"\nlisten: {http: '127.0.0.1:0'}\ntopics: [{topic: closed, default_lane: off}]\n")
	ctx, stop := context.WithCancel(t.Context())
	begun, ended := make(chan *Live, 1), make(chan error, 1)
	go func() {
		ended <- Run(ctx, Options{
			Host: h, Plan: &config.Plan{}, Logger: zap.NewNop(), Build: telemetry.ReadBuild(),
			Beside: func(ctx context.Context, l *Live) error {
				begun <- l
				<-ctx.Done()
				return nil
			},
		})
	}()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	var live *Live
	select {
	case live = <-begun:
	case err := <-ended:
		ended <- err
		require.FailNow(t, "the host ended", err)
	}
	return func(t *testing.T, f func(context.Context, *Live)) {
		t.Helper()
		_, err := live.Deploy(ctx, nil)
		require.NoError(t, err)
		f(ctx, live)
	}
}

// wasm returns a module of examples/misbehaving.
func wasm(t *testing.T, name string) []byte {
	t.Helper()
	for _, m := range misbehaving.All() {
		if m.Name == name {
			return m.Wasm
		}
	}
	require.FailNow(t, "there is no such module", name)
	return nil
}

// entry returns a consumer of a manifest, given as a flow mapping without its module.
func entry(t *testing.T, text string) config.Consumer {
	t.Helper()
	plan, err := config.ParseManifest(filepath.Join(t.TempDir(), "m.yaml"), []byte("consumers:\n  - {module: m.wasm, "+text+"}\n"),
		parseHost(t, ""))
	require.NoError(t, err)
	return plan.Consumers[0]
}

func TestDeploy(t *testing.T) {
	beside := liveHost(t)
	a, b := entry(t, "name: a, topic: a"), entry(t, "name: b, topic: b")
	first, second := wasm(t, "trap"), wasm(t, "divide")
	isNew := func(outcomes []Outcome) (out []bool) {
		for _, o := range outcomes {
			require.NoError(t, o.Refused)
			out = append(out, o.New)
		}
		return out
	}
	// deploy deploys a version of each consumer and returns the digests of what runs.
	deploy := func(t *testing.T, ctx context.Context, l *Live, versions ...Version) ([]Outcome, []string) {
		t.Helper()
		outcomes, err := l.Deploy(ctx, versions)
		require.NoError(t, err)
		var digests []string
		for _, s := range l.parts.dispatcher.Consumers() {
			digests = append(digests, s.Name+" "+s.Module)
		}
		return outcomes, digests
	}

	t.Run("ReplacesWhatIsAnotherAndLeavesTheRestUntouched", func(t *testing.T) {
		beside(t, func(ctx context.Context, l *Live) {
			outcomes, _ := deploy(t, ctx, l, Version{a, first}, Version{b, first})
			require.Equal(t, []bool{true, true}, isNew(outcomes))
			untouched := l.running[consumerKey{"default", "b"}].module
			outcomes, digests := deploy(t, ctx, l, Version{a, second}, Version{b, first})
			require.Equal(t, []bool{true, false}, isNew(outcomes))
			require.Equal(t, []string{"a " + outcomes[0].Digest, "b " + outcomes[1].Digest}, digests)
			require.NotEqual(t, outcomes[0].Digest, outcomes[1].Digest)
			require.Same(t, untouched, l.running[consumerKey{"default", "b"}].module)
			outcomes, digests = deploy(t, ctx, l, Version{b, nil})
			require.Equal(t, []string{"b " + outcomes[0].Digest}, digests, "nil is as it was, and a is gone")
		})
	})
	t.Run("KeepsTheVersionBeforeOfAModuleThatIsRefused", func(t *testing.T) {
		beside(t, func(ctx context.Context, l *Live) {
			_, before := deploy(t, ctx, l, Version{a, first})
			outcomes, digests := deploy(t, ctx, l, Version{a, []byte("no module")}, Version{b, []byte("no module")})
			require.Equal(t, before, digests)
			require.ErrorContains(t, outcomes[0].Refused, "m.yaml:2:14: consumers[0].module: the host can't run it")
			require.False(t, outcomes[0].New)
			require.NotEmpty(t, outcomes[0].Digest)
			require.Error(t, outcomes[1].Refused)
			require.Empty(t, outcomes[1].Digest, "there is none before")
		})
	})
	t.Run("TakesAnotherEntryForAnotherVersion", func(t *testing.T) {
		beside(t, func(ctx context.Context, l *Live) {
			deploy(t, ctx, l, Version{a, first})
			module := l.running[consumerKey{"default", "a"}].module
			outcomes, _ := deploy(t, ctx, l, Version{entry(t, "name: a, topic: a, max_attempts: 2"), first})
			require.Equal(t, []bool{true}, isNew(outcomes))
			require.Same(t, module, l.running[consumerKey{"default", "a"}].module, "which is compiled for the same bounds")
			outcomes, _ = deploy(t, ctx, l, Version{entry(t, "name: a, topic: a, limits: {memory: 2MiB}"), first})
			require.Equal(t, []bool{true}, isNew(outcomes))
			require.NotSame(t, module, l.running[consumerKey{"default", "a"}].module)
		})
	})
	t.Run("ChangesNothingAfterAnError", func(t *testing.T) {
		beside(t, func(ctx context.Context, l *Live) {
			_, before := deploy(t, ctx, l, Version{a, first})
			_, err := l.Deploy(ctx, []Version{{a, second}, {entry(t, "name: c, topic: closed"), first}})
			require.ErrorContains(t, err, "default_lane: off")
			outcomes, digests := deploy(t, ctx, l, Version{a, first})
			require.Equal(t, before, digests)
			require.Equal(t, []bool{false}, isNew(outcomes))
		})
	})
	t.Run("MakesTheLanesOfNewConsumers", func(t *testing.T) {
		beside(t, func(ctx context.Context, l *Live) {
			deploy(t, ctx, l, Version{entry(t, "name: a, topic: a, group: g"), first})
			groups, err := l.parts.log.Groups("default", "a")
			require.NoError(t, err)
			require.Len(t, groups, 1)
			require.NoError(t, l.parts.log.DeleteGroup(ctx, "default", "a", "g"))
			deploy(t, ctx, l, Version{entry(t, "name: a, topic: a, group: g"), first})
			groups, err = l.parts.log.Groups("default", "a")
			require.NoError(t, err)
			require.Empty(t, groups, "an operator has deleted it since")
		})
	})
}

func TestBesideStopsTheHostWithItsError(t *testing.T) {
	h := parseHost(t, "data: "+t.TempDir()+"\nlisten: {http: '127.0.0.1:0'}\n")
	err := Run(t.Context(), Options{
		Host: h, Plan: &config.Plan{}, Logger: zap.NewNop(), Build: telemetry.ReadBuild(),
		Beside: func(context.Context, *Live) error { return context.DeadlineExceeded },
	})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.False(t, strings.Contains(err.Error(), "close"), err)
}
