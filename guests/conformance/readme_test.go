package conformance_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/internal/guestbuild"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/wasi/messaging"
)

// recipe is what the README of an SDK says: which files there are, what to install, how to build.
type recipe struct {
	files   map[string]string // by name; the code block of that language is the content
	prepare []string          // what a consumer has before it takes the SDK
	module  string            // what the build makes
}

func recipes() map[guestbuild.Language]recipe {
	return map[guestbuild.Language]recipe{
		guestbuild.Go:             {map[string]string{"main.go": "go"}, []string{"go", "mod", "init", "shout"}, "shout.wasm"},
		guestbuild.C:              {map[string]string{"shout.c": "c"}, nil, "shout.wasm"},
		guestbuild.Rust:           {map[string]string{"src/lib.rs": "rust", "Cargo.toml": "toml"}, nil, "target/wasm32-unknown-unknown/release/shout.wasm"},
		guestbuild.AssemblyScript: {map[string]string{"shout.ts": "ts", "asconfig.json": "json"}, nil, "shout.wasm"},
		guestbuild.JavaScript:     {map[string]string{"shout.js": "js"}, nil, "shout.wasm"},
	}
}

func TestREADME(t *testing.T) {
	if testing.Short() {
		t.Skip("installs and builds as a user would")
	}
	for _, l := range guestbuild.Languages() {
		t.Run("WhatItSaysInstallsBuildsAndRuns/"+string(l), func(t *testing.T) {
			env := guestbuild.RequireAgain(t, l)
			r := recipes()[l]
			dir := t.TempDir()
			require.NoError(t, os.Symlink(absolute(t, filepath.Join("..", "..")), filepath.Join(dir, "longshore")))
			dir = filepath.Join(dir, "shout")
			text := string(guestbuild.Read(t, filepath.Join("..", string(l), "README.md")))
			r.write(t, dir, text)
			if r.prepare != nil {
				require.NoError(t, guestbuild.Run(t.Context(), dir, env, r.prepare...))
			}
			install(t, dir, env, command(t, text, "Install"))
			require.NoError(t, guestbuild.Run(t.Context(), dir, env, "sh", "-c", command(t, text, "Build")))
			requireShout(t, guestbuild.Read(t, filepath.Join(dir, r.module)))
		})
	}
}

// write writes the README's code blocks as the files that they are.
func (r recipe) write(t *testing.T, dir, readme string) {
	t.Helper()
	for name, language := range r.files {
		found := regexp.MustCompile("(?ms)^```" + language + "\n(.*?)^```").FindStringSubmatch(readme)
		require.NotNil(t, found, "a block of %s", language)
		content := found[1]
		if language == "toml" {
			content = "[package]\nname = \"shout\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n" + content
		}
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	}
}

// command returns the first indented line after the line that begins with a word.
func command(t *testing.T, readme, word string) string {
	t.Helper()
	found := regexp.MustCompile(`(?ms)^` + word + `\b.*?\n\n    ([^\n]+)\n`).FindStringSubmatch(readme)
	require.NotNil(t, found, "a command after %s", word)
	return found[1]
}

// install runs a command that installs. What it installs for the whole system is installed by .ci/toolchains.
func install(t *testing.T, dir string, env []string, command string) {
	t.Helper()
	packages, system := strings.CutPrefix(command, "apt-get install ")
	if !system {
		require.NoError(t, guestbuild.Run(t.Context(), dir, env, "sh", "-c", command))
		return
	}
	script := string(guestbuild.Read(t, filepath.Join("..", "..", ".ci", "toolchains")))
	for _, p := range strings.Fields(packages) {
		require.Regexp(t, `packages\+=\([^)]*\b`+p+`\b`, script)
	}
}

// requireShout wants of a module what the READMEs' consumers do.
func requireShout(t *testing.T, wasm []byte) {
	t.Helper()
	module, err := shared.compiler.Compile(t.Context(), "shout", wasm, patient())
	require.NoError(t, err)
	call := messaging.NewCall(messaging.CallOptions{Message: text("in", "hello"), Limits: patient(), Admit: admit()})
	require.Equal(t, runtime.OK, module.Invoke(t.Context(), call).Class)
	require.Len(t, call.Outbox(), 1)
	require.Equal(t, "shouts", call.Outbox()[0].Topic)
	require.Equal(t, "HELLO", string(call.Outbox()[0].Message.Data))
}
