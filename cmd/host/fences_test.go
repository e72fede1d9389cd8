package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/cmd/host/internal/cli"
	"github.com/longshore/longshore/substrate"
)

// prepareLog changes the log of the host that is to run in dir.
func prepareLog(t *testing.T, dir string, change func(l *substrate.Log)) {
	t.Helper()
	l, err := substrate.Open(t.Context(), substrate.Options{Dir: filepath.Join(dir, "longshore-data", "log")})
	require.NoError(t, err)
	change(l)
	require.NoError(t, l.Close())
}

func TestFenceCommands(t *testing.T) {
	dir := t.TempDir()
	prepareLog(t, dir, func(l *substrate.Log) {
		_, _, err := l.CreateGroup(t.Context(), "default", "jobs", "g", substrate.GroupOptions{})
		require.NoError(t, err)
		_, err = l.SetLaneMode(t.Context(), "default", "jobs", substrate.LaneOn)
		require.NoError(t, err)
		_, err = l.Publish(t.Context(), substrate.Message{ID: l.MintID(), Tenant: "default", Topic: "jobs"})
		require.NoError(t, err)
		for lane, keys := range map[string][]string{"": {"b", "a\x1b[31m"}, "g": {"c"}} {
			got, err := l.Claim(t.Context(), substrate.ClaimRequest{
				Tenant: "default", Topic: "jobs", Lane: lane, MaxMessages: 1, MaxBytes: 1, Lease: time.Minute, MaxAttempts: 1,
			})
			require.NoError(t, err)
			for _, key := range keys {
				require.NoError(t, l.RaiseFence(t.Context(), got.Deliveries[0].Lease, substrate.Fence{Key: key, Token: 7}))
			}
		}
	})
	startHost(t, dir)

	t.Run("ListShowsTheMarksOfALaneByKeyMadeVisible", func(t *testing.T) {
		require.Regexp(t, `^KEY +TOKEN +RAISED\na\\u001b\[31m +7 +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\nb +7 +\d{4}.*\n$`, ok(t, dir, "fences", "list", "jobs"))
		require.Equal(t, "c\n", ok(t, dir, "fences", "list", "jobs", "--lane", "g", "-o", "name"))
		require.Contains(t, ok(t, dir, "fences", "list", "jobs", "--lane", "g", "-o", "json"), `"token": 7`)
	})
	t.Run("ResetAsks", func(t *testing.T) {
		a := run(t, dir, "", "fences", "reset", "jobs", "--all")
		require.Equal(t, cli.ExitUsage, a.code)
		require.Contains(t, a.err, "2 fence marks of jobs would be reset")
		require.Contains(t, a.err, "add --yes")
		a = run(t, dir, "n\n", "fences", "reset", "jobs", "--all")
		require.Equal(t, cli.ExitFailed, a.code)
		require.Contains(t, a.err, "nothing was changed")
		require.Equal(t, "2  would be reset\n", ok(t, dir, "fences", "reset", "jobs", "--all", "--dry-run"))
		require.Equal(t, 2, strings.Count(ok(t, dir, "fences", "list", "jobs", "-o", "name"), "\n"))
	})
	t.Run("ResetForgetsOneOrAll", func(t *testing.T) {
		require.Equal(t, "0  would be reset\n", ok(t, dir, "fences", "reset", "jobs", "--key", "c", "--yes"), "of another lane")
		require.Equal(t, "1  reset\n", ok(t, dir, "fences", "reset", "jobs", "--key", "b", "--yes"))
		require.Equal(t, 1, strings.Count(ok(t, dir, "fences", "list", "jobs", "-o", "name"), "\n"))
		require.Equal(t, "1  reset\n", ok(t, dir, "fences", "reset", "jobs", "--all", "-y"))
		require.Empty(t, ok(t, dir, "fences", "list", "jobs", "-o", "name"))
		require.Equal(t, "c\n", ok(t, dir, "fences", "list", "jobs", "--lane", "g", "-o", "name"))
	})
	t.Run("ExitCodes", func(t *testing.T) {
		for _, c := range []struct {
			code int
			says string
			args []string
		}{
			{cli.ExitUsage, "needs one of", []string{"fences"}},
			{cli.ExitUsage, "takes TOPIC", []string{"fences", "list"}},
			{cli.ExitUsage, "--key", []string{"fences", "reset", "jobs"}},
			{cli.ExitUsage, "--key", []string{"fences", "reset", "jobs", "--key", "", "--yes"}},
			{cli.ExitUsage, "--key", []string{"fences", "reset", "jobs", "--key", "a", "--all"}},
			{cli.ExitFailed, "not found", []string{"fences", "list", "unknown"}},
			{cli.ExitFailed, "no such consumer group", []string{"fences", "reset", "jobs", "--lane", "h", "--all"}},
		} {
			a := run(t, dir, "", c.args...)
			require.Equal(t, c.code, a.code, "%v: %s", c.args, a.err)
			require.Contains(t, a.err, c.says)
			require.Empty(t, a.out)
		}
	})
}
