package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/cmd/host/internal/cli"
)

func TestBuild(t *testing.T) {
	manifest := func(t *testing.T, text string) string {
		t.Helper()
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "consumers.yaml"), []byte(text), 0o600))
		return dir
	}
	build := func(dir string, args ...string) (out, said string, code int) {
		a := run(t, dir, "", append([]string{"build", "-m", filepath.Join(dir, "consumers.yaml")}, args...)...)
		return a.out, a.err, a.code
	}
	const two = `consumers:
  - {name: a, topic: a, module: a.wasm, build: [sh, -c, "echo the compiler speaks; echo hello > a.wasm"]}
  - {name: b, topic: b, module: b.wasm, build: [sh, -c, "echo 'b.c:1: error: no' >&2; exit 3"]}
`
	t.Run("RunsTheCommandOfAConsumerThatIsNamed", func(t *testing.T) {
		dir := manifest(t, two)
		out, said, code := build(dir, "a", "-o", "json")
		require.Equal(t, cli.ExitOK, code, said)
		require.JSONEq(t, `{"consumers":[{"name":"a","module":"a.wasm","bytes":6}]}`, out)
		require.Contains(t, said, "the compiler speaks\n")
	})
	t.Run("PrintsWhatTheCompilerSaysAndFails", func(t *testing.T) {
		_, said, code := build(manifest(t, two))
		require.Equal(t, cli.ExitFailed, code)
		require.Contains(t, said, "b.c:1: error: no\n")
		require.Contains(t, said, "consumer b: sh -c echo 'b.c:1: error: no' >&2; exit 3: exit status 3")
	})
	t.Run("ACommandThatMakesNoModuleIsAFailure", func(t *testing.T) {
		_, said, code := build(manifest(t, "consumers:\n  - {name: a, topic: a, module: a.wasm, build: ['true']}\n"))
		require.Equal(t, cli.ExitFailed, code)
		require.Contains(t, said, "the build command made no a.wasm")
	})
	t.Run("AConsumerThatIsNotThereIsAFaultOfTheCommandLine", func(t *testing.T) {
		_, said, code := build(manifest(t, two), "c")
		require.Equal(t, cli.ExitUsage, code)
		require.Contains(t, said, `has no consumer "c"`)
	})
	t.Run("AModuleThatNothingMakesIsAFaultOfTheManifest", func(t *testing.T) {
		_, said, code := build(manifest(t, "consumers:\n  - {name: a, topic: a, module: a.wasm}\n"))
		require.Equal(t, cli.ExitUsage, code)
		require.Contains(t, said, "there is no a.wasm, and no build command that makes it")
	})
}

func TestNewConsumer(t *testing.T) {
	t.Run("WritesAFolderAndLeavesOneThatIsThereAlone", func(t *testing.T) {
		dir := t.TempDir()
		r := run(t, dir, "", "new", "consumer", "shout", "--lang", "c", "--dir", filepath.Join(dir, "shout"))
		require.Equal(t, cli.ExitOK, r.code, r.err)
		require.Contains(t, r.out, filepath.Join("shout", "consumers.yaml"))
		require.FileExists(t, filepath.Join(dir, "shout", "sdk", "longshore.h"))
		r = run(t, dir, "", "new", "consumer", "shout", "--lang", "c", "--dir", filepath.Join(dir, "shout"))
		require.Equal(t, cli.ExitUsage, r.code)
		require.Contains(t, r.err, "shout: there is something already")
	})
	t.Run("AnUnknownLanguageIsAFaultOfTheCommandLine", func(t *testing.T) {
		r := run(t, t.TempDir(), "", "new", "consumer", "shout", "--lang", "cobol", "--dir", filepath.Join(t.TempDir(), "shout"))
		require.Equal(t, cli.ExitUsage, r.code)
		require.Contains(t, r.err, `language "cobol"`)
	})
}
