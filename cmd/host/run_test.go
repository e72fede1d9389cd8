package main

import (
	"fmt"
	"net/http"
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

func TestRun(t *testing.T) {
	t.Run("WorksWithoutAnyFileAndStopsWhenToldTo", func(t *testing.T) {
		dir := t.TempDir()
		p := startHost(t, dir)
		require.Equal(t, http.StatusOK, get(t, p, "/readyz"))
		require.Equal(t, http.StatusOK, get(t, p, "/livez"))
		require.Equal(t, http.StatusNotFound, get(t, p, "/metrics"), "metrics name tenants, so they are not for everybody")
		require.Equal(t, cli.ExitOK, p.signal(t, syscall.SIGTERM), p.stderr.String())
		require.Contains(t, p.stderr.String(), "host has stopped")
		require.NoFileExists(t, filepath.Join(dir, "longshore-data", "admin.sock"))
	})
	t.Run("ASecondHostOnTheSameFolderIsAConflict", func(t *testing.T) {
		dir := t.TempDir()
		p := startHost(t, dir)
		out, err := program(t, dir, "run", "--http", "127.0.0.1:0").CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(out), "another host is running")
		require.Equal(t, http.StatusOK, get(t, p, "/readyz"), "the first one goes on")
	})
	t.Run("APortInUseIsAConflict", func(t *testing.T) {
		p := startHost(t, t.TempDir())
		require.Contains(t, p.stderr.String(), `"msg":"log opened","topics":0`)
		out, err := program(t, t.TempDir(), "run", "--http", p.info.HTTP).CombinedOutput()
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit, string(out))
		require.Equal(t, cli.ExitConflict, exit.ExitCode(), string(out))
	})
	t.Run("ALogThatIsDamagedIsLeftAlone", func(t *testing.T) {
		dir := t.TempDir()
		p := startHost(t, dir)
		ok(t, dir, "publish", "a", "--data", "x")
		require.Equal(t, cli.ExitOK, p.signal(t, syscall.SIGTERM))
		require.NoError(t, os.RemoveAll(filepath.Join(dir, "longshore-data", "log", "journal")))
		out, err := program(t, dir, "run", "--http", "127.0.0.1:0", "--log-level", "error").CombinedOutput()
		var exit *exec.ExitError
		require.ErrorAs(t, err, &exit, string(out))
		require.Equal(t, cli.ExitFailed, exit.ExitCode())
		require.Regexp(t, `(?m)^longshore: the log in .* the journal is missing.*nothing was changed; put the folder aside and restore a backup$`, string(out))
	})
	t.Run("WhatAPublishReturnedSurvivesAKillAtOnce", func(t *testing.T) {
		dir := t.TempDir()
		config := "topics:\n  - {topic: open, anonymous: true}\n"
		require.NoError(t, os.WriteFile(filepath.Join(dir, "longshore.yaml"), []byte(config), 0o600))
		const rounds = 3
		for i := range rounds {
			p := startHost(t, dir, "--data-dir", "longshore-data")
			resp := post(t, p, "/v1/topics/open/messages", fmt.Sprint(i))
			require.NoError(t, p.cmd.Process.Kill())
			require.Equal(t, http.StatusCreated, resp)
			require.Equal(t, -1, p.wait(t))
		}
		p := startHost(t, dir, "--data-dir", "longshore-data")
		got, err := p.admin.Peek(t.Context(), "default", "open", 0, 10)
		require.NoError(t, err)
		require.Len(t, got, rounds)
		for i, m := range got {
			require.Equal(t, fmt.Sprint(i), string(m.Message.DataBase64))
		}
	})
	t.Run("ASecondSignalEndsItAtOnceUnlessItIsPartOfTheFirst", func(t *testing.T) {
		dir := t.TempDir()
		misbehave(t, dir, "limits: {fuel: 100000000000, call_time: 20s}", "stall")
		p := startHost(t, dir, "--grace", "1m")
		require.Equal(t, cli.ExitOK, run(t, dir, "", "publish", "stall", "--data", "x").code)
		held := 0 // polls that saw the message leased: after many, the guest runs, and isn't about to
		require.Eventually(t, func() bool {
			s, err := p.admin.Topic(t.Context(), "default", "stall")
			if err == nil && s.Leased == 1 {
				held++
			}
			return held == 25
		}, 10*time.Second, 20*time.Millisecond)
		require.NoError(t, p.cmd.Process.Signal(syscall.SIGINT))
		require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM)) // at once, so that it is the host that takes the time
		require.Eventually(t, func() bool { return strings.Contains(p.stderr.String(), "host is stopping") },
			10*time.Second, 10*time.Millisecond)
		time.Sleep(signalsAsOne) // after what the host took for the first; what is tested is time
		require.NotContains(t, p.stderr.String(), "ending at once")
		require.Equal(t, cli.ExitFailed, p.signal(t, syscall.SIGINT), p.stderr.String())
		require.Contains(t, p.stderr.String(), "ending at once")
	})
	t.Run("AFaultInAModuleIsReportedAtItsPlaceInTheManifest", func(t *testing.T) {
		dir := t.TempDir()
		misbehave(t, dir, "max_attempts: 1", "trap")
		require.NoError(t, os.WriteFile(filepath.Join(dir, "trap.wasm"), []byte("\x00asm\x01\x00\x00\x00"), 0o600))
		out, err := program(t, dir, "run", "--http", "127.0.0.1:0").CombinedOutput()
		require.Error(t, err)
		require.Regexp(t, `(?m)^consumers.yaml:2:\d+: consumers\[0\].module: the host can't run it`, string(out))
	})
}

// get returns the status of the data interface's answer.
func get(t *testing.T, p *process, path string) int {
	t.Helper()
	return request(t, p, http.MethodGet, path, "")
}

func post(t *testing.T, p *process, path, body string) int {
	t.Helper()
	return request(t, p, http.MethodPost, path, body)
}

func request(t *testing.T, p *process, method, path, body string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+p.info.HTTP+path, strings.NewReader(body))
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}
