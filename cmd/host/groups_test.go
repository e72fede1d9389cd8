package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/cmd/host/internal/cli"
	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/examples/misbehaving"
)

// consumersOf writes a manifest whose consumers run one module that misbehaves, each given as the rest of a flow mapping.
func consumersOf(t *testing.T, dir, module string, consumers ...string) {
	t.Helper()
	manifest := "consumers:\n"
	for _, c := range consumers {
		manifest += "  - {module: " + module + ".wasm, max_attempts: 1, " + c + "}\n"
	}
	for _, m := range misbehaving.All() {
		if m.Name == module {
			require.NoError(t, os.WriteFile(filepath.Join(dir, module+".wasm"), m.Wasm, 0o600))
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "consumers.yaml"), []byte(manifest), 0o600))
}

// deadLanes returns the lanes of a topic's dead letters, in the order of their positions and names.
func deadLanes(t *testing.T, p *process, topic string) string {
	t.Helper()
	list, err := p.admin.DeadLetters(t.Context(), "default", topic, wire.Filter{})
	require.NoError(t, err)
	lanes := make([]string, len(list))
	for i, d := range list {
		lanes[i] = d.Lane
	}
	return strings.Join(lanes, ",")
}

func TestConsumersOfGroups(t *testing.T) {
	dir := t.TempDir()
	consumersOf(t, dir, "trap", "name: a, topic: t, group: g, ordering: key", "name: b, topic: t, group: late, start: latest", "name: c, topic: t")
	p := startHost(t, dir)
	ok(t, dir, "publish", "t", "--data", "x")
	require.Eventually(t, func() bool { return deadLanes(t, p, "t") == ",g,late" }, 10*time.Second, 10*time.Millisecond, "each has it once")
	require.Regexp(t, `(?m) default .* guest-trap`, ok(t, dir, "dlq", "list", "t"))
	require.Regexp(t, `(?m) late .* guest-trap`, ok(t, dir, "dlq", "list", "t", "--lane", "late"))
	require.Equal(t, "1\n", ok(t, dir, "dlq", "discard", "t", "--lane", "g", "--yes", "-o", "name"))
	require.Equal(t, ",late", deadLanes(t, p, "t"))
	require.Zero(t, p.signal(t, syscall.SIGTERM))

	consumersOf(t, dir, "trap", "name: a, topic: t, group: late, start: earliest", "name: b, topic: t, group: new")
	p = startHost(t, dir)
	require.Contains(t, p.stderr.String(), "start has no effect: the consumer group was made before")
	require.Eventually(t, func() bool { return deadLanes(t, p, "t") == ",late,new" }, 10*time.Second, 10*time.Millisecond,
		"a new group begins with what is stored; the others' is done")
}

func TestTheHostConfigTurnsADefaultLaneOff(t *testing.T) {
	dir := t.TempDir()
	p := startHost(t, dir)
	ok(t, dir, "publish", "t", "--data", "x", "-n", "3")
	require.Zero(t, p.signal(t, syscall.SIGTERM))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "longshore.yaml"), []byte("topics: [{topic: t, default_lane: off, paused: true}]"), 0o600))
	for _, said := range []int{1, 0} {
		p = startHost(t, dir)
		require.Equal(t, said, strings.Count(p.stderr.String(), `"dropped_messages":3`), p.stderr.String())
		require.Regexp(t, `(?m)^default +t +0 .* yes$`, ok(t, dir, "topics"))
		ok(t, dir, "resume", "t")
		require.Zero(t, p.signal(t, syscall.SIGTERM))
	}
	consumersOf(t, dir, "trap", "name: a, topic: t")
	cmd := program(t, dir, "validate")
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, cli.ExitUsage, cmd.ProcessState.ExitCode())
	require.Contains(t, string(out), `the host config turns the default lane of "t" off (want a group)`)
}

