package rollout

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

func openStore(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := OpenStore(dir)
	require.NoError(t, err)
	return s
}

func digestOf(content string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(content))) }

// put uploads a module and returns its digest.
func put(t *testing.T, s *Store, tenant, content string) string {
	t.Helper()
	require.NoError(t, s.Put(tenant, digestOf(content), strings.NewReader(content)))
	return digestOf(content)
}

// modules returns how many modules the folder has.
func modules(t *testing.T, s *Store) int {
	t.Helper()
	files, err := os.ReadDir(s.modules())
	require.NoError(t, err)
	return len(files)
}

func versionOf(tenant string, number int, module string) *Version {
	return &Version{Tenant: tenant, Number: number, Entries: []Entry{{Name: "c", Module: module, Manifest: json.RawMessage(`{"name":"c"}`)}}}
}

func TestStore(t *testing.T) {
	t.Run("TheLastVersionsAreKeptWithTheirModulesAndNoOthers", func(t *testing.T) {
		dir := t.TempDir()
		s := openStore(t, dir)
		for i := range limits.PlanVersions + 3 {
			require.NoError(t, s.Add(versionOf("acme", i+1, put(t, s, "acme", fmt.Sprint(i)))))
		}
		require.NoError(t, s.Add(versionOf("other", 1, put(t, s, "other", "x"))))
		s = openStore(t, dir)
		all := s.Versions("acme")
		require.Len(t, all, limits.PlanVersions)
		require.Equal(t, 4, all[0].Number)
		require.Equal(t, limits.PlanVersions+3, s.Current("acme").Number)
		require.Equal(t, limits.PlanVersions+1, modules(t, s))
		require.Equal(t, []string{"acme", "other"}, s.Tenants(), "one that deploys often takes nothing from another")
		wasm, err := s.Read(all[0].Entries[0].Module)
		require.NoError(t, err)
		require.Equal(t, "3", string(wasm))
	})
	t.Run("AVersionThatCameToNothingIsGone", func(t *testing.T) {
		dir := t.TempDir()
		s := openStore(t, dir)
		first, second := versionOf("acme", 1, put(t, s, "acme", "1")), versionOf("acme", 2, put(t, s, "acme", "2"))
		require.NoError(t, s.Add(first))
		require.NoError(t, s.Add(second))
		require.NoError(t, s.Remove(second))
		require.Equal(t, 1, s.Current("acme").Number)
		require.Equal(t, 1, openStore(t, dir).Current("acme").Number)
	})
	t.Run("AModuleThatIsAnotherThanAnnouncedIsRefused", func(t *testing.T) {
		s := openStore(t, t.TempDir())
		require.ErrorIs(t, s.Put("acme", digestOf("x"), strings.NewReader("y")), ErrDigest)
		require.Zero(t, modules(t, s))
		left, err := filepath.Glob(filepath.Join(s.dir, "new-*"))
		require.NoError(t, err)
		require.Empty(t, left)
	})
	t.Run("AModuleThatIsTooLargeIsRefused", func(t *testing.T) {
		s := openStore(t, t.TempDir())
		limit := new(limits.Error)
		require.ErrorAs(t, s.Put("acme", digestOf("x"), io.LimitReader(zeros{}, limits.GuestModuleBytes+2)), &limit)
		require.Equal(t, limits.NameModule, limit.Name)
		require.Zero(t, modules(t, s))
	})
	t.Run("ATenantNamesOnlyWhatItUploadedOrHad", func(t *testing.T) {
		s := openStore(t, t.TempDir())
		module := put(t, s, "acme", "x")
		require.True(t, s.Has("acme", module))
		require.False(t, s.Has("other", module), "not even that it is there")
		require.NoError(t, s.Add(versionOf("acme", 1, module)))
		require.True(t, s.Has("acme", module))
		require.False(t, s.Has("other", module))
	})
	t.Run("TooManyUploadsMakeTheOldestOfTheTenantGo", func(t *testing.T) {
		s := openStore(t, t.TempDir())
		s.uploadBytes = 3
		others, oldest := put(t, s, "other", "o"), put(t, s, "acme", "a")
		put(t, s, "acme", "b")
		put(t, s, "acme", "c")
		require.True(t, s.Has("acme", oldest))
		newest := put(t, s, "acme", "d")
		require.False(t, s.Has("acme", oldest))
		require.True(t, s.Has("acme", newest) && s.Has("other", others))
		require.Equal(t, 4, modules(t, s))
	})
	t.Run("WhatWasLeftUnfinishedIsRemoved", func(t *testing.T) {
		dir := t.TempDir()
		s := openStore(t, dir)
		put(t, s, "acme", "no version names it")
		require.NoError(t, os.WriteFile(filepath.Join(dir, "new-1"), []byte("x"), 0o600))
		s = openStore(t, dir)
		require.Zero(t, modules(t, s))
		require.NoFileExists(t, filepath.Join(dir, "new-1"))
	})
	t.Run("AnotherFormatIsRefused", func(t *testing.T) {
		dir := t.TempDir()
		openStore(t, dir)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "format"), []byte("longshore deployments 2\n"), 0o600))
		_, err := OpenStore(dir)
		require.ErrorContains(t, err, `says "longshore deployments 2\n", and this program knows "longshore deployments 1\n"`)
	})
	t.Run("DamageIsNoticedAndNamed", func(t *testing.T) {
		dir := t.TempDir()
		s := openStore(t, dir)
		module := put(t, s, "acme", "x")
		require.NoError(t, s.Add(versionOf("acme", 1, module)))
		require.NoError(t, os.WriteFile(s.module(module), []byte("y"), 0o600))
		_, err := s.Read(module)
		require.ErrorContains(t, err, "is damaged")
		for _, content := range []string{"{", `{"tenant":"other","version":1}`, `{"tenant":"acme","version":1,"consumers":[{"module":"../x"}]}`} {
			require.NoError(t, os.WriteFile(s.version("acme", 1), []byte(content), 0o600))
			_, err = OpenStore(dir)
			require.ErrorContains(t, err, s.version("acme", 1)+" is damaged")
		}
	})
}

// zeros are bytes without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
