package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/cmd/host/internal/cli"
	"github.com/longshore/longshore/cmd/host/internal/wire"
)

func TestPublishCommand(t *testing.T) {
	dir := t.TempDir()
	p := startHost(t, dir)
	payloads := func(t *testing.T, topic string) []string {
		t.Helper()
		got, err := p.admin.Peek(t.Context(), "default", topic, 0, 100)
		require.NoError(t, err)
		out := make([]string, len(got))
		for i, m := range got {
			out[i] = string(m.Message.DataBase64)
		}
		return out
	}
	t.Run("FromStdin", func(t *testing.T) {
		a := run(t, dir, "from stdin", "publish", "stdin", "-o", "name")
		require.Equal(t, cli.ExitOK, a.code, a.err)
		require.Regexp(t, `^\d{13}-[0-9a-f]{16}\n$`, a.out)
		require.Equal(t, []string{"from stdin"}, payloads(t, "stdin"))
	})
	t.Run("FromFilesEachSoManyTimes", func(t *testing.T) {
		one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
		require.NoError(t, os.WriteFile(one, []byte("1\n"), 0o600))
		require.NoError(t, os.WriteFile(two, nil, 0o600))
		a := run(t, dir, "", "publish", "files", "--file", one, "--file", two, "-n", "2", "-o", "json")
		require.Equal(t, cli.ExitOK, a.code, a.err)
		var got wire.Published
		require.NoError(t, json.Unmarshal([]byte(a.out), &got))
		require.Len(t, got.Receipts, 4)
		require.Equal(t, []string{"1\n", "", "1\n", ""}, payloads(t, "files"))
	})
	t.Run("MoreThanOneRequestTakes", func(t *testing.T) {
		a := run(t, dir, "", "publish", "many", "--data", "x", "-n", "2500", "-o", "name")
		require.Equal(t, cli.ExitOK, a.code, a.err)
		require.Equal(t, 2500, strings.Count(a.out, "\n"))
	})
	t.Run("MetadataAndContentType", func(t *testing.T) {
		a := run(t, dir, "", "publish", "meta", "--data", "x", "--content-type", "text/plain", "--metadata", "k=v=w", "--metadata", "k=")
		require.Equal(t, cli.ExitOK, a.code, a.err)
		got, err := p.admin.Peek(t.Context(), "default", "meta", 0, 1)
		require.NoError(t, err)
		require.Equal(t, "text/plain", got[0].Message.ContentType)
		require.Equal(t, []wire.Pair{{Key: "k", Value: "v=w"}, {Key: "k", Value: ""}}, got[0].Message.Metadata)
	})
	t.Run("ARefusalSaysWhyAndHowMuchIsPublished", func(t *testing.T) {
		require.Equal(t, cli.ExitOK, run(t, dir, "", "policy", "set", "full", "--max-depth", "1500").code)
		a := run(t, dir, "", "publish", "full", "--data", "x", "-n", "2000", "-o", "name")
		require.Equal(t, cli.ExitRefused, a.code)
		require.Contains(t, a.err, "max_depth is 1500")
		require.Equal(t, 1000, strings.Count(a.out, "\n"), "the receipts of the batch that was published")
	})
	t.Run("TextOfStrangersIsMadeVisible", func(t *testing.T) {
		a := run(t, dir, "", "publish", "a\x1b[31m", "--data", "x")
		require.Equal(t, cli.ExitUsage, a.code)
		require.NotContains(t, a.err, "\x1b")
	})
}

