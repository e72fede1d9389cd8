package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/cmd/host/internal/cli"
	"github.com/longshore/longshore/examples/misbehaving"
)

// A host compiles modules in processes of its own program, and keeps what comes of it.
func TestCompileInAnotherProcess(t *testing.T) {
	dir := t.TempDir()
	misbehave(t, dir, "max_attempts: 1", misbehaving.All()[0].Name)
	cache := filepath.Join(dir, "longshore-data", "cache")
	for range 2 {
		p := startHost(t, dir)
		require.Equal(t, cli.ExitOK, p.signal(t, syscall.SIGTERM), p.stderr.String())
		for _, pattern := range []string{"notes/*", "wazero-*/*"} {
			files, err := filepath.Glob(filepath.Join(cache, pattern))
			require.NoError(t, err)
			require.Len(t, files, 1, pattern)
		}
	}
}

// The command that compiles is no command for people: it isn't listed, and its exit status is for the host.
func TestCompileChild(t *testing.T) {
	dir := t.TempDir()
	require.NotContains(t, ok(t, dir, "--help"), "compile")
	cmd := program(t, dir, "compile-child", dir)
	cmd.Stdin = bytes.NewReader([]byte("no module"))
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 3, exit.ExitCode())
	require.Contains(t, string(out), "invalid magic number")
	require.NotContains(t, string(out), "longshore:")
}