func TestGroupCommands(t *testing.T) {
	dir := t.TempDir()
	p := startHost(t, dir)
	ok(t, dir, "publish", "t", "--data", "x", "-n", "5")
	position := func(n uint64) string {
		got, err := p.admin.Peek(t.Context(), "default", "t", 0, 5)
		require.NoError(t, err)
		return strconv.FormatUint(got[n].Position, 10)
	}
	third := position(2)

	t.Run("CreateSaysHowItBegins", func(t *testing.T) {
		require.Regexp(t, `^GROUP +CURSOR +LAG +IN FLIGHT +DEAD +OLDEST +SKIPPED +PAUSED +ORDERING +START\ng +\d+ +5 +0 +0 +\d+s +0 +no +none +earliest\n$`,
			ok(t, dir, "groups", "create", "t", "g"))
		require.Regexp(t, `third +`+third+` +3 .* key +`+third, ok(t, dir, "groups", "create", "t", "third", "--start", third, "--ordering", "key"))
		require.Regexp(t, `(?m)^new +\d+ +0 `, ok(t, dir, "groups", "create", "t", "new", "--start", "latest"))
		require.Regexp(t, ` 5 .* 2020-01-31T12:00:00Z\n$`, ok(t, dir, "groups", "create", "t", "since", "--start", "2020-01-31T12:00:00Z"))
	})
	t.Run("OneThatIsThereStaysAsItIs", func(t *testing.T) {
		a := run(t, dir, "", "groups", "create", "t", "g", "--start", "latest")
		require.Equal(t, cli.ExitOK, a.code, a.err)
		require.Contains(t, a.err, "was there before")
		require.Regexp(t, `(?m)^g +\d+ +5 .* earliest$`, a.out)
	})
	t.Run("ListAndTopicsShowThem", func(t *testing.T) {
		require.Equal(t, "g\nnew\nsince\nthird\n", ok(t, dir, "groups", "list", "t", "-o", "name"))
		require.Regexp(t, `(?m)^default +t +5 .* 4 +no$`, ok(t, dir, "topics"))
		require.Contains(t, ok(t, dir, "groups", "list", "t", "-o", "json"), `"lag": 5`)
	})
	t.Run("ResetMovesTheCursorBackAndAhead", func(t *testing.T) {
		a := run(t, dir, "", "groups", "reset", "t", "g", "--start", "latest")
		require.Equal(t, cli.ExitUsage, a.code)
		require.Contains(t, a.err, "to latest; 0 messages in flight would be given up")
		require.Contains(t, a.err, "add --yes")
		a = run(t, dir, "n\n", "groups", "reset", "t", "g", "--start", "latest")
		require.Equal(t, cli.ExitFailed, a.code)
		require.Contains(t, a.err, "reset it? [y/N]")
		require.Contains(t, a.err, "nothing was changed")
		require.Regexp(t, `(?m)^g +\d+ +5 `, ok(t, dir, "groups", "list", "t"))
		require.Regexp(t, `(?m)^g +\d+ +0 `, ok(t, dir, "groups", "reset", "t", "g", "--start", "latest", "--yes"))
		require.Regexp(t, `(?m)^g +`+third+` +3 `, ok(t, dir, "groups", "reset", "t", "g", "--start", third, "--yes"))
	})
	t.Run("DeleteSaysWhatItTakesAway", func(t *testing.T) {
		a := run(t, dir, "", "groups", "delete", "t", "g")
		require.Equal(t, cli.ExitUsage, a.code)
		require.Contains(t, a.err, "group g of t would be deleted, with 3 messages that it is owed, 0 in flight and 0 dead letters")
		require.Regexp(t, `(?m)^g +yes +3 +0 +0$`, ok(t, dir, "groups", "delete", "t", "g", "--yes"))
		a = run(t, dir, "", "groups", "delete", "t", "g")
		require.Equal(t, cli.ExitOK, a.code, "deleting what isn't there is no fault")
		require.Contains(t, a.err, "there is no group g of t")
		require.Equal(t, "new\nsince\nthird\n", ok(t, dir, "groups", "list", "t", "-o", "name"))
	})
	t.Run("PauseIsOfALaneOrOfTheTopic", func(t *testing.T) {
		require.Regexp(t, `default +t +third +yes\n$`, ok(t, dir, "pause", "t", "--lane", "third"))
		require.Regexp(t, `(?m)^third .* yes +key`, ok(t, dir, "groups", "list", "t"))
		require.Regexp(t, `(?m)^new .* no +none`, ok(t, dir, "groups", "list", "t"))
		require.Regexp(t, `(?m)^default +t .* no$`, ok(t, dir, "topics"))
		ok(t, dir, "pause", "t", "--lane", "default")
		require.Regexp(t, `(?m)^default +t .* lane$`, ok(t, dir, "topics"))
		ok(t, dir, "pause", "t")
		require.Regexp(t, `(?m)^new .* topic +none`, ok(t, dir, "groups", "list", "t"))
		ok(t, dir, "resume", "t")
		require.Regexp(t, `(?m)^third .* yes +key`, ok(t, dir, "groups", "list", "t"), "each by itself")
		ok(t, dir, "resume", "t", "--lane", "third")
		ok(t, dir, "resume", "t", "--lane", "default")
		require.Regexp(t, `(?m)^default +t .* no$`, ok(t, dir, "topics"))
	})
	t.Run("DrainOfALane", func(t *testing.T) {
		require.JSONEq(t, `{"tenant":"default","topic":"t","lane":"third","paused":true,"leased":0}`,
			ok(t, dir, "drain", "t", "--lane", "third", "-o", "json"))
		require.Regexp(t, `(?m)^default +t .* no$`, ok(t, dir, "topics"))
	})
	for name, c := range map[string]struct {
		code int
		says string
		args []string
	}{
		"ListOfNoTopic":     {cli.ExitFailed, "not found", []string{"groups", "list", "unknown"}},
		"ResetOfNoGroup":    {cli.ExitFailed, "no such consumer group", []string{"groups", "reset", "t", "unknown", "--start", "latest"}},
		"ResetWithoutStart": {cli.ExitUsage, "give --start: earliest, latest", []string{"groups", "reset", "t", "new", "--yes"}},
		"BadStart":          {cli.ExitUsage, `start "soon": want earliest, latest`, []string{"groups", "create", "t", "x", "--start", "soon"}},
		"NoPosition":        {cli.ExitUsage, `start "0": want earliest`, []string{"groups", "create", "t", "x", "--start", "0"}},
		"EmptyStart":        {cli.ExitUsage, "--start is empty", []string{"groups", "create", "t", "x", "--start", ""}},
		"BadOrdering":       {cli.ExitUsage, "ordering", []string{"groups", "create", "t", "x", "--ordering", "fifo"}},
		"BadName":           {cli.ExitUsage, `group "a/b" is not allowed`, []string{"groups", "create", "t", "a/b"}},
		"NameOfTheLane":     {cli.ExitUsage, "is that of the lane without a group", []string{"groups", "create", "t", "default"}},
		"PauseOfNoLane":     {cli.ExitFailed, "no such consumer group", []string{"pause", "t", "--lane", "unknown"}},
		"DrainOfNoLane":     {cli.ExitFailed, "no such consumer group", []string{"drain", "t", "--lane", "unknown"}},
		"PauseOfEmptyLane":  {cli.ExitUsage, "--lane is empty: want the name of a consumer group", []string{"pause", "t", "--lane", ""}},
		"DrainOfEmptyLane":  {cli.ExitUsage, "--lane is empty", []string{"drain", "t", "--lane", ""}},
		"ShowOfEmptyLane":   {cli.ExitUsage, "--lane is empty", []string{"dlq", "show", "t", "x", "--lane", ""}},
	} {
		t.Run("IsRefused/"+name, func(t *testing.T) {
			a := run(t, dir, "", c.args...)
			require.Equal(t, c.code, a.code, a.err)
			require.Contains(t, a.err, c.says)
			require.Empty(t, a.out)
		})
	}
}

