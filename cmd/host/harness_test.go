package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/cmd/host/internal/cli"
	"github.com/longshore/longshore/cmd/host/internal/client"
	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/examples/misbehaving"
)

// asProgram makes the test binary be the program, so that tests start, kill and stop real processes.
const asProgram = "LONGSHORE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// program returns a command that runs this program in dir.
func program(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), asProgram+"=1")
	return cmd
}

// process is a host in a process of its own.
type process struct {
	cmd    *exec.Cmd
	stderr lockedBuffer
	ended  chan error
	admin  *client.Admin
	info   wire.HostInfo
}

// lockedBuffer is written by a process while the test reads it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// startHost runs a host in dir and waits until it answers.
func startHost(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	p := &process{ended: make(chan error, 1), admin: client.NewAdmin(filepath.Join(dir, "longshore-data", "admin.sock"))}
	p.cmd = program(t, dir, append([]string{"run", "--http", "127.0.0.1:0"}, args...)...)
	p.cmd.Stderr = &p.stderr
	require.NoError(t, p.cmd.Start())
	go func() { p.ended <- p.cmd.Wait() }()
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	require.Eventually(t, func() bool {
		var err error
		p.info, err = p.admin.Host(t.Context())
		return err == nil && p.info.PID == p.cmd.Process.Pid
	}, 30*time.Second, 20*time.Millisecond, "the host does not answer: %s", &p.stderr)
	return p
}

// signal sends a signal and returns the exit code.
func (p *process) signal(t *testing.T, s syscall.Signal) int {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(s), p.stderr.String())
	return p.wait(t)
}

// wait returns the exit code; -1 after a kill.
func (p *process) wait(t *testing.T) int {
	t.Helper()
	select {
	case err := <-p.ended:
		p.ended <- err
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(20 * time.Second):
		require.FailNow(t, "the host does not end", p.stderr.String())
		return 0
	}
}

// answer is what a command printed.
type answer struct {
	code     int
	out, err string
}

// run runs a command in this process, against the host in dir; on a terminal it answers typed.
func run(t *testing.T, dir, typed string, args ...string) answer {
	t.Helper()
	var out, errs bytes.Buffer
	s := cli.Streams{
		In: strings.NewReader(typed), Out: &out, Err: &errs, InTerminal: strings.HasSuffix(typed, "\n"),
		Environ: []string{"LONGSHORE_DATA=" + filepath.Join(dir, "longshore-data")},
	}
	code := cli.Execute(context.WithoutCancel(t.Context()), s, args)
	return answer{code, out.String(), errs.String()}
}

// misbehave writes a manifest with consumers that misbehave, each on the topic of its name.
func misbehave(t *testing.T, dir string, extra string, names ...string) {
	t.Helper()
	manifest := "consumers:\n"
	for _, m := range misbehaving.All() {
		for _, name := range names {
			if m.Name == name {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name+".wasm"), m.Wasm, 0o600))
				manifest += "  - {name: " + name + ", topic: " + name + ", module: " + name + ".wasm, " + extra + "}\n"
			}
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "consumers.yaml"), []byte(manifest), 0o600))
}
