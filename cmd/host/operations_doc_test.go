package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTheOperationsPageNamesMetricsThatExist looks up each on a host with a consumer and a group.
func TestTheOperationsPageNamesMetricsThatExist(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "operations.md"))
	require.NoError(t, err)
	dir := t.TempDir()
	misbehave(t, dir, "max_attempts: 1, events: {death: audit}", "trap")
	config := "topics: [{topic: audit, max_message_bytes: 1}]" // which no event fits
	require.NoError(t, os.WriteFile(filepath.Join(dir, "longshore.yaml"), []byte(config), 0o600))
	startHost(t, dir)
	ok(t, dir, "publish", "trap", "--data", "x")
	ok(t, dir, "groups", "create", "trap", "g")
	var metrics string
	require.Eventually(t, func() bool {
		metrics = metricsOf(t, filepath.Join(dir, "longshore-data", "admin.sock"))
		return strings.Contains(metrics, `reason="too-large"`)
	}, 30*time.Second, 20*time.Millisecond)
	named := regexp.MustCompile("`(longshore_[a-z_]+)`").FindAllSubmatch(page, -1)
	require.Greater(t, len(named), 5)
	for _, m := range named {
		require.Regexp(t, `(?m)^`+string(m[1])+`[{ ]`, metrics)
	}
}

func metricsOf(t *testing.T, socket string) string {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/metrics", nil)
	require.NoError(t, err)
	resp, err := client.Do(r)
	require.NoError(t, err)
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return string(text)
}
