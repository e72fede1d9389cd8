package app

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/longshore/longshore/cmd/host/internal/rollout"
	"github.com/longshore/longshore/cmd/host/internal/telemetry"
	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/examples/misbehaving"
	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/runtime"
)

// follower is a host whose consumers a manifest beside it decides.
type follower struct {
	*parts
	t        *testing.T
	compiled int // modules
}

// follow opens a host that runs nothing, until the test ends. Its log and deployments are in data.
func follow(t *testing.T, data string) *follower {
	t.Helper()
	h := parseHost(t, "data: "+data+"\nlisten: {http: '127.0.0.1:0'}\ntopics: [{topic: closed, default_lane: off}]\n")
	p, closeAll, err := open(t.Context(), Options{
		Host: h, Plan: &config.Plan{File: "m.yaml"}, Logger: zap.NewNop(), Build: telemetry.ReadBuild(),
		Beside: func(context.Context, Follow) error { return nil },
	})
	t.Cleanup(func() { require.NoError(t, closeAll()) })
	require.NoError(t, err)
	f := &follower{parts: p, t: t}
	compile := p.rollout.Compile
	p.rollout.Compile = func(ctx context.Context, c *config.Consumer, wasm []byte) (*runtime.Module, error) {
		f.compiled++
		return compile(ctx, c, wasm)
	}
	return f
}

// deploy follows these sources, and returns what became of them and what runs: name, module and version.
func (f *follower) deploy(sources ...rollout.Source) ([]rollout.Outcome, []string) {
	f.t.Helper()
	outcomes, err := f.follow(f.t.Context(), sources)
	require.NoError(f.t, err)
	return outcomes, f.runs()
}

