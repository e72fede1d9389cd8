package crashtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	// All that the host is made of, so that `go test` doesn't take a cached result when that changes.
	_ "github.com/longshore/longshore/cmd/host/internal/cli"
	"github.com/longshore/longshore/cmd/host/internal/client"
)

// binDir is where the host is built. TestMain makes and removes it.
var binDir string

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	var err error
	if binDir, err = os.MkdirTemp("", "longshore-crashtest-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(binDir) }()
	return m.Run()
}

// build builds the host for the first test that asks, without the race detector: it is what users run.
var build = sync.OnceValues(func() (string, error) {
	binary := filepath.Join(binDir, "longshore")
	out, err := exec.CommandContext(context.Background(), "go", "build", "-o", binary, "..").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the host: %w\n%s", err, out)
	}
	return binary, nil
})

const (
	readyTimeout = time.Minute
	readyPoll    = 5 * time.Millisecond
)

// folder is where a host lives: its config, its manifests, its data, and the file that it logs to.
type folder string

// newFolder makes a folder with a host config, whose entries for topics are given in YAML.
func newFolder(t *testing.T, topics ...string) folder {
	t.Helper()
	if testing.Short() {
		t.Skip("starts and kills hosts for many seconds")
	}
	f := folder(t.TempDir())
	config := append([]string{"data: data", "listen: {http: 127.0.0.1:0}", "topics:"}, topics...)
	f.write(t, "longshore.yaml", []byte(strings.Join(config, "\n")))
	return f
}

func (f folder) file(name string) string { return filepath.Join(string(f), name) }

func (f folder) write(t *testing.T, name string, content []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(f.file(name), content, 0o600))
}

// logFile is the name of the file that a host logs to. Each host begins it anew, for a killed one may leave half a line.
const logFile = "host.log"

// host is a running host.
type host struct {
	cmd     *exec.Cmd
	ended   chan struct{} // closed when the process has ended
	folder  folder
	admin   *client.Admin
	address string // of the data interface, once it is ready
}

// start starts a host and doesn't wait for it.
func (f folder) start(t *testing.T, manifest string) *host {
	t.Helper()
	binary, err := build()
	require.NoError(t, err)
	log, err := os.OpenFile(f.file(logFile), os.O_CREATE|os.O_TRUNC|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer func() { require.NoError(t, log.Close()) }() // the host has its own
	h := &host{folder: f, ended: make(chan struct{}), admin: client.NewAdmin(f.file("data/admin.sock"))}
	h.cmd = exec.CommandContext(t.Context(), binary, "run", "--config", f.file("longshore.yaml"), "--manifest", f.file(manifest))
	h.cmd.Stdout, h.cmd.Stderr = log, log
	require.NoError(t, h.cmd.Start())
	go func() {
		defer close(h.ended)
		_ = h.cmd.Wait() // kill looks at how it ended
	}()
	return h
}

// startReady starts a host and waits until it takes messages.
func (f folder) startReady(t *testing.T, manifest string) *host {
	t.Helper()
	h := f.start(t, manifest)
	require.Eventually(t, func() bool {
		select {
		case <-h.ended:
			require.FailNow(t, "the host ended before it was ready", f.logTail(t))
		default:
		}
		info, err := h.admin.Host(t.Context())
		h.address = info.HTTP
		return err == nil && info.PID == h.cmd.Process.Pid
	}, readyTimeout, readyPoll, "the host doesn't get ready")
	return h
}

// kill kills the host with SIGKILL, which must be what ended it, and returns when it is gone.
func (h *host) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, h.cmd.Process.Kill(), "the host ended by itself: %s", h.folder.logTail(t))
	h.waitKilled(t)
}

// waitKilled waits until a host to which a SIGKILL was sent is gone.
func (h *host) waitKilled(t *testing.T) {
	t.Helper()
	<-h.ended
	status, ok := h.cmd.ProcessState.Sys().(syscall.WaitStatus)
	require.True(t, ok)
	require.True(t, status.Signaled() && status.Signal() == syscall.SIGKILL,
		"the host ended by itself (%s): %s", h.cmd.ProcessState, h.folder.logTail(t))
}

// logTail returns the last lines that the host logged.
func (f folder) logTail(t *testing.T) string {
	t.Helper()
	const lines = 12
	raw, err := os.ReadFile(f.file(logFile))
	require.NoError(t, err)
	all := strings.Split(strings.TrimSpace(string(raw)), "\n")
	return "\n" + strings.Join(all[max(0, len(all)-lines):], "\n")
}
