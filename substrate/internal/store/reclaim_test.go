package store

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// used returns the bytes that a folder takes on disk.
func used(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if os.IsNotExist(err) {
			return nil
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			bytes += stat.Blocks * 512
		}
		return err
	}))
	return bytes
}

func TestReclaim(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 300 MB")
	}
	for name, size := range map[string]int{"OfValuesInTables": 20_000, "OfValuesInTheValueLog": 200_000} {
		t.Run("GivesBackTheSpace"+name, func(t *testing.T) {
			dir := t.TempDir()
			s := openStore(t, dir)
			key := TopicOf("a", "b")
			n := 150_000_000 / size
			var puts, deletes []Op
			for i := range n {
				puts = append(puts, Op{Key: key.Message(uint64(i)), Body: make([]byte, size)})
				if i%100 != 0 {
					deletes = append(deletes, Op{Key: key.Message(uint64(i))})
				}
			}
			write(t, s, puts, nil, nil)
			full := used(t, dir)
			require.Greater(t, full, int64(140_000_000))
			write(t, s, nil, deletes, nil)
			require.NoError(t, s.Reclaim())
			require.Less(t, used(t, dir), full/3)
			for i := range n {
				body, err := s.Get(key.Message(uint64(i)))
				if i%100 != 0 {
					require.ErrorIs(t, err, ErrNotFound)
					continue
				}
				require.NoError(t, err)
				require.Len(t, body, size)
			}
		})
	}
}
