package main

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/cmd/host/internal/cli"
	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/dispatcher"
)

// TestACanaryRunsBesideTheVersionBefore deploys a change for half of the messages, gives it up, and deploys one for all.
func TestACanaryRunsBesideTheVersionBefore(t *testing.T) {
	dir, s := t.TempDir(), shop{t, t.TempDir()}
	p := startHost(t, dir)
	const a, half = "name: a, topic: a, module: a.wasm, max_attempts: 1", ", canary: {share: 50%}"
	done := func() (acked, dead uint64) {
		stats, err := p.admin.Topic(t.Context(), "default", "a")
		require.NoError(t, err)
		return stats.Acked, stats.Buried
	}
	publish := func(n string) {
		t.Helper()
		ok(t, dir, "publish", "a", "--data", "x", "-n", n)
		require.Eventually(t, func() bool {
			stats, err := p.admin.Topic(t.Context(), "default", "a")
			return err == nil && stats.Ready+stats.Leased+stats.Delayed == 0
		}, 20*time.Second, 20*time.Millisecond)
	}
	s.module("ok")
	manifest := s.write(a + half)
	ok(t, dir, "apply", "-f", manifest)
	publish("10")
	acked, dead := done()
	require.EqualValues(t, 10, acked, "nothing was there to run beside")
	require.Zero(t, dead)

	s.module("trap")
	require.Regexp(t, `a +changed +canary.share +50%`, ok(t, dir, "apply", "-f", manifest))
	publish("100")
	acked, dead = done()
	require.EqualValues(t, 110, acked+dead)
	require.InDelta(t, 50, dead, 35)
	letters, err := p.admin.DeadLetters(t.Context(), "default", "a", wire.Filter{})
	require.NoError(t, err)
	for _, l := range letters {
		var r dispatcher.Receipt
		require.NoError(t, json.Unmarshal(l.Receipt, &r))
		require.Equal(t, []any{"2", digestOf(t, "trap"), true}, []any{r.Version, r.Module, r.Canary})
	}
	all, err := p.admin.Consumers(t.Context())
	require.NoError(t, err)
	require.Equal(t, "1", all[0].Version)
	require.Equal(t, "2", all[0].Canary.Version)
	require.Equal(t, 50, all[0].Canary.Percent)

	kill(t, p)
	p = startHost(t, dir)
	all, err = p.admin.Consumers(t.Context())
	require.NoError(t, err)
	require.Equal(t, 50, all[0].Canary.Percent, "it goes on after a crash")
	ok(t, dir, "rollback")
	publish("20")
	now, still := done()
	require.Equal(t, acked+20, now)
	require.Equal(t, dead, still)
	require.Equal(t, cli.ExitFailed, run(t, dir, "", "promote").code, "there is nothing to promote")

	s.write(a + ", lease: 77s" + half)
	out := run(t, dir, "", "apply", "-f", manifest)
	require.Equal(t, cli.ExitUsage, out.code, out.err)
	require.Regexp(t, regexp.QuoteMeta(filepath.Base(manifest))+`:2:\d+: consumers\[0\].lease: it differs from the version`, out.err)
	s.write(a + half)
	ok(t, dir, "apply", "-f", manifest)
	require.Contains(t, ok(t, dir, "promote", "a"), "canary.share")
	publish("10")
	_, dead = done()
	require.Equal(t, still+10, dead)
	require.Contains(t, run(t, dir, "", "apply", "-f", manifest).err, "nothing changed", "it was promoted before")
	require.Equal(t, "promote a", history(t, dir)[0].What)
}
