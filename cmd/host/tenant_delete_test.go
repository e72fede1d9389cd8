package main

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/cmd/host/internal/cli"
	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/examples/misbehaving"
)

// TestTenantsCapsAndDeletion runs a host with a consumer of a tenant that has caps, shows what there is, and deletes the tenant.
func TestTenantsCapsAndDeletion(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "longshore.yaml"), []byte(`
tenants:
  - {tenant: victim-co, caps: {messages: 3, rate_per_sec: 1000, topics: 2, consumers: 1, instances: 1, log_bytes_per_sec: 1KiB, value_bytes: 1KiB}}
`), 0o600))
	module := misbehaving.All()[0]
	require.NoError(t, os.WriteFile(filepath.Join(dir, "m.wasm"), module.Wasm, 0o600))
	manifest := func(text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "consumers.yaml"), []byte("consumers:"+text), 0o600))
	}
	const one = "\n  - {name: victim-worker, tenant: victim-co, topic: victim-jobs, module: m.wasm, max_attempts: 1}\n"
	manifest(one)
	p := startHost(t, dir)
	of := func(args ...string) []string { return append(args, "--tenant", "victim-co") }

	t.Run("CapsRefuseWithTheirOwnCode", func(t *testing.T) {
		ok(t, dir, of("publish", "victim-jobs", "--data", "x")...)
		require.Eventually(t, func() bool {
			s, err := p.admin.Topic(t.Context(), "victim-co", "victim-jobs")
			return err == nil && s.DeadLetters == 1
		}, 20*time.Second, 20*time.Millisecond)
		ok(t, dir, of("publish", "victim-log", "--data", "1")...)
		ok(t, dir, of("publish", "victim-log", "--data", "2")...)
		a := run(t, dir, "", of("publish", "victim-log", "--data", "3")...)
		require.Equal(t, cli.ExitRefused, a.code)
		require.Contains(t, a.err, "tenant victim-co: stored messages: 4 is over the limit of 3")
		a = run(t, dir, "", of("publish", "victim-more", "--data", "3")...)
		require.Equal(t, cli.ExitRefused, a.code)
		require.Contains(t, a.err, "topics of a tenant: 3 is over the limit of 2")
		ok(t, dir, "publish", "victims", "--data", "of the tenant default")
		text := metricsOf(t, filepath.Join(dir, "longshore-data", "admin.sock"))
		for _, line := range []string{
			`longshore_tenant_used{cap="messages",tenant="victim-co"} 3`, `longshore_tenant_used{cap="consumers",tenant="victim-co"} 1`,
			`longshore_tenant_cap{cap="log_bytes_per_sec",tenant="victim-co"} 1024`,
			`longshore_tenant_refusals_total{cap="messages",tenant="victim-co"} 1`, `longshore_tenant_refusals_total{cap="topics",tenant="victim-co"} 1`,
		} {
			require.Contains(t, text, line)
		}
	})

	t.Run("ADeployBeyondTheCapsNamesItsPlace", func(t *testing.T) {
		manifest(one + "  - {name: second, tenant: victim-co, topic: victim-log, module: m.wasm}\n")
		a := run(t, dir, "", "apply", "-f", filepath.Join(dir, "consumers.yaml"))
		require.Equal(t, cli.ExitUsage, a.code, a.err)
		require.Contains(t, a.err, `consumers.yaml:3:28: consumers[1].tenant: it is consumer 2 of tenant "victim-co" (want at most 1`)
	})

	t.Run("GetShowsWhatThereIs", func(t *testing.T) {
		ok(t, dir, of("groups", "create", "victim-log", "watchers")...)
		require.Contains(t, ok(t, dir, "get", "consumers", "victim-worker"), "victim-co  victim-worker  victim-jobs  default")
		require.Equal(t, "victim-jobs\nvictim-log\n", ok(t, dir, of("get", "topics", "-o", "name")...))
		require.Contains(t, ok(t, dir, "get", "groups", "watchers", "-o", "yaml"), "topic: victim-log")
		require.Equal(t, "default\nvictim-co\n", ok(t, dir, "get", "tenants", "-o", "name"))
		var plan wire.VersionList
		require.NoError(t, json.Unmarshal([]byte(ok(t, dir, "get", "plan", "victim-co", "-o", "json")), &plan))
		require.Len(t, plan.Versions, 1)
		require.Equal(t, "victim-worker", plan.Versions[0].Consumers[0].Name)
		a := run(t, dir, "", "get", "topics", "nothing")
		require.Equal(t, cli.ExitFailed, a.code)
		require.Contains(t, a.err, "not found: nothing")
		a = run(t, dir, "", "get", "nothing")
		require.Equal(t, cli.ExitUsage, a.code)
		require.Contains(t, a.err, "want one of consumers, groups, plan, tenants, topics")
	})

	t.Run("ATenantWhoseConsumersRunIsNotDeleted", func(t *testing.T) {
		a := run(t, dir, "", "tenants", "delete", "victim-co", "--yes")
		require.Equal(t, cli.ExitConflict, a.code, a.err)
		require.Contains(t, a.err, "its consumers run (victim-worker)")
		_, err := p.admin.DeleteTenant(t.Context(), "victim-co")
		var refused *wire.Problem
		require.ErrorAs(t, err, &refused)
		require.Equal(t, http.StatusConflict, refused.Status)
		require.Contains(t, refused.Detail, "victim-worker")
	})

	t.Run("DeletionAsksAndLeavesNothing", func(t *testing.T) {
		manifest(" []\n")
		ok(t, dir, "apply", "-f", filepath.Join(dir, "consumers.yaml"))
		require.Contains(t, ok(t, dir, "tenants", "delete", "victim-co", "--dry-run"), "victim-co")
		require.Equal(t, cli.ExitUsage, run(t, dir, "", "tenants", "delete", "victim-co").code, "nobody is there to ask")
		require.Equal(t, cli.ExitFailed, run(t, dir, "n\n", "tenants", "delete", "victim-co").code)
		require.Contains(t, ok(t, dir, "tenants", "list"), "victim-co")
		a := run(t, dir, "y\n", "tenants", "delete", "victim-co")
		require.Equal(t, cli.ExitOK, a.code, a.err)
		require.Contains(t, a.err, "tenant victim-co has 2 topics, 3 stored messages")
		require.Equal(t, "default\n", ok(t, dir, "tenants", "list", "-o", "name"))
		require.NotContains(t, metricsOf(t, filepath.Join(dir, "longshore-data", "admin.sock")), "victim-co")
		require.Equal(t, cli.ExitFailed, run(t, dir, "y\n", "tenants", "delete", "victim-co").code, "there is none")
		require.Zero(t, p.signal(t, syscall.SIGTERM))
		require.NoError(t, filepath.WalkDir(filepath.Join(dir, "longshore-data"), func(path string, d fs.DirEntry, err error) error {
			require.NotContains(t, path, "victim-co")
			if err == nil && d.Type().IsRegular() && strings.Contains(path, "deployments") {
				text, err := os.ReadFile(path)
				require.NoError(t, err)
				require.NotContains(t, string(text), "victim-co", path)
			}
			return err
		}))
	})
}
