package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/cmd/host/internal/cli"
)

// TestCompletionAsksTheHost completes words as the scripts of shells do.
func TestCompletionAsksTheHost(t *testing.T) {
	dir := t.TempDir()
	completes := func(words ...string) []string {
		t.Helper()
		out := run(t, dir, "", append([]string{"__complete"}, words...)...)
		require.Equal(t, cli.ExitOK, out.code, out.err)
		lines := strings.Split(strings.TrimSpace(out.out), "\n")
		return lines[:len(lines)-1]
	}
	require.Empty(t, completes("peek", ""), "no host runs")

	s := shop{t, t.TempDir()}
	startHost(t, dir)
	s.module("trap")
	ok(t, dir, "apply", "-f", s.write("name: a, topic: orders, module: a.wasm"))
	ok(t, dir, "publish", "other", "--data", "x")
	ok(t, dir, "publish", "orders/late", "--tenant", "acme", "--data", "x")
	require.Equal(t, []string{"orders", "other"}, completes("peek", ""))
	require.Equal(t, []string{"orders"}, completes("dlq", "list", "ord"))
	require.Equal(t, []string{"orders/late"}, completes("policy", "set", "--tenant", "acme", ""))
	require.Empty(t, completes("dlq", "show", "orders", ""), "an id is no topic")
	require.Equal(t, []string{"a"}, completes("promote", ""))
	require.Equal(t, []string{"acme", "default"}, completes("pause", "--tenant", ""))
	require.Equal(t, []string{"acme"}, completes("tenants", "delete", "a"))
	require.Contains(t, completes("explain", "quo"), "quota-exceeded")
}

func TestCompletionPrintsAScriptForEachShell(t *testing.T) {
	for shell, has := range map[string]string{
		"bash": "complete -o default", "zsh": "#compdef longshore", "fish": "complete -c longshore", "powershell": "Register-ArgumentCompleter",
	} {
		out := run(t, t.TempDir(), "", "completion", shell)
		require.Equal(t, cli.ExitOK, out.code, out.err)
		require.Contains(t, out.out, has)
	}
	require.Equal(t, cli.ExitUsage, run(t, t.TempDir(), "", "completion", "tcsh").code)
}