func TestDeadLetterCommands(t *testing.T) {
	dir := t.TempDir()
	misbehave(t, dir, "max_attempts: 1", "trap", "exit")
	p := startHost(t, dir)
	require.Equal(t, cli.ExitOK, run(t, dir, "", "publish", "trap", "--data", "p\x1by", "-n", "3").code)
	require.Equal(t, cli.ExitOK, run(t, dir, "", "publish", "exit", "--data", "x").code)
	dead := func(topic string) int64 {
		s, err := p.admin.Topic(t.Context(), "default", topic)
		require.NoError(t, err)
		return s.DeadLetters
	}
	require.Eventually(t, func() bool { return dead("trap") == 3 && dead("exit") == 1 }, 10*time.Second, 10*time.Millisecond)

	t.Run("ListShowsReasonsAndFilters", func(t *testing.T) {
		a := run(t, dir, "", "dlq", "list", "trap")
		require.Equal(t, cli.ExitOK, a.code, a.err)
		require.Equal(t, 4, strings.Count(a.out, "\n"))
		require.Contains(t, a.out, "guest-trap: unreachable")
		require.Equal(t, 2, strings.Count(run(t, dir, "", "dlq", "list", "trap", "--limit", "2", "-o", "name").out, "\n"))
		require.Empty(t, run(t, dir, "", "dlq", "list", "trap", "--reason", "timeout", "-o", "name").out)
		require.Empty(t, run(t, dir, "", "dlq", "list", "trap", "--older-than", "1h", "-o", "name").out)
		require.Equal(t, 3, strings.Count(run(t, dir, "", "dlq", "list", "trap", "--lane", "default", "-o", "name").out, "\n"))
	})
	t.Run("ShowHasTheMessageMadeVisible", func(t *testing.T) {
		id := strings.TrimSpace(run(t, dir, "", "dlq", "list", "trap", "--limit", "1", "-o", "name").out)
		a := run(t, dir, "", "dlq", "show", "trap", id)
		require.Equal(t, cli.ExitOK, a.code, a.err)
		require.Contains(t, a.out, `p\u001by`)
		require.Equal(t, cli.ExitFailed, run(t, dir, "", "dlq", "show", "trap", "0000000000000-0000000000000000").code)
	})
	t.Run("AFilterThatIsEmptyIsRefusedAndMovesNothing", func(t *testing.T) {
		for _, flags := range [][]string{{"--id", ""}, {"--reason", ""}, {"--lane", ""}, {"--older-than", "0s"}} {
			for _, command := range []string{"discard", "redrive", "list"} {
				args := append([]string{"dlq", command, "trap"}, flags...)
				if command != "list" {
					args = append(args, "--yes")
				}
				a := run(t, dir, "", args...)
				require.Equal(t, cli.ExitUsage, a.code, args)
				require.Contains(t, a.err, flags[0])
				require.Contains(t, a.err, "want ")
			}
		}
		require.EqualValues(t, 3, dead("trap"))
	})
	t.Run("WithoutATerminalNothingIsChangedWithoutYes", func(t *testing.T) {
		a := run(t, dir, "", "dlq", "discard", "trap")
		require.Equal(t, cli.ExitUsage, a.code)
		require.Contains(t, a.err, "3 dead letters of trap would be discarded")
		require.Contains(t, a.err, "add --yes")
		require.EqualValues(t, 3, dead("trap"))
	})
	t.Run("OnATerminalNoIsTheDefault", func(t *testing.T) {
		a := run(t, dir, "\n", "dlq", "discard", "trap")
		require.Equal(t, cli.ExitFailed, a.code)
		require.Contains(t, a.err, "discard them? [y/N]")
		require.EqualValues(t, 3, dead("trap"))
	})
	t.Run("DryRunOnlyCounts", func(t *testing.T) {
		a := run(t, dir, "", "dlq", "redrive", "trap", "--dry-run", "-o", "json")
		require.Equal(t, cli.ExitOK, a.code, a.err)
		require.JSONEq(t, `{"count":3,"dry_run":true}`, a.out)
	})
	t.Run("YesOnATerminalDoesIt", func(t *testing.T) {
		a := run(t, dir, "y\n", "dlq", "discard", "trap", "--limit", "1", "-o", "name")
		require.Equal(t, cli.ExitOK, a.code, a.err)
		require.Equal(t, "1\n", a.out)
		require.EqualValues(t, 2, dead("trap"))
	})
	t.Run("RedriveRunsThemAgain", func(t *testing.T) {
		a := run(t, dir, "", "dlq", "redrive", "trap", "--yes", "-o", "name")
		require.Equal(t, cli.ExitOK, a.code, a.err)
		require.Equal(t, "2\n", a.out)
		require.Eventually(t, func() bool { return dead("trap") == 2 }, 10*time.Second, 10*time.Millisecond)
		list, err := p.admin.DeadLetters(t.Context(), "default", "trap", wire.Filter{})
		require.NoError(t, err)
		require.Equal(t, 1, list[0].Redriven)
	})
	t.Run("NothingToMoveIsNoFault", func(t *testing.T) {
		a := run(t, dir, "", "dlq", "discard", "trap", "--reason", "no such")
		require.Equal(t, cli.ExitOK, a.code, a.err)
	})
}

