package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/cmd/host/internal/cli"
	"github.com/longshore/longshore/cmd/host/internal/wire"
)

// tailing is a `tail` in a process of its own.
type tailing struct {
	cmd *exec.Cmd
	out *bufio.Reader
	err lockedBuffer
}

// startTail starts a tail.
func startTail(t *testing.T, dir string, args ...string) *tailing {
	t.Helper()
	p := &tailing{cmd: program(t, dir, append([]string{"tail"}, args...)...)}
	p.cmd.Stderr = &p.err
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	p.out = bufio.NewReader(out)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	return p
}

func (p *tailing) line(t *testing.T) string {
	t.Helper()
	line, err := p.out.ReadString('\n')
	require.NoError(t, err, p.err.String())
	return line
}

// exit returns the code that the process ends with.
func (p *tailing) exit(t *testing.T) int {
	t.Helper()
	_, err := io.Copy(io.Discard, p.out)
	require.NoError(t, err)
	_ = p.cmd.Wait() // the code tells
	return p.cmd.ProcessState.ExitCode()
}

func TestTailCommand(t *testing.T) {
	dir := t.TempDir()
	host := startHost(t, dir)
	ok(t, dir, "publish", "a", "--data", "one")
	ok(t, dir, "publish", "a", "--data", "two\x1b[31m", "--content-type", "text/plain")
	ok(t, dir, "publish", "b", "--data", "x")

	t.Run("ShowsWhatIsPublishedMadeVisibleUntilCtrlC", func(t *testing.T) {
		p := startTail(t, dir, "a", "--from", "1")
		require.Regexp(t, `^POSITION  ID {30}CONTENT TYPE {6}PAYLOAD\n$`, p.line(t))
		require.Regexp(t, `^2 {9}\d{13}-[0-9a-f]{16}  text/plain {8}two\\u001b\[31m\n$`, p.line(t))
		ok(t, dir, "publish", "a", "--data", "live")
		require.Regexp(t, `^4 .* live\n$`, p.line(t))
		ok(t, dir, "publish", "a", "--data", "later", "--delay", "1h")
		require.Regexp(t, `^- .* later\n$`, p.line(t))
		require.NoError(t, p.cmd.Process.Signal(os.Interrupt))
		require.Equal(t, cli.ExitOK, p.exit(t))
		require.Empty(t, p.err.String())
	})
	t.Run("SaysOnStderrWhatIsMissing", func(t *testing.T) {
		a := run(t, dir, "", "tail", "a", "--from", "3", "-n", "1")
		require.Equal(t, cli.ExitOK, a.code, a.err)
		require.Equal(t, "gap: nothing of the topic is stored at positions 3 to 3\n", a.err)
		require.Regexp(t, ` live\n$`, a.out)
	})
	t.Run("OutputForPrograms", func(t *testing.T) {
		out := ok(t, dir, "tail", "a", "--from", "1", "-n", "2", "-o", "json")
		lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		require.Len(t, lines, 2, "a message a line")
		var e wire.Event
		require.NoError(t, json.Unmarshal([]byte(lines[0]), &e))
		require.Equal(t, "two\x1b[31m", string(e.Message.DataBase64))
		require.Equal(t, e.Message.ID+"\n", ok(t, dir, "tail", "a", "--from", "1", "-n", "1", "-o", "name"))
		require.Contains(t, ok(t, dir, "tail", "a", "--from", "1", "-n", "1", "-o", "yaml"), "---\nposition: 2\n")
	})
	t.Run("ReplayShowsWhatIsStoredAndEnds", func(t *testing.T) {
		require.Equal(t, 4, strings.Count(ok(t, dir, "replay", "a"), "\n"), "a head and three messages")
		require.Equal(t, 1, strings.Count(ok(t, dir, "replay", "a", "--from", "4", "-o", "name"), "\n"))
		require.Equal(t, 2, strings.Count(ok(t, dir, "replay", "a", "-n", "2", "-o", "name"), "\n"))
		past, future := time.Now().Add(-time.Hour).Format(time.RFC3339), time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
		require.Equal(t, 3, strings.Count(ok(t, dir, "replay", "a", "--from", past, "-o", "name"), "\n"))
		require.Empty(t, ok(t, dir, "replay", "a", "--from", future, "-o", "name"))
		a := run(t, dir, "", "replay", "b", "--from", "1", "-o", "name")
		require.Equal(t, "gap: nothing of the topic is stored at positions 1 to 2\n", a.err)
	})
	t.Run("ExitCodes", func(t *testing.T) {
		for _, c := range []struct {
			code int
			args []string
		}{
			{cli.ExitUsage, []string{"tail"}},
			{cli.ExitUsage, []string{"tail", "a", "--from", "noon"}},
			{cli.ExitUsage, []string{"tail", "a", "--from", "0"}},
			{cli.ExitUsage, []string{"tail", "a", "--from", ""}},
			{cli.ExitUsage, []string{"tail", "a", "--from", "1000"}},
			{cli.ExitUsage, []string{"tail", "a", "-n", "-1"}},
			{cli.ExitUsage, []string{"replay", "a", "--from", "noon"}},
			{cli.ExitUsage, []string{"replay", "a", "--from", "0"}},
			{cli.ExitUsage, []string{"replay", "a", "--from", "1000"}},
			{cli.ExitFailed, []string{"replay", "nothing"}},
		} {
			a := run(t, dir, "", c.args...)
			require.Equal(t, c.code, a.code, "%v: %s", c.args, a.err)
			require.Empty(t, a.out)
		}
		for _, args := range [][]string{{"tail", "a"}, {"replay", "a"}} {
			require.Equal(t, cli.ExitUnreachable, run(t, t.TempDir(), "", args...).code, "%v", args)
		}
	})
	t.Run("TheHostStopsInSpiteOfIt", func(t *testing.T) {
		p := startTail(t, dir, "a", "--from", "2")
		p.line(t)
		require.Equal(t, cli.ExitOK, host.signal(t, syscall.SIGTERM), host.stderr.String())
		require.Equal(t, cli.ExitUnreachable, p.exit(t))
		require.Contains(t, p.err.String(), "the host has stopped")
	})
}
