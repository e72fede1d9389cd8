package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/cmd/host/internal/cli"
	"github.com/longshore/longshore/signedctx"
)

func TestKeysCommands(t *testing.T) {
	dir := t.TempDir()
	p := startHost(t, dir)
	fields := func(text string) []string { return strings.Fields(text) }
	names := func() []string { return fields(ok(t, dir, "keys", "list", "-o", "name")) }

	first := names()
	require.Len(t, first, 2, "made on the first start")
	info, err := os.Stat(filepath.Join(dir, "longshore-data", "keys", "seal-000001.jwk"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	ok(t, dir, "publish", "jobs", "--data", "x")

	made := fields(ok(t, dir, "keys", "rotate", "seal", "-o", "name"))
	require.Len(t, made, 1)
	require.Contains(t, ok(t, dir, "keys", "list"), made[0])
	refused := run(t, dir, "", "keys", "retire", "seal", made[0], "--yes")
	require.Equal(t, cli.ExitConflict, refused.code)
	require.Contains(t, refused.err, "rotate first")
	refused = run(t, dir, "", "keys", "retire", "seal", first[1], "--yes")
	require.Equal(t, cli.ExitConflict, refused.code, "it signed a moment ago")
	require.Equal(t, cli.ExitUsage, run(t, dir, "", "keys", "retire", "seal", first[1]).code, "asks first")
	require.Equal(t, cli.ExitUsage, run(t, dir, "", "keys", "rotate", "other").code)

	_, err = signedctx.Folder{Dir: filepath.Join(dir, "longshore-data", "keys")}.Rotate(signedctx.TokenKind)
	require.NoError(t, err)
	require.Len(t, names(), 3, "not read yet")
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGHUP))
	require.Eventually(t, func() bool { return len(names()) == 4 }, 10*time.Second, 20*time.Millisecond)
	require.Len(t, fields(ok(t, dir, "keys", "reload", "-o", "name")), 4)

	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.info.HTTP+"/.well-known/jwks.json", nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	var set struct{ Keys []map[string]string }
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&set))
	require.Len(t, set.Keys, 2, "two token keys, and no seal key")

	require.Zero(t, p.signal(t, syscall.SIGTERM))
	p = startHost(t, dir)
	refused = run(t, dir, "", "keys", "retire", "seal", first[1], "--yes")
	require.Equal(t, cli.ExitConflict, refused.code)
	require.Contains(t, refused.err, "a stored message names the key")
	require.Zero(t, p.signal(t, syscall.SIGTERM))
}
