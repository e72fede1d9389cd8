package main

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/longshore/longshore/cmd/host/internal/cli"
)

// A host whose disk refuses to be written must not go on as if nothing had happened.
func TestRunEndsWithAClearMessageAfterAStorageFault(t *testing.T) {
	dir := t.TempDir()
	p := startHost(t, dir)
	require.Equal(t, cli.ExitOK, run(t, dir, "", "publish", "t", "--data", "x").code)

	none := unix.Rlimit{Cur: 0, Max: 0} // from here on every write to a file fails
	require.NoError(t, unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_FSIZE, &none, nil))
	require.NotEqual(t, cli.ExitOK, run(t, dir, "", "publish", "t", "--data", "y").code)

	require.Equal(t, cli.ExitFailed, p.wait(t), p.stderr.String())
	require.Contains(t, p.stderr.String(), "storage fault")

	again := startHost(t, dir)
	got, err := again.admin.Peek(t.Context(), "default", "t", 0, 10)
	require.NoError(t, err)
	require.Len(t, got, 1, "what was acknowledged is there, what was not is not")
	require.Equal(t, cli.ExitOK, again.signal(t, syscall.SIGTERM))
}
