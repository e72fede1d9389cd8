package conformance_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/internal/guestbuild"
)

// kind is which handler a module exports. Each SDK has a conformance guest of each kind.
type kind string

const (
	handler kind = "handler" // wasi:messaging/incoming-handler
	outcome kind = "outcome" // longshore:messaging/outcome-handler
	batch   kind = "batch"   // longshore:messaging/batch-handler
)

func kinds() []kind { return []kind{handler, outcome, batch} }

// built returns the files of a language's guests, which it makes from source if no test did before. The test is skipped if it
// can't be.
func built(t *testing.T, l guestbuild.Language) map[kind]string {
	t.Helper()
	env := tools(t, l)
	if shared.builds[l] == nil {
		shared.builds[l] = build(t, l, env, filepath.Join(shared.dir, string(l)))
	}
	return shared.builds[l]
}

// tools returns the environment that guests of a language are built in. What they depend on is installed once.
func tools(t *testing.T, l guestbuild.Language) []string {
	t.Helper()
	env := guestbuild.Require(t, l)
	if !shared.installed[l] {
		guestbuild.Install(t, source(l), env)
		shared.installed[l] = true
	}
	return env
}

// build makes the guests of a language from source, in a folder, and returns their files.
func build(t *testing.T, l guestbuild.Language, env []string, out string) map[kind]string {
	t.Helper()
	require.NoError(t, os.MkdirAll(out, 0o700))
	files := map[kind]string{}
	for _, k := range kinds() {
		files[k] = filepath.Join(out, string(k)+".wasm")
		if l == guestbuild.Rust {
			files[k] = filepath.Join(out, "wasm32-unknown-unknown", "release", "examples", string(k)+".wasm")
		}
	}
	for _, command := range buildCommands(l, out, files) {
		require.NoError(t, guestbuild.Run(t.Context(), source(l), env, command...))
	}
	return files
}

// source is the folder of a language's guests.
func source(l guestbuild.Language) string { return filepath.Join("..", string(l), "conformance") }

// buildCommands returns the commands that build the guests. READMEs of the SDKs show the same ones.
func buildCommands(l guestbuild.Language, out string, files map[kind]string) (commands [][]string) {
	if l == guestbuild.JavaScript { // all at once, which takes half of the time
		command := []string{filepath.Join("node_modules", ".bin", "longshore-build")}
		for _, k := range kinds() {
			command = append(command, string(k)+".js", "-o", files[k])
		}
		return [][]string{command}
	}
	for _, k := range kinds() {
		commands = append(commands, buildCommand(l, k, out, files[k]))
	}
	return commands
}

// buildCommand returns the command that builds one guest.
func buildCommand(l guestbuild.Language, k kind, out, file string) []string {
	switch l {
	case guestbuild.Go:
		return []string{
			"env", "GOOS=wasip1", "GOARCH=wasm", "go", "build", "-trimpath", "-buildvcs=false",
			"-ldflags=-s -w -buildid=", "-buildmode=c-shared", "-o", file, "./" + string(k),
		}
	case guestbuild.C:
		compiler, source := "clang", string(k)+".c"
		if k == batch { // C++ as well
			compiler, source = "clang++", string(k)+".cpp"
		}
		return []string{
			compiler, "--target=wasm32", "-Os", "-mbulk-memory", "-ffreestanding", "-nostdlib", "-Wall", "-Wextra", "-Wpedantic",
			"-Werror", "-Wl,--no-entry,--strip-all,--stack-first", "-o", file, source,
		}
	case guestbuild.Rust:
		return []string{
			"cargo", "build", "--release", "--quiet", "--target=wasm32-unknown-unknown", "--target-dir=" + out, "--example", string(k),
		}
	case guestbuild.AssemblyScript:
		return []string{filepath.Join("node_modules", ".bin", "asc"), string(k) + ".ts", "-o", file}
	case guestbuild.JavaScript:
	}
	return nil
}
