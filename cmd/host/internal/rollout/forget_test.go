package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

func TestForget(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenStore(dir)
	require.NoError(t, err)
	put := func(tenant, wasm string) string {
		sum := sha256.Sum256([]byte(wasm))
		digest := hex.EncodeToString(sum[:])
		require.NoError(t, s.PutIfNew(tenant, digest, []byte(wasm)))
		return digest
	}
	shared, own := put("gone", "shared"), put("gone", "own")
	require.Equal(t, shared, put("stays", "shared"))
	for _, v := range []*Version{
		{Tenant: "gone", Number: 1, Entries: []Entry{{Name: "a", Module: shared, Manifest: []byte("{}")}}},
		{Tenant: "gone", Number: 2, Entries: []Entry{{Name: "a", Module: own, Manifest: []byte("{}")}}},
		{Tenant: "stays", Number: 1, Entries: []Entry{{Name: "a", Module: shared, Manifest: []byte("{}")}}},
	} {
		require.NoError(t, s.Add(v))
	}
	uploaded := put("gone", "uploaded")
	d := New(Options{Store: s, Logger: zap.NewNop()})

	t.Run("NotWhileItRuns", func(t *testing.T) {
		d.running[name{"gone", "a"}] = &piece{}
		err := d.Delete(t.Context(), "gone", func(func() error) error { return errors.New("not reached") })
		require.ErrorIs(t, err, ErrRuns)
		require.ErrorContains(t, err, "(a)")
		delete(d.running, name{"gone", "a"})
	})

	t.Run("LeavesNothingOfItAndAllOfOthers", func(t *testing.T) {
		require.NoError(t, d.Delete(t.Context(), "gone", func(versions func() error) error { return versions() }))
		require.Equal(t, []string{"stays"}, s.Tenants())
		require.Nil(t, d.current["gone"])
		require.NoError(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
			require.NotContains(t, path, "gone")
			require.NotContains(t, path, own)
			require.NotContains(t, path, uploaded)
			return err
		}))
		_, err := s.Read(shared)
		require.NoError(t, err)
		require.NoError(t, d.Forget(t.Context(), "gone"), "nothing is no error")
	})

	t.Run("IsFinishedAfterACrash", func(t *testing.T) {
		left := filepath.Join(dir, "new-gone-gone")
		require.NoError(t, os.Mkdir(left, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(left, "0000000001"), []byte("{}"), 0o600))
		_, err := OpenStore(dir)
		require.NoError(t, err)
		require.NoDirExists(t, left)
	})
}
