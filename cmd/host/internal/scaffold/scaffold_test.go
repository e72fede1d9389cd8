package scaffold

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/internal/guestbuild"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/wasi/messaging"
)

var update = flag.Bool("update", false, "write gosdk.txt anew")

func TestNew(t *testing.T) {
	for _, language := range Languages() {
		t.Run("WhatItWritesIsBuiltAndRuns/"+language, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "shout-2")
			files, err := New(dir, "shout-2", language)
			require.NoError(t, err)
			require.Contains(t, files, "consumers.yaml")
			require.Contains(t, files, ".gitignore")
			env := guestbuild.RequireAgain(t, guestbuild.Language(language))
			if slices.Contains(files, "package.json") {
				require.NoError(t, guestbuild.Run(t.Context(), dir, env, "npm", "install", "--silent", "--prefer-offline"))
			}
			consumer := guestbuild.Consumers(t, guestbuild.Language(language), dir)["shout-2"]
			o, out := consumer.Deliver(t, messaging.Message{Data: []byte("hello, 2")})
			require.Equal(t, runtime.OK, o.Class, "%s: %s", o.Reason(), o.GuestText)
			require.Len(t, out, 1)
			require.Equal(t, "shout-2/out", out[0].Topic)
			require.Equal(t, "HELLO, 2", string(out[0].Message.Data))
		})
	}
	t.Run("AFolderThatIsThereIsLeftAlone", func(t *testing.T) {
		dir := t.TempDir()
		_, err := New(dir, "shout", "c")
		require.ErrorIs(t, err, ErrExists)
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, entries)
	})
	t.Run("ANameThatAManifestWouldRefuseIsRefused", func(t *testing.T) {
		for _, name := range []string{"", "-a", "A", "a/b", "..", "a b", strings.Repeat("a", 64)} {
			dir := filepath.Join(t.TempDir(), "new")
			_, err := New(dir, name, "c")
			require.ErrorContains(t, err, "want 1 to 63 of a-z, 0-9 and -")
			require.NoFileExists(t, dir)
		}
	})
	t.Run("ALanguageThatThereIsNoSDKForIsRefused", func(t *testing.T) {
		_, err := New(filepath.Join(t.TempDir(), "new"), "shout", "cobol")
		require.ErrorContains(t, err, `language "cobol": want one of go, c, rust`)
	})
}

func TestGoSDK(t *testing.T) {
	t.Run("IsThatOfThisRepository", func(t *testing.T) {
		want := packGoSDK(t)
		if *update {
			require.NoError(t, os.WriteFile("gosdk.txt", []byte(want), 0o600))
		}
		got, err := os.ReadFile("gosdk.txt")
		require.NoError(t, err)
		require.Equal(t, want, string(got), "run go test ./cmd/host/internal/scaffold -update")
	})
}

// packGoSDK returns the files of the SDK for Go as gosdk.txt has them.
func packGoSDK(t *testing.T) string {
	t.Helper()
	root := filepath.Join("..", "..", "..", "..", "guests", "go")
	var all strings.Builder
	require.NoError(t, filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == "conformance" {
			return fs.SkipDir
		}
		isGo := strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go")
		if d.IsDir() || !isGo && d.Name() != "go.mod" {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, file)
		all.WriteString(fileMark + filepath.ToSlash(name) + " --\n")
		all.Write(text)
		return err
	}))
	return all.String()
}
