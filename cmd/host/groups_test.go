package main

import (
	"os"
	"path/filepath"
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