func TestAMessageThatIsDeadInTwoLanes(t *testing.T) {
	dir := t.TempDir()
	consumersOf(t, dir, "trap", "name: a, topic: t, group: g", "name: b, topic: t, group: h", "name: c, topic: u, group: g")
	p := startHost(t, dir)
	id := strings.TrimSpace(ok(t, dir, "publish", "t", "--data", "x", "-o", "name"))
	require.Eventually(t, func() bool { return deadLanes(t, p, "t") == "g,h" }, 10*time.Second, 10*time.Millisecond)
	for lane, shows := range map[string]string{"": "g", "g": "g", "h": "h"} {
		args := []string{"dlq", "show", "t", id}
		if lane != "" {
			args = append(args, "--lane", lane)
		}
		require.Regexp(t, `(?m)^lane +`+shows+`$`, ok(t, dir, args...))
	}
	require.Equal(t, cli.ExitFailed, run(t, dir, "", "dlq", "show", "t", id, "--lane", "default").code)
	a := run(t, dir, "", "groups", "delete", "t", "h", "--yes")
	require.Contains(t, a.err, "0 in flight and 1 dead letter")
	require.Contains(t, a.err, "consumer b takes its messages: it gets none until the host is started again")
	require.Equal(t, "g", deadLanes(t, p, "t"))
	require.NotContains(t, p.stderr.String(), "unhealthy")
}

func TestDrainWaitsForAllLanes(t *testing.T) {
	dir := t.TempDir()
	consumersOf(t, dir, "stall", "name: a, topic: t, group: g, limits: {fuel: 100000000000, call_time: 2s}")
	p := startHost(t, dir)
	ok(t, dir, "publish", "t", "--data", "x")
	require.Eventually(t, func() bool {
		groups, err := p.admin.Groups(t.Context(), "default", "t")
		return err == nil && groups[0].Leased == 1
	}, 10*time.Second, time.Millisecond)
	require.Regexp(t, `default +t +default +yes +0\n$`, ok(t, dir, "drain", "t", "--lane", "default"))
	a := run(t, dir, "", "drain", "t", "--lane", "g", "--timeout", "1ms")
	require.Equal(t, cli.ExitConflict, a.code, a.err)
	require.Contains(t, a.err, "1 message is held after 1ms; the lane stays paused")
	require.Regexp(t, `default +t +all +yes +0\n$`, ok(t, dir, "drain", "t"))
	require.Equal(t, "g", deadLanes(t, p, "t"), "what ran has ended")
}
