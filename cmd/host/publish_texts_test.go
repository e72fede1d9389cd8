package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/cmd/host/internal/cli"
)

func TestTextsThatJSONCannotCarry(t *testing.T) {
	for flag, value := range map[string]string{
		"--content-type": "a\xff", "--metadata": "k=\xff", "--idempotency-key": "\xff", "--ordering-key": "\xff", "--fence": "\xff:1",
		"--target": "\xff", "--feature": "\xff", "--deadline": "\xff",
	} {
		t.Run(flag, func(t *testing.T) {
			a := run(t, t.TempDir(), "", "publish", "orders", "--data", "x", flag, value)
			require.Equal(t, cli.ExitUsage, a.code)
			require.Contains(t, a.err, flag+` "`)
			require.Contains(t, a.err, `want UTF-8`)
			require.NotContains(t, a.err, "\xff")
		})
	}
}

func TestAnAddressThatDoesNotAnswer(t *testing.T) {
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	require.NoError(t, os.WriteFile(token, []byte("a.b.c"), 0o600))
	a := run(t, dir, "", "history", "--server", "http://127.0.0.1:1", "--tenant", "acme", "--token-file", token)
	require.Equal(t, cli.ExitUnreachable, a.code)
	require.Contains(t, a.err, "--server")
	require.NotContains(t, a.err, "--socket")
	a = run(t, dir, "", "history")
	require.Equal(t, cli.ExitUnreachable, a.code)
	require.Contains(t, a.err, "--socket")
}

func TestADataFolderThatIsAFile(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "data"), nil, 0o600))
	out, err := program(t, dir, "run", "--http", "127.0.0.1:0", "--data-dir", "data", "--log-level", "error").CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, string(out))
	require.Equal(t, cli.ExitUsage, exit.ExitCode(), string(out))
	require.Contains(t, string(out), "data: the data folder is a file (want a folder")
}
