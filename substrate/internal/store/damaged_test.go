package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/stretchr/testify/require"
)

// closedStore returns the folder of a store with a table, which was closed.
func closedStore(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s, err := Open(t.Context(), dir, time.Second)
	require.NoError(t, err)
	var ops []Op
	for i := range uint64(2_000) {
		ops = append(ops, Op{Key: TopicOf("a", "b").Message(i + 1), Body: make([]byte, 100)})
	}
	write(t, s, ops, nil, []byte("x"))
	require.NoError(t, s.Close())
	return dir
}

func refused(t *testing.T, dir, why string) {
	t.Helper()
	_, err := Open(t.Context(), dir, time.Second)
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, why)
}

func TestOpenRefuses(t *testing.T) {
	file := func(t *testing.T, dir, pattern string) (name string, content []byte) {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, found, pattern)
		content, err = os.ReadFile(found[0])
		require.NoError(t, err)
		return found[0], content
	}

	t.Run("ATableWithAnyBitFlipped", func(t *testing.T) {
		dir := closedStore(t)
		name, content := file(t, dir, "*.sst")
		require.NoError(t, verifyTable(name))
		for at := range content {
			if at < len(content)-100 && at%997 != 0 { // the end, which tells where all the rest is, whole
				continue
			}
			content[at] ^= 1 << (at % 8)
			require.NoError(t, os.WriteFile(name, content, 0o600))
			require.Error(t, verifyTable(name), "byte %d of %d", at, len(content))
			content[at] ^= 1 << (at % 8)
		}
		content[len(content)-1] ^= 1
		require.NoError(t, os.WriteFile(name, content, 0o600))
		refused(t, dir, filepath.Base(name))
	})

	t.Run("ATableThatIsCutAnywhere", func(t *testing.T) {
		dir := closedStore(t)
		name, content := file(t, dir, "*.sst")
		for n := 0; n < len(content); n += 1 + len(content)/300 {
			require.NoError(t, os.WriteFile(name, content[:n], 0o600))
			require.Error(t, verifyTable(name), "%d of %d bytes", n, len(content))
		}
		require.NoError(t, os.WriteFile(name, make([]byte, len(content)), 0o600))
		refused(t, dir, filepath.Base(name))
	})

	t.Run("AListOfTablesThatIsCutOrZeroedAnywhere", func(t *testing.T) {
		dir := closedStore(t)
		name, content := file(t, dir, badger.ManifestFilename)
		for n := range content {
			require.NoError(t, os.WriteFile(name, content[:n], 0o600))
			require.ErrorIs(t, checkInventory(dir), ErrDamaged, "%d of %d bytes", n, len(content))
			zeroed := append(append([]byte(nil), content[:n]...), make([]byte, len(content)-n)...)
			require.NoError(t, os.WriteFile(name, zeroed, 0o600))
			if string(zeroed) != string(content) {
				require.ErrorIs(t, checkInventory(dir), ErrDamaged, "zeroed from byte %d of %d", n, len(content))
			}
		}
		require.NoError(t, os.WriteFile(name, content[:16], 0o600))
		refused(t, dir, badger.ManifestFilename)
		require.NoError(t, os.Remove(name))
		refused(t, dir, badger.ManifestFilename)
	})

	t.Run("FilesWithoutAListOfTablesOrAnInventory", func(t *testing.T) {
		dir := closedStore(t)
		require.NoError(t, os.Remove(filepath.Join(dir, badger.ManifestFilename)))
		require.NoError(t, os.Remove(filepath.Join(dir, inventoryName)))
		refused(t, dir, "no "+badger.ManifestFilename)
	})

	t.Run("AnInventoryThatDoesNotCheck", func(t *testing.T) {
		dir := closedStore(t)
		name, content := file(t, dir, inventoryName)
		content[len(content)/2] ^= 4
		require.NoError(t, os.WriteFile(name, content, 0o600))
		refused(t, dir, inventoryName)
	})

	t.Run("TheLogOfAnOlderMemtableThatIsCutOrMissing", func(t *testing.T) {
		dir := t.TempDir()
		s := openStore(t, dir)
		write(t, s, []Op{{Key: TopicOf("a", "b").Message(1), Body: make([]byte, 50_000)}}, nil, []byte("x"))
		older, newer := filepath.Join(dir, "00001.mem"), filepath.Join(dir, "00009.mem")
		require.NoError(t, os.WriteFile(newer, nil, 0o600)) // as if it had been rotated
		require.NoError(t, s.Sync())
		require.NoError(t, os.Remove(newer))
		require.NoError(t, checkInventory(dir))
		content, err := os.ReadFile(older)
		require.NoError(t, err)
		copied := t.TempDir()
		for _, name := range []string{badger.ManifestFilename, inventoryName} {
			b, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(copied, name), b, 0o600))
		}
		older = filepath.Join(copied, filepath.Base(older))
		require.ErrorContains(t, checkInventory(copied), "00001.mem is missing")
		require.NoError(t, os.WriteFile(older, content, 0o600))
		require.NoError(t, checkInventory(copied))
		require.NoError(t, os.WriteFile(older, content[:30_000], 0o600))
		require.ErrorContains(t, checkInventory(copied), "00001.mem are not what they were")
	})
}

