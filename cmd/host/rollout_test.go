package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/cmd/host/internal/cli"
	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/examples/misbehaving"
)

// shop is a folder with a manifest and modules, from which a host is deployed to.
type shop struct {
	t   *testing.T
	dir string
}

// wasmOf returns a module that misbehaves, or "ok", which handles everything.
func wasmOf(t *testing.T, name string) []byte {
	t.Helper()
	want := name
	if name == "ok" {
		want = "divide"
	}
	for _, m := range misbehaving.All() {
		if m.Name != want {
			continue
		}
		if name != "ok" {
			return m.Wasm
		}
		sum := bytes.Replace(m.Wasm, []byte{0x41, 1, 0x41, 0, 0x6e}, []byte{0x41, 0, 0x41, 0, 0x6a}, 1) // 0 + 0, where there is an ok
		require.NotEqual(t, m.Wasm, sum)
		return sum
	}
	require.FailNow(t, "no such module: "+name)
	return nil
}

func digestOf(t *testing.T, name string) string {
	t.Helper()
	return fmt.Sprintf("%x", sha256.Sum256(wasmOf(t, name)))
}

// write writes the manifest of consumers that are given as flow mappings.
func (s shop) write(consumers ...string) string {
	s.t.Helper()
	text := "consumers:\n"
	for _, c := range consumers {
		text += "  - {" + c + "}\n"
	}
	return s.file("consumers.yaml", []byte(text))
}

func (s shop) file(name string, content []byte) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	require.NoError(s.t, os.WriteFile(path, content, 0o600))
	return path
}

// module makes a.wasm the module of that name.
func (s shop) module(name string) { s.file("a.wasm", wasmOf(s.t, name)) }

// dies publishes a message to the topic a and returns the receipt with which it died.
func dies(t *testing.T, p *process, dir string) dispatcher.Receipt {
	t.Helper()
	id := strings.TrimSpace(ok(t, dir, "publish", "a", "--data", "x", "-o", "name"))
	var r dispatcher.Receipt
	require.Eventually(t, func() bool {
		list, err := p.admin.DeadLetters(t.Context(), "default", "a", wire.Filter{ID: id})
		if err != nil || len(list) == 0 {
			return false
		}
		require.NoError(t, json.Unmarshal(list[0].Receipt, &r))
		return true
	}, 20*time.Second, 20*time.Millisecond, &p.stderr)
	return r
}

