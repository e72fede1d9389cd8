package conformance_test

import (
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

// build makes the guests of a language from source, in a folder that is the test's own, and returns their bytes.
func build(t *testing.T, l guestbuild.Language) map[kind][]byte {
	t.Helper()
	env := guestbuild.Require(t, l)
	out := t.TempDir()
	dir := filepath.Join("..", string(l), "conformance")
	guestbuild.Install(t, dir, env)
	built := map[kind][]byte{}
	for _, k := range kinds() {
		command, file := buildCommand(l, k, out)
		require.NoError(t, guestbuild.Run(t.Context(), dir, env, command...))
		built[k] = guestbuild.Read(t, file)
	}
	return built
}

// buildCommand returns the command that builds a guest, and the file that it makes. READMEs of the SDKs show the same ones.
func buildCommand(l guestbuild.Language, k kind, out string) (command []string, file string) {
	file = filepath.Join(out, string(k)+".wasm")
	switch l {
	case guestbuild.Go:
		return []string{
			"env", "GOOS=wasip1", "GOARCH=wasm", "go", "build", "-trimpath", "-buildvcs=false",
			"-ldflags=-s -w -buildid=", "-buildmode=c-shared", "-o", file, "./" + string(k),
		}, file
	case guestbuild.C:
		compiler, source := "clang", string(k)+".c"
		if k == batch { // C++ as well
			compiler, source = "clang++", string(k)+".cpp"
		}
		return []string{
			compiler, "--target=wasm32", "-Os", "-mbulk-memory", "-ffreestanding", "-nostdlib", "-Wall", "-Wextra", "-Wpedantic",
			"-Werror", "-Wl,--no-entry,--strip-all,--stack-first", "-o", file, source,
		}, file
	case guestbuild.Rust:
		return []string{
			"cargo", "build", "--release", "--quiet", "--target=wasm32-unknown-unknown", "--target-dir=" + out, "--example", string(k),
		}, filepath.Join(out, "wasm32-unknown-unknown", "release", "examples", string(k)+".wasm")
	case guestbuild.AssemblyScript:
		return []string{filepath.Join("node_modules", ".bin", "asc"), string(k) + ".ts", "-o", file}, file
	case guestbuild.JavaScript:
		return []string{filepath.Join("node_modules", ".bin", "longshore-build"), string(k) + ".js", "-o", file}, file
	}
	return nil, ""
}