func TestOpenTakes(t *testing.T) {
	t.Run("AListOfTablesThatWasWrittenAnew", func(t *testing.T) {
		dir := closedStore(t)
		name := filepath.Join(dir, badger.ManifestFilename)
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		anew := append(append([]byte(nil), content[:8]...), content[16:]...) // without the empty record that a new one begins with
		for len(anew) < inventoryHead {
			anew = append(anew, content[16:]...)
		}
		require.NoError(t, os.WriteFile(name, anew, 0o600))
		require.NoError(t, checkInventory(dir))
	})

	t.Run("AStoreOfBeforeThereWereInventories", func(t *testing.T) {
		dir := closedStore(t)
		require.NoError(t, os.Remove(filepath.Join(dir, inventoryName)))
		s := openStore(t, dir)
		body, err := s.Get(TopicOf("a", "b").Message(2_000))
		require.NoError(t, err)
		require.Len(t, body, 100)
	})
}

// flipValueLength damages the length of the first value of the first value log.
func flipValueLength(t *testing.T, dir string, to ...byte) {
	t.Helper()
	const header, before = 20, 3 // bytes of the file's header; of meta and of the key's length
	f, err := os.OpenFile(filepath.Join(dir, "000001.vlog"), os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(to, header+before)
	require.NoError(t, errors.Join(err, f.Close()))
}

func TestValuesThatAreDamaged(t *testing.T) {
	key := TopicOf("a", "b").Message(1)
	folder := func(t *testing.T, opened int) string {
		t.Helper()
		dir := t.TempDir()
		for i := range opened { // each time Badger begins a value log
			s, err := Open(t.Context(), dir, time.Second)
			require.NoError(t, err)
			if i == 0 {
				write(t, s, []Op{{Key: key, Body: make([]byte, 100_000)}}, nil, []byte("x"))
			}
			require.NoError(t, s.Close())
		}
		return dir
	}

	t.Run("DoNotKeepCloseFromReturning", func(t *testing.T) {
		dir := folder(t, 2)
		flipValueLength(t, dir, 0xff, 0xff, 0x0f)
		s, err := Open(t.Context(), dir, time.Second)
		require.NoError(t, err)
		_, err = s.Get(key)
		var corrupt *CorruptError
		require.ErrorAs(t, err, &corrupt)
		closed := make(chan error, 1)
		go func() { closed <- s.Close() }()
		select {
		case err := <-closed:
			require.NoError(t, err)
		case <-time.After(20 * time.Second):
			require.Fail(t, "Close hangs")
		}
	})

	t.Run("AreNotMadeRoomForBeforeTheyCheck", func(t *testing.T) {
		dir := folder(t, 1)
		flipValueLength(t, dir, 0xff, 0xff, 0xff, 0xff, 0x0f)
		refused(t, dir, "longer than the file")
	})
}