func TestPolicyCommands(t *testing.T) {
	dir := t.TempDir()
	startHost(t, dir)
	a := run(t, dir, "", "policy", "set", "t", "--max-rate-per-sec", "5", "-o", "yaml")
	require.Equal(t, cli.ExitOK, a.code, a.err)
	require.Contains(t, a.out, "max_rate_per_sec:\n  value: 5\n  source: stored\n")
	require.Equal(t, a.out, run(t, dir, "", "policy", "get", "t", "-o", "yaml").out)
	require.Regexp(t, `(?m)^max_rate_per_sec +none +default$`, run(t, dir, "", "policy", "unset", "t").out)
	require.Equal(t, cli.ExitUsage, run(t, dir, "", "policy", "set", "t").code)
	for flag, n := range map[string]string{"--max-depth": "-1", "--max-rate-per-sec": "0", "--max-message-bytes": "33554433", "--max-unflushed": "1000001"} {
		a := run(t, dir, "", "policy", "set", "t", flag, n)
		require.Equal(t, cli.ExitUsage, a.code, a.err)
		require.Contains(t, a.err, strings.ReplaceAll(flag[2:], "-", "_"))
	}
	a = run(t, dir, "", "policy", "set", "t", "--max-unflushed", "100")
	require.Equal(t, cli.ExitOK, a.code, a.err)
	require.Regexp(t, `(?m)^max_unflushed +100 +stored$`, a.out)
}

func TestPolicyInHumanUnits(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "longshore.yaml"), []byte("topics: [{topic: t, keep: 2h, max_priority: 7}]"), 0o600))
	startHost(t, dir)
	got := ok(t, dir, "policy", "set", "t", "keep=90m", "retention=72h", "retention-bytes=10GiB", "max_message_bytes=262144", "--idempotency-window", "0s")
	require.Equal(t, got, ok(t, dir, "policy", "get", "t"))
	require.Regexp(t, `(?m)^max_depth +none +default
max_rate_per_sec +none +default
max_message_bytes +256KiB +stored
max_unflushed +0 +default
max_priority +7 +config
idempotency_window +0s +stored
retention +72h +stored
retention_bytes +10GiB +stored
keep +1h30m +stored
max_age +none +default$`, got)
	require.Regexp(t, `(?m)^keep +2h +config$`, ok(t, dir, "policy", "unset", "t"), "the file's counts again")
	for says, args := range map[string][]string{
		`keep "soon": want a duration such as 90s, 15m or 24h`:           {"keep=soon"},
		`retention_bytes "1GB": want a size such as 64KiB`:               {"retention_bytes=1GB"},
		`max_depth "many": want a whole number`:                          {"max_depth=many"},
		`"kept" is no bound of a topic: there are max_depth, `:           {"kept=1h"},
		`"keep": want BOUND=VALUE, as keep=1h`:                           {"keep"},
		`keep is given twice`:                                            {"keep=1h", "--keep", "2h"},
		`nothing to set; give what, as max_depth=1000`:                   {},
		`keep: 8785h0m0s is not allowed: want 0s to 8784h0m0s`:           {"keep=8785h"},
		`idempotency_window "1.5ms" is no duration in whole millisecond`: {"idempotency_window=1.5ms"},
	} {
		a := run(t, dir, "", append([]string{"policy", "set", "t"}, args...)...)
		require.Equal(t, cli.ExitUsage, a.code, a.err)
		require.Contains(t, a.err, says)
	}
}

