package guestbuild

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// commandDuration is the longest that a build may take.
const commandDuration = 5 * time.Minute

// Run runs a command in a folder. Its output is in the error.
func Run(ctx context.Context, dir string, env []string, command ...string) error {
	ctx, cancel := context.WithTimeout(ctx, commandDuration)
	defer cancel()
	program := command[0]
	if found := lookPath(program, env); found != "" {
		program = found
	}
	cmd := exec.CommandContext(ctx, program, command[1:]...) //nolint:gosec // of the tests
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, out)
	}
	return nil
}

// lookPath finds a program in the path of env, which needn't be this process's.
func lookPath(program string, env []string) string {
	if strings.ContainsRune(program, filepath.Separator) {
		return ""
	}
	path := ""
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	for _, dir := range filepath.SplitList(path) {
		if file := filepath.Join(dir, program); executable(file) {
			return file
		}
	}
	return ""
}

// Install installs what a folder with a package.json depends on, as its lock file says. It does nothing elsewhere.
func Install(tb testing.TB, dir string, env []string) {
	tb.Helper()
	if _, err := os.Stat(filepath.Join(dir, "package-lock.json")); err != nil {
		return
	}
	require.NoError(tb, Run(tb.Context(), dir, env, "npm", "ci", "--silent", "--prefer-offline"))
}

// Read returns the bytes of a file that was just built.
func Read(tb testing.TB, file string) []byte {
	tb.Helper()
	wasm, err := os.ReadFile(file)
	require.NoError(tb, err)
	return wasm
}
