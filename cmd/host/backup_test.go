package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/cmd/host/internal/cli"
)

// copyFolder copies a folder with its modes.
func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "cp", "-a", from, to).CombinedOutput()
	require.NoError(t, err, string(out))
}

func TestBackupAndRestoreCommands(t *testing.T) {
	dir := t.TempDir()
	misbehave(t, dir, "max_attempts: 1", "trap")
	p := startHost(t, dir)
	ok(t, dir, "publish", "waits", "--data", "one")
	ok(t, dir, "publish", "waits", "--data", "two", "--delay", "1h")
	ok(t, dir, "publish", "trap", "--data", "x")
	require.Eventually(t, func() bool {
		s, err := p.admin.Topic(t.Context(), "default", "trap")
		return err == nil && s.DeadLetters == 1
	}, 10*time.Second, 10*time.Millisecond)
	file := filepath.Join(dir, "a.longshore")

	t.Run("ARunningHostGoesOnElsewhere", func(t *testing.T) {
		out := ok(t, dir, "backup", file)
		for _, line := range []string{`file +\S+a.longshore`, `topics +2`, `backlog +2`, `dead letters +1`, `bytes +\d{3,}`, `frame +\d+`} {
			require.Regexp(t, `(?m)^`+line+`$`, out)
		}
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		require.NoFileExists(t, file+".partial")

		other := t.TempDir()
		data := filepath.Join(other, "longshore-data")
		a := run(t, other, "", "restore", data, file, "-o", "json")
		require.Equal(t, cli.ExitOK, a.code, a.err)
		require.Contains(t, a.err, filepath.Join(data, "keys")+" is missing")
		var report map[string]any
		require.NoError(t, json.Unmarshal([]byte(a.out), &report))
		require.EqualValues(t, 2, report["backlog"])
		copyFolder(t, filepath.Join(dir, "longshore-data", "keys"), filepath.Join(data, "keys"))
		startHost(t, other)
		require.Equal(t, ok(t, dir, "topics", "-o", "json"), ok(t, other, "topics", "-o", "json")) // not as a table, for that has ages
		require.Equal(t, ok(t, dir, "dlq", "list", "trap"), ok(t, other, "dlq", "list", "trap"))
		require.Equal(t, "1  redriven\n", ok(t, other, "dlq", "redrive", "trap", "--yes"), "its signed context verifies")
	})
	t.Run("WithoutItsKeysNothingVerifies", func(t *testing.T) {
		other := t.TempDir()
		ok(t, other, "restore", filepath.Join(other, "longshore-data"), file)
		startHost(t, other)
		a := run(t, other, "", "dlq", "redrive", "trap", "--yes")
		require.Contains(t, a.err, "1 stay dead")
	})
	t.Run("ThroughPipes", func(t *testing.T) {
		backup := program(t, dir, "backup", "-o", "json")
		var stream, said bytes.Buffer
		backup.Stdout, backup.Stderr = &stream, &said
		require.NoError(t, backup.Run(), said.String())
		require.JSONEq(t, `2`, string(field(t, said.Bytes(), "topics")))
		restore := program(t, dir, "restore", "piped")
		restore.Stdin = &stream
		out, err := restore.CombinedOutput()
		require.NoError(t, err, string(out))
		require.DirExists(t, filepath.Join(dir, "piped", "log", "store"))

		restore = program(t, dir, "restore", "redirected", "-")
		restore.Stdin, err = os.Open(file)
		require.NoError(t, err)
		out, err = restore.CombinedOutput()
		require.NoError(t, err, string(out))
		require.DirExists(t, filepath.Join(dir, "redirected", "log", "store"))
	})
	t.Run("AFileIsNotOverwritten", func(t *testing.T) {
		before, err := os.ReadFile(file)
		require.NoError(t, err)
		a := run(t, dir, "", "backup", file)
		require.Equal(t, cli.ExitRefused, a.code)
		require.Contains(t, a.err, "already")
		after, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, before, after)

		other := filepath.Join(dir, "b.longshore")
		require.NoError(t, os.WriteFile(other+".partial", nil, 0o600))
		a = run(t, dir, "", "backup", other)
		require.Equal(t, cli.ExitRefused, a.code)
		require.Contains(t, a.err, other+".partial")
		require.NoFileExists(t, other)
		require.FileExists(t, other+".partial", "it isn't ours")
	})
	t.Run("NothingIsLeftOfOneThatFails", func(t *testing.T) {
		a := run(t, dir, "", "backup", filepath.Join(dir, "missing", "c"))
		require.Equal(t, cli.ExitFailed, a.code)
		elsewhere := t.TempDir()
		name := filepath.Join(elsewhere, "c")
		a = run(t, elsewhere, "", "backup", name)
		require.Equal(t, cli.ExitUnreachable, a.code)
		require.Contains(t, a.err, "there is no log in")
		left, err := os.ReadDir(elsewhere)
		require.NoError(t, err)
		require.Empty(t, left)
	})
	t.Run("TerminalsGetNoBackupAndGiveNone", func(t *testing.T) {
		for _, args := range [][]string{{"backup"}, {"backup", "-"}, {"restore", filepath.Join(dir, "new")}} {
			var out, errs bytes.Buffer
			code := cli.Execute(context.WithoutCancel(t.Context()), cli.Streams{
				In: strings.NewReader(""), Out: &out, Err: &errs, InTerminal: true, OutTerminal: true,
				Environ: []string{"LONGSHORE_DATA=" + filepath.Join(dir, "longshore-data")},
			}, args)
			require.Equal(t, cli.ExitUsage, code, errs.String())
			require.Contains(t, errs.String(), "terminal")
			require.Empty(t, out.String())
		}
	})
	t.Run("ARestoreIsWholeOrNothing", func(t *testing.T) {
		a := run(t, dir, "", "restore", filepath.Join(dir, "longshore-data"), file)
		require.Equal(t, cli.ExitRefused, a.code)
		require.Contains(t, a.err, "not empty")

		whole, err := os.ReadFile(file)
		require.NoError(t, err)
		data := filepath.Join(dir, "broken")
		for name, stream := range map[string][]byte{
			"cut short": whole[:len(whole)-1], "damaged": append(bytes.Clone(whole[:200]), whole[201:]...), "no backup": []byte("tar"),
		} {
			broken := filepath.Join(t.TempDir(), "f")
			require.NoError(t, os.WriteFile(broken, stream, 0o600))
			a := run(t, dir, "", "restore", data, broken)
			require.Equal(t, cli.ExitUsage, a.code, a.err)
			require.Contains(t, a.err, name)
			require.Empty(t, a.out)
		}
		require.Equal(t, cli.ExitUsage, run(t, dir, "", "restore", data, filepath.Join(dir, "missing")).code)
		require.Equal(t, cli.ExitUsage, run(t, dir, "", "restore").code)
		left, err := os.ReadDir(data)
		require.NoError(t, err)
		require.Empty(t, left)
		ok(t, dir, "restore", data, file)
	})
	t.Run("ARestoreThatWaitsEndsWithASignal", func(t *testing.T) {
		restore := program(t, dir, "restore", "waiting")
		in, out, err := os.Pipe()
		require.NoError(t, err)
		restore.Stdin = in
		require.NoError(t, restore.Start())
		require.NoError(t, in.Close())
		_, err = out.WriteString("longs")
		require.NoError(t, err)
		require.Eventually(t, func() bool { return exists(filepath.Join(dir, "waiting", "log.restoring")) }, 10*time.Second, time.Millisecond)
		require.NoError(t, restore.Process.Signal(syscall.SIGTERM))
		var exit *exec.ExitError
		require.ErrorAs(t, restore.Wait(), &exit)
		require.Equal(t, cli.ExitFailed, exit.ExitCode())
		require.NoError(t, out.Close())
		left, err := os.ReadDir(filepath.Join(dir, "waiting"))
		require.NoError(t, err)
		require.Empty(t, left)
	})
	t.Run("WithoutAHostTheLogIsOpened", func(t *testing.T) {
		require.Equal(t, cli.ExitOK, p.signal(t, syscall.SIGTERM))
		name := filepath.Join(dir, "cold.longshore")
		a := run(t, dir, "", "backup", name, "-o", "name")
		require.Equal(t, cli.ExitOK, a.code, a.err)
		require.Equal(t, name+"\n", a.out)
		require.Contains(t, a.err, "no host runs")
		ok(t, dir, "restore", filepath.Join(dir, "from cold"), name)
	})
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// field returns a field of a JSON object that may have text before it.
func field(t *testing.T, text []byte, name string) json.RawMessage {
	t.Helper()
	var object map[string]json.RawMessage
	dec := json.NewDecoder(bytes.NewReader(text[bytes.IndexByte(text, '{'):]))
	require.NoError(t, dec.Decode(&object))
	return object[name]
}