func TestExitCodes(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"UnknownCommand":   {[]string{"frobnicate"}, cli.ExitUsage, "unknown command"},
		"UnknownFlag":      {[]string{"publish", "t", "--frob"}, cli.ExitUsage, "--frob"},
		"MissingArgument":  {[]string{"dlq", "list"}, cli.ExitUsage, "takes TOPIC"},
		"GroupAlone":       {[]string{"dlq"}, cli.ExitUsage, "needs one of"},
		"UnknownFormat":    {[]string{"version", "-o", "xml"}, cli.ExitUsage, "use table, json, yaml or name"},
		"BadDuration":      {[]string{"dlq", "list", "t", "--older-than", "soon"}, cli.ExitUsage, "older-than"},
		"MissingConfig":    {[]string{"publish", "t", "--data", "x", "--config", "no.yaml"}, cli.ExitUsage, "no.yaml"},
		"MissingFile":      {[]string{"publish", "t", "--file", "no.json"}, cli.ExitUsage, "no.json"},
		"ConfigIsAFolder":  {[]string{"publish", "t", "--data", "x", "--config", dir}, cli.ExitUsage, "is a directory"},
		"ManifestIsFolder": {[]string{"validate", "--manifest", dir}, cli.ExitUsage, "is a directory"},
		"NoHost":           {[]string{"dlq", "list", "t"}, cli.ExitUnreachable, "start one with"},
		"TooFewMessages":   {[]string{"demo", "--messages", "1"}, cli.ExitUsage, "at least 100"},
		"Version":          {[]string{"version"}, cli.ExitOK, ""},
		"Help":             {[]string{"help"}, cli.ExitOK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := run(t, dir, "", c.args...)
			require.Equal(t, c.code, a.code, a.err)
			require.Contains(t, a.err, c.says)
			if c.code != cli.ExitOK {
				require.Empty(t, a.out)
			}
		})
	}
}

func TestValidateCommand(t *testing.T) {
	dir := t.TempDir()
	manifest := filepath.Join(dir, "consumers.yaml")
	t.Run("EveryFaultIsALineWithItsPlaceAndNothingIsChanged", func(t *testing.T) {
		require.NoError(t, os.WriteFile(manifest, []byte(`consumers:
  - name: a
    topic: a
    module: /abs/a.wasm
    concurency: 3
    max_attempts: many
  - name: b
    topic: ../b
    module: b.wasm
    lease: 1ms
`), 0o600))
		a := run(t, dir, "", "validate", "--manifest", manifest)
		require.Equal(t, cli.ExitUsage, a.code)
		require.Empty(t, a.out)
		lines := strings.Split(strings.TrimSpace(a.err), "\n")
		require.Len(t, lines, 5, a.err)
		for _, l := range lines {
			require.Regexp(t, `consumers\.yaml:\d+:\d+: consumers\[\d\]\.\w+: .+`, l)
		}
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, entries, 1)
	})
	t.Run("TheFirstHundredFaultsAreListed", func(t *testing.T) {
		require.NoError(t, os.WriteFile(manifest, []byte("consumers:\n"+strings.Repeat("  - x\n", 107)), 0o600))
		a := run(t, dir, "", "validate", "--manifest", manifest)
		require.Equal(t, cli.ExitUsage, a.code)
		lines := strings.Split(strings.TrimSpace(a.err), "\n")
		require.Len(t, lines, 101)
		require.Contains(t, lines[100], "7 more faults are not listed")
	})
	t.Run("AModuleOverALimitNamesItsKey", func(t *testing.T) {
		misbehave(t, dir, "limits: {memory: 64KiB}", "trap")
		twoPages := []byte("\x00asm\x01\x00\x00\x00\x05\x03\x01\x00\x02")
		require.NoError(t, os.WriteFile(filepath.Join(dir, "trap.wasm"), twoPages, 0o600))
		a := run(t, dir, "", "validate", "--manifest", manifest)
		require.Equal(t, cli.ExitUsage, a.code, a.err)
		require.Contains(t, a.err, "raise limits.memory")
	})
	t.Run("OneConsumerIsNotMany", func(t *testing.T) {
		misbehave(t, dir, "max_attempts: 1", "trap")
		require.Contains(t, run(t, dir, "", "validate", "--manifest", manifest).err, "valid: 1 consumer\n")
	})
	t.Run("ModulesAreCompiled", func(t *testing.T) {
		misbehave(t, dir, "max_attempts: 1", "trap", "exit")
		a := run(t, dir, "", "validate", "--manifest", manifest, "-o", "name")
		require.Equal(t, cli.ExitOK, a.code, a.err)
		require.Equal(t, "trap\nexit\n", a.out)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "exit.wasm"), []byte("not wasm"), 0o600))
		require.NoError(t, os.Remove(filepath.Join(dir, "trap.wasm")))
		a = run(t, dir, "", "validate", "--manifest", manifest)
		require.Equal(t, cli.ExitUsage, a.code)
		require.Len(t, strings.Split(strings.TrimSpace(a.err), "\n"), 2, a.err)
	})
}
