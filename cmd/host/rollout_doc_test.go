package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/cmd/host/internal/cli"
)

// TestTheRolloutPage runs the commands of the page about deploying, and looks up there each line that they print.
func TestTheRolloutPage(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", "rollout.md"))
	require.NoError(t, err)
	varies := regexp.MustCompile(`\b[0-9a-f]{12,16}\b|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|local:\d+|\d+ bytes| +`)
	same := func(line string) string {
		return varies.ReplaceAllStringFunc(line, func(s string) string {
			if strings.TrimSpace(s) == "" {
				return " "
			}
			return "…"
		})
	}
	var page []string
	commands := map[string]bool{}
	for line := range strings.SplitSeq(string(raw), "\n") {
		page = append(page, same(line))
		if command, is := strings.CutPrefix(line, "$ longshore "); is {
			commands[command] = true
		}
	}
	dir, s := t.TempDir(), shop{t, t.TempDir()}
	startHost(t, dir)
	t.Chdir(s.dir)
	tag := ""
	step := func(command string) {
		require.True(t, commands[command] || tag != "" && strings.Contains(command, "--if-match"), command)
		out := run(t, dir, "", strings.Fields(command)...)
		require.Equal(t, cli.ExitOK, out.code, out.err)
		for line := range strings.SplitSeq(strings.TrimSpace(out.err+out.out), "\n") {
			if found := regexp.MustCompile(`tag ([0-9a-f]+)`).FindStringSubmatch(line); found != nil {
				tag = found[1]
			}
			if !strings.Contains(command, "--if-match") && command != "rollback" {
				require.Contains(t, page, same(line), command)
			}
		}
	}
	s.module("trap")
	s.write("name: a, topic: a, module: a.wasm")
	step("apply -f consumers.yaml")
	s.module("divide")
	s.write("name: a, topic: a, module: a.wasm, limits: {fuel: 5000}")
	step("diff -f consumers.yaml")
	step("apply -f consumers.yaml --if-match " + tag)
	step("history")
	step("rollback")
}
