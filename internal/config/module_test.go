package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

// writeManifest writes a manifest of one consumer and returns its path.
func writeManifest(t *testing.T, module, more string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.yaml")
	text := "consumers:\n  - name: a\n    topic: a\n    module: " + module + "\n" + more
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestModule(t *testing.T) {
	t.Run("IsReadFromInsideTheFolder", func(t *testing.T) {
		path := writeManifest(t, "build/a.wasm", "")
		write(t, path, "build/a.wasm", "wasm")
		wasm, err := load(t, path).ReadModule()
		require.NoError(t, err)
		require.Equal(t, "wasm", string(wasm))
	})
	t.Run("LinkInsideTheFolderIsFollowed", func(t *testing.T) {
		path := writeManifest(t, "a.wasm", "")
		write(t, path, "real.wasm", "wasm")
		require.NoError(t, os.Symlink("real.wasm", filepath.Join(filepath.Dir(path), "a.wasm")))
		wasm, err := load(t, path).ReadModule()
		require.NoError(t, err)
		require.Equal(t, "wasm", string(wasm))
	})
	t.Run("LinkOutOfTheFolderIsRefused", func(t *testing.T) {
		outside := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(outside, "a.wasm"), []byte("secret"), 0o600))
		for _, link := range []string{"a.wasm", "build"} { // the file itself, and a folder on the way to it
			path := writeManifest(t, map[string]string{"a.wasm": "a.wasm", "build": "build/a.wasm"}[link], "")
			target := map[string]string{"a.wasm": filepath.Join(outside, "a.wasm"), "build": outside}[link]
			require.NoError(t, os.Symlink(target, filepath.Join(filepath.Dir(path), link)))
			_, err := LoadManifest(path, DefaultHost())
			require.ErrorContains(t, err, "m.yaml:4:13: consumers[0].module: ")
			require.ErrorContains(t, err, "escapes")
		}
	})
	t.Run("LinkMadeAfterLoadingIsRefusedToo", func(t *testing.T) {
		path := writeManifest(t, "a.wasm", "")
		c := load(t, path)
		require.NoError(t, os.Symlink(writeManifest(t, "x", ""), c.Module.File()))
		_, err := c.ReadModule()
		require.ErrorContains(t, err, "escapes")
	})
	t.Run("FolderIsRefused", func(t *testing.T) {
		path := writeManifest(t, "build", "")
		require.NoError(t, os.Mkdir(filepath.Join(filepath.Dir(path), "build"), 0o700))
		_, err := LoadManifest(path, DefaultHost())
		require.ErrorContains(t, err, `m.yaml:4:13: consumers[0].module: "build" is no regular file (want a file)`)
	})
	t.Run("UnbuiltModuleIsAFaultOnlyWhenRead", func(t *testing.T) {
		path := writeManifest(t, "a.wasm", "    build: [make, a.wasm]\n")
		_, err := load(t, path).ReadModule()
		require.EqualError(t, err, path+`:4:13: consumers[0].module: "a.wasm" is not there (build it: "make a.wasm")`)
		var fault Fault
		require.ErrorAs(t, err, &fault)
		require.Equal(t, 4, fault.Line)
	})
	t.Run("FaultFoundByCompilingHasItsPlace", func(t *testing.T) {
		path := writeManifest(t, "a.wasm", "")
		fault := load(t, path).ModuleFault("imports env.x", "want wasi:messaging only")
		require.EqualError(t, fault, path+":4:13: consumers[0].module: imports env.x (want wasi:messaging only)")
	})
}

func TestModuleBytesAreBounded(t *testing.T) {
	path := writeManifest(t, "a.wasm", "")
	write(t, path, "a.wasm", "")
	c := load(t, path)
	require.NoError(t, os.Truncate(c.Module.File(), limits.GuestModuleBytes))
	wasm, err := c.ReadModule()
	require.NoError(t, err)
	require.Len(t, wasm, limits.GuestModuleBytes)
	require.NoError(t, os.Truncate(c.Module.File(), limits.GuestModuleBytes+1))
	_, err = c.ReadModule()
	require.ErrorContains(t, err, fmt.Sprintf(`"a.wasm" has %d bytes (want at most 64MiB)`, limits.GuestModuleBytes+1))
	_, err = LoadManifest(path, DefaultHost())
	require.ErrorContains(t, err, "want at most 64MiB")
}

func TestModuleHashIsCheckedWhenRead(t *testing.T) {
	sum := sha256.Sum256([]byte("wasm"))
	path := writeManifest(t, "a.wasm", "    sha256: "+hex.EncodeToString(sum[:])+"\n")
	c := load(t, path)
	write(t, path, "a.wasm", "wasm")
	_, err := c.ReadModule()
	require.NoError(t, err)
	write(t, path, "a.wasm", "wasn")
	wasm, err := c.ReadModule()
	require.ErrorContains(t, err, "m.yaml:4:13: consumers[0].module: its SHA-256 is ")
	require.True(t, strings.HasSuffix(err.Error(), "(want "+hex.EncodeToString(sum[:])+", the entry's sha256)"))
	require.Nil(t, wasm)
}

func write(t *testing.T, manifest, name, content string) {
	t.Helper()
	path := filepath.Join(filepath.Dir(manifest), name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

func load(t *testing.T, path string) *Consumer {
	t.Helper()
	plan, err := LoadManifest(path, DefaultHost())
	require.NoError(t, err)
	return &plan.Consumers[0]
}
