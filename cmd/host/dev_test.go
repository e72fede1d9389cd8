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
	"github.com/longshore/longshore/cmd/host/internal/client"
	"github.com/longshore/longshore/examples/misbehaving"
)

// devTimeout is what a build may take on a machine that has other work.
const devTimeout = 4 * time.Minute

// startDev runs `longshore dev` in dir and waits until everything was built once.
func startDev(t *testing.T, dir string, env ...string) *process {
	t.Helper()
	p := &process{ended: make(chan error, 1), admin: client.NewAdmin(filepath.Join(dir, "longshore-data", "admin.sock"))}
	p.cmd = program(t, dir, "dev")
	p.cmd.Env = append(p.cmd.Env, append(env, "LONGSHORE_LISTEN_HTTP=127.0.0.1:0")...)
	p.cmd.Stderr = &p.stderr
	require.NoError(t, p.cmd.Start())
	go func() { p.ended <- p.cmd.Wait() }()
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	p.awaitWords(t, "; Ctrl-C stops\n", 1)
	return p
}

// awaitWords waits until the host has said something so many times.
func (p *process) awaitWords(t *testing.T, words string, times int) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Count(p.stderr.String(), words) >= times }, devTimeout, 20*time.Millisecond,
		"%q is not said: %s", words, &p.stderr)
}

// TestDev runs it on a consumer whose module is a copy of another, which is faster than a compiler.
func TestDev(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, content []byte) {
		t.Helper()
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	module := func(name string) []byte {
		for _, m := range misbehaving.All() {
			if m.Name == name {
				return m.Wasm
			}
		}
		return nil
	}
	dies := func(reason string) {
		t.Helper()
		ok(t, dir, "publish", "a", "--data", "x")
		require.Eventually(t, func() bool {
			return strings.Contains(ok(t, dir, "dlq", "list", "a"), reason)
		}, 20*time.Second, 20*time.Millisecond, reason)
		ok(t, dir, "dlq", "discard", "a", "--yes")
	}
	const manifest = "consumers:\n  - {name: a, topic: a, module: a.wasm, build: [cp, source, a.wasm], max_attempts: 1}\n"
	put("consumers.yaml", []byte(manifest))
	put("source", module("trap"))
	p := startDev(t, dir)
	dies("guest-trap: unreachable")

	put("source", module("divide"))
	p.awaitWords(t, "a: runs with module ", 2)
	dies("guest-trap: integer-divide-by-zero")

	put("source", []byte("no module"))
	p.awaitWords(t, "a: the version before keeps running\n", 1)
	require.Contains(t, p.stderr.String(), "\nconsumers.yaml:2:33: consumers[0].module: the host can't run it")
	dies("guest-trap: integer-divide-by-zero")

	put("consumers.yaml", []byte(strings.Replace(manifest, "max_attempts: 1", "max_atempts: 1", 1)))
	p.awaitWords(t, "\nthe manifest is not applied: what it said before holds\n", 1)
	dies("guest-trap: integer-divide-by-zero")
	a := run(t, dir, "", "validate", "-m", filepath.Join(dir, "consumers.yaml"))
	require.Contains(t, strings.ReplaceAll(a.err, dir+"/", ""), "consumers.yaml:2:70: consumers[0].max_atempts: unknown key")
	require.Contains(t, p.stderr.String(), strings.ReplaceAll(a.err, dir+"/", ""), "as validate says it")

	require.Equal(t, cli.ExitOK, p.signal(t, syscall.SIGINT), p.stderr.String())
	require.Contains(t, p.stderr.String(), "host has stopped")
}

func TestDevWithoutAManifestSaysWhatWouldBeRight(t *testing.T) {
	t.Chdir(t.TempDir())
	a := run(t, ".", "", "dev")
	require.Equal(t, cli.ExitUsage, a.code)
	require.Contains(t, a.err, "there is no consumers.yaml here: name it with --manifest, or begin with `longshore new consumer NAME`")
	require.NoDirExists(t, "longshore-data")
}