func TestRollout(t *testing.T) {
	dir := t.TempDir()
	s := shop{t, t.TempDir()}
	p := startHost(t, dir)
	serves := func(t *testing.T, module, version string) {
		t.Helper()
		r := dies(t, p, dir)
		require.Equal(t, digestOf(t, module), r.Module)
		require.Equal(t, version, r.Version)
	}
	const a, b = "name: a, topic: a, module: a.wasm, max_attempts: 1", "name: b, topic: b, module: b.wasm, group: g, start: latest"
	s.module("trap")
	s.file("b.wasm", wasmOf(t, "ok"))
	manifest := s.write(a, b)

	out := run(t, dir, "", "diff", "-f", manifest)
	require.Equal(t, cli.ExitOK, out.code, out.err)
	require.Contains(t, out.out, "added")
	require.Contains(t, out.err, "uploading a.wasm")
	require.Empty(t, history(t, dir), "nothing was changed")
	ok(t, dir, "publish", "b", "--data", "before the deployment")
	out = run(t, dir, "", "apply", "-f", manifest)
	require.Equal(t, cli.ExitOK, out.code, out.err)
	require.NotContains(t, out.err, "uploading", "the host has them")
	serves(t, "trap", "1")
	groups, err := p.admin.Groups(t.Context(), "default", "b")
	require.NoError(t, err)
	require.Zero(t, groups[0].Lag, "the group begins where it was accepted")

	s.module("divide")
	s.write(a+", limits: {fuel: 5000}", b)
	diff := ok(t, dir, "diff", "-f", manifest, "-o", "json")
	var would struct {
		Tag string `json:"tag"`
		wire.Deployed
	}
	require.NoError(t, json.Unmarshal([]byte(diff), &would))
	require.Equal(t, []wire.Change{{
		Tenant: "default", Consumer: "a", Kind: wire.ChangeChanged, ModuleBefore: digestOf(t, "trap"), ModuleAfter: digestOf(t, "divide"),
		Fields: []wire.FieldChange{{Path: "limits.fuel", After: "5000"}},
	}}, would.Changes)
	serves(t, "trap", "1")
	out = run(t, dir, "", "apply", "-f", manifest, "--if-match", "somethingelse")
	require.Equal(t, cli.ExitConflict, out.code, out.err)
	require.Contains(t, out.err, "something else was deployed")
	out = run(t, dir, "", "apply", "-f", manifest, "--if-match", would.Tag)
	require.Equal(t, cli.ExitOK, out.code, out.err)
	require.NotContains(t, out.err, "uploading b.wasm", "the host has it")
	serves(t, "divide", "2")
	all, err := p.admin.Consumers(t.Context())
	require.NoError(t, err)
	require.Equal(t, "1", all[1].Version, "what didn't change is still of version 1")
	require.Contains(t, ok(t, dir, "apply", "-f", manifest), "CONSUMER")
	require.Len(t, history(t, dir), 2, "the same again is no version")

	t.Run("AFailureChangesNothing", func(t *testing.T) {
		bad := s.file("bad.yaml", []byte("consumers:\n  - {name: a, topic: a, module: bad.wasm, max_attempts: 1}\n"+
			"  - {name: c, topic: c, module: gone.wasm}\n  - {name: d, topic: d, module: a.wasm, lease: 1ms}\n"))
		s.file("bad.wasm", []byte("\x00asm\x01\x00\x00\x00"))
		out := run(t, dir, "", "apply", "-f", bad)
		require.Equal(t, cli.ExitUsage, out.code, out.err)
		require.Regexp(t, `bad.yaml:3:33: consumers\[1\].module: "gone.wasm" is not there`, out.err)
		require.Regexp(t, `(?m)^bad.yaml:4:\d+: consumers\[2\].*lease`, out.err)
		require.NotContains(t, out.err, "was not given", "one fault for each place")
		bad = s.file("bad.yaml", []byte("consumers:\n  - {name: a, topic: a, module: bad.wasm, max_attempts: 1}\n"))
		out = run(t, dir, "", "apply", "-f", bad)
		require.Equal(t, cli.ExitUsage, out.code, out.err)
		require.Regexp(t, `(?m)^bad.yaml:2:\d+: consumers\[0\].module: the host can't run it`, out.err)
		serves(t, "divide", "2")
		require.Len(t, history(t, dir), 2)
	})

	require.Contains(t, ok(t, dir, "rollback"), "limits.fuel")
	serves(t, "trap", "3")
	require.Equal(t, -1, kill(t, p))
	p = startHost(t, dir)
	serves(t, "trap", "3")
	ok(t, dir, "rollback", "2")
	serves(t, "divide", "4")
	require.Equal(t, cli.ExitFailed, run(t, dir, "", "rollback", "99").code)
	versions := history(t, dir)
	require.Equal(t, "rollback to version 2", versions[0].What)
	require.Equal(t, fmt.Sprintf("local:%d", os.Getuid()), versions[0].By)
	require.Equal(t, versions[0].Digest, versions[2].Digest)
	require.True(t, versions[0].Runs)
	require.False(t, versions[1].Runs)

	t.Run("AManifestThatIsNamedAtTheStartIsDeployedIfItDiffers", func(*testing.T) { // the host outlives it
		require.Equal(t, cli.ExitOK, p.signal(t, syscall.SIGTERM))
		p = startHost(t, dir, "--manifest", manifest)
		serves(t, "divide", "4")
		require.Len(t, history(t, dir), 4)
		require.Equal(t, cli.ExitOK, p.signal(t, syscall.SIGTERM))
		s.module("stray")
		p = startHost(t, dir, "--manifest", manifest)
		serves(t, "stray", "5")
		require.Equal(t, "run consumers.yaml", history(t, dir)[0].What)
	})
	t.Run("OneThatOnlyLiesThereIsNotReadAfterAnApply", func(*testing.T) { // the host outlives it
		s.module("trap")
		ok(t, dir, "apply", "-f", manifest)
		require.Equal(t, cli.ExitOK, p.signal(t, syscall.SIGTERM))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "consumers.yaml"), []byte("consumers: []\n"), 0o600))
		p = startHost(t, dir)
		serves(t, "trap", "6")
		require.Contains(t, p.stderr.String(), "is not read")
	})
	t.Run("NoBuildCommandIsRunAndNoPathIsRead", func(t *testing.T) {
		s.write(a+", limits: {fuel: 5000}, build: [touch, built]", b)
		ok(t, dir, "apply", "-f", manifest)
		require.NoFileExists(t, filepath.Join(s.dir, "built"))
		require.NoError(t, os.Remove(filepath.Join(s.dir, "a.wasm")))
		require.Equal(t, cli.ExitUsage, run(t, dir, "", "apply", "-f", manifest).code)
		serves(t, "trap", "6")
	})
}

func history(t *testing.T, dir string) []wire.Version {
	t.Helper()
	var list wire.VersionList
	require.NoError(t, json.Unmarshal([]byte(ok(t, dir, "history", "-o", "json")), &list))
	return list.Versions
}

func kill(t *testing.T, p *process) int {
	t.Helper()
	require.NoError(t, p.cmd.Process.Kill())
	return p.wait(t)
}