func (f *follower) runs() (out []string) {
	for _, s := range f.dispatcher.Consumers() {
		out = append(out, s.Name+" "+s.Module+" "+s.Version)
	}
	return out
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

func TestFollow(t *testing.T) {
	a, b := entry(t, "name: a, topic: a"), entry(t, "name: b, topic: b")
	first, second, broken := wasm(t, "trap"), wasm(t, "divide"), []byte("no module")
	isNew := func(outcomes []rollout.Outcome) (out []bool) {
		for _, o := range outcomes {
			require.NoError(t, o.Refused)
			out = append(out, o.New)
		}
		return out
	}

	t.Run("ReplacesWhatIsAnotherAndLeavesTheRestUntouched", func(t *testing.T) {
		f := follow(t, t.TempDir())
		outcomes, _ := f.deploy(rollout.Source{Consumer: a, Wasm: first}, rollout.Source{Consumer: b, Wasm: first})
		require.Equal(t, []bool{true, true}, isNew(outcomes))
		require.Equal(t, 2, f.compiled)
		outcomes, runs := f.deploy(rollout.Source{Consumer: a, Wasm: second}, rollout.Source{Consumer: b, Wasm: first})
		require.Equal(t, []bool{true, false}, isNew(outcomes))
		require.Equal(t, []string{"a " + outcomes[0].Digest + " 2", "b " + outcomes[1].Digest + " 1"}, runs)
		require.NotEqual(t, outcomes[0].Digest, outcomes[1].Digest)
		require.Equal(t, 3, f.compiled)
		outcomes, runs = f.deploy(rollout.Source{Consumer: b})
		require.Equal(t, []string{"b " + outcomes[0].Digest + " 1"}, runs, "without a module it is as it was, and a is gone")
		require.Equal(t, 3, f.compiled)
	})
	t.Run("KeepsTheVersionBeforeOfAModuleThatIsRefusedAndDeploysTheOthers", func(t *testing.T) {
		f := follow(t, t.TempDir())
		_, before := f.deploy(rollout.Source{Consumer: a, Wasm: first})
		c := entry(t, "name: c, topic: c")
		outcomes, runs := f.deploy(rollout.Source{Consumer: a, Wasm: broken}, rollout.Source{Consumer: b, Wasm: broken}, rollout.Source{Consumer: c, Wasm: second})
		require.Equal(t, []string{before[0], "c " + outcomes[2].Digest + " 2"}, runs)
		require.ErrorContains(t, outcomes[0].Refused, "m.yaml:2:14: consumers[0].module: the host can't run it")
		require.False(t, outcomes[0].New)
		require.NotEmpty(t, outcomes[0].Digest)
		require.Error(t, outcomes[1].Refused)
		require.Empty(t, outcomes[1].Digest, "there is none before")
		require.NoError(t, outcomes[2].Refused)
		require.True(t, outcomes[2].New)
	})
	t.Run("TakesAnotherEntryForAnotherVersion", func(t *testing.T) {
		f := follow(t, t.TempDir())
		f.deploy(rollout.Source{Consumer: a, Wasm: first})
		outcomes, _ := f.deploy(rollout.Source{Consumer: entry(t, "name: a, topic: a, max_attempts: 2"), Wasm: first})
		require.Equal(t, []bool{true}, isNew(outcomes))
		require.Equal(t, 1, f.compiled, "it is compiled for the same bounds")
		outcomes, _ = f.deploy(rollout.Source{Consumer: entry(t, "name: a, topic: a, limits: {memory: 2MiB}"), Wasm: first})
		require.Equal(t, []bool{true}, isNew(outcomes))
		require.Equal(t, 2, f.compiled)
	})
	t.Run("ChangesNothingAfterAnError", func(t *testing.T) {
		f := follow(t, t.TempDir())
		_, before := f.deploy(rollout.Source{Consumer: a, Wasm: first})
		next := []rollout.Source{{Consumer: a, Wasm: second}, {Consumer: entry(t, "name: c, topic: closed"), Wasm: first}}
		_, err := f.follow(t.Context(), next)
		require.ErrorContains(t, err, `the host config turns the default lane of "closed" off (want a group)`)
		require.Equal(t, before, f.runs())
		swap := f.rollout.Swap
		f.rollout.Swap = func(context.Context, []dispatcher.Consumer) error { return dispatcher.ErrStopped }
		_, err = f.follow(t.Context(), next[:1])
		require.ErrorIs(t, err, dispatcher.ErrStopped)
		f.rollout.Swap = swap
		outcomes, runs := f.deploy(rollout.Source{Consumer: a, Wasm: first})
		require.Equal(t, before, runs)
		require.Equal(t, []bool{false}, isNew(outcomes))
	})
	t.Run("MakesTheLanesOfNewConsumers", func(t *testing.T) {
		f := follow(t, t.TempDir())
		grouped := rollout.Source{Consumer: entry(t, "name: a, topic: a, group: g"), Wasm: first}
		f.deploy(grouped)
		groups, err := f.log.Groups("default", "a")
		require.NoError(t, err)
		require.Len(t, groups, 1)
		require.NoError(t, f.log.DeleteGroup(t.Context(), "default", "a", "g"))
		f.deploy(grouped)
		groups, err = f.log.Groups("default", "a")
		require.NoError(t, err)
		require.Empty(t, groups, "an operator has deleted it since")
	})
	t.Run("KeepsVersionsThatAreSeenAndThatNobodyElseMakes", func(t *testing.T) {
		f := follow(t, t.TempDir())
		f.deploy(rollout.Source{Consumer: a, Wasm: first})
		f.deploy(rollout.Source{Consumer: a, Wasm: first})
		f.deploy(rollout.Source{Consumer: a, Wasm: second})
		versions := f.rollout.History("default")
		require.Len(t, versions.Versions, 2)
		require.Equal(t, "dev m.yaml", versions.Versions[0].What)
		_, err := f.rollout.Apply(t.Context(), rollout.Who{}, wire.Apply{Manifest: "consumers: []"})
		require.ErrorIs(t, err, rollout.ErrHeld)
		_, err = f.rollout.Rollback(t.Context(), rollout.Who{Tenant: "default"}, 0)
		require.ErrorIs(t, err, rollout.ErrHeld)
		require.ErrorIs(t, f.deleteTenant(t.Context(), "default"), rollout.ErrHeld)
		require.NoError(t, f.rollout.Forget(t.Context(), "gone"), "what a crash has interrupted is finished")
	})
	t.Run("RunsNothingOfTheSessionBeforeThatItWasNotGiven", func(t *testing.T) {
		data := t.TempDir()
		t.Run("", func(t *testing.T) { follow(t, data).deploy(rollout.Source{Consumer: a, Wasm: first}) })
		f := follow(t, data)
		outcomes, runs := f.deploy(rollout.Source{Consumer: a}, rollout.Source{Consumer: b, Wasm: first})
		require.Equal(t, []string{"b " + outcomes[1].Digest + " 2"}, runs)
		require.Empty(t, outcomes[0].Digest)
	})
	t.Run("ReplacesACanaryWhole", func(t *testing.T) {
		f := follow(t, t.TempDir())
		f.deploy(rollout.Source{Consumer: a, Wasm: first})
		outcomes, runs := f.deploy(rollout.Source{Consumer: entry(t, "name: a, topic: a, canary: {share: 10%}"), Wasm: second})
		require.Equal(t, []string{"a " + outcomes[0].Digest + " 2"}, runs)
	})
}

func TestBesideStopsTheHostWithItsError(t *testing.T) {
	h := parseHost(t, "data: "+t.TempDir()+"\nlisten: {http: '127.0.0.1:0'}\n")
	err := Run(t.Context(), Options{
		Host: h, Plan: &config.Plan{}, Logger: zap.NewNop(), Build: telemetry.ReadBuild(),
		Beside: func(context.Context, Follow) error { return context.DeadlineExceeded },
	})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.False(t, strings.Contains(err.Error(), "close"), err)
}
