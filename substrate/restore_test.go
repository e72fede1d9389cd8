package substrate

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/dump"
)

// folderBytes returns the bytes that a folder takes on disk.
func folderBytes(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return ignoreMissing(err)
		}
		info, err := d.Info()
		if err == nil {
			bytes += info.Sys().(*syscall.Stat_t).Blocks * 512
		}
		return ignoreMissing(err)
	}))
	return bytes
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// damageTable overwrites a part of a table of the store.
func damageTable(t *testing.T, dir string) {
	t.Helper()
	tables, err := filepath.Glob(filepath.Join(dir, "store", "*.sst"))
	require.NoError(t, err)
	require.NotEmpty(t, tables)
	f, err := os.OpenFile(tables[0], os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(make([]byte, 512), 4096)
	require.NoError(t, errors.Join(err, f.Close()))
}

// smallBackup returns a backup of a few hundred bytes.
func smallBackup(t *testing.T) []byte {
	t.Helper()
	l := openLog(t, t.TempDir())
	publish(t, l, testTopic, "a", "b")
	settle(t, l, claimOne(t, l, testTopic), Bury, "bad")
	_, stream := backup(t, l)
	return stream
}

// requireRefused restores into a folder that doesn't exist, and checks that nothing is left.
func requireRefused(t *testing.T, from io.Reader, want error, where string) {
	t.Helper()
	beside := t.TempDir()
	_, err := Restore(t.Context(), filepath.Join(beside, "log"), from)
	require.ErrorIs(t, err, want, where)
	left, err := os.ReadDir(beside)
	require.NoError(t, err)
	require.Empty(t, left, where)
}

func TestRestore(t *testing.T) {
	stream := smallBackup(t)
	t.Run("RefusesChangesOfAnyByte", func(t *testing.T) {
		for i := range stream {
			broken := bytes.Clone(stream)
			broken[i] ^= 1 << (i % 8)
			_, err := CheckBackup(bytes.NewReader(broken))
			require.ErrorIs(t, err, ErrBackup, "byte %d", i)
			if i%13 == 0 || i < 64 || i > len(stream)-56 {
				requireRefused(t, bytes.NewReader(broken), ErrBackup, "changed")
			}
		}
	})

	t.Run("RefusesCutsAnywhere", func(t *testing.T) {
		for n := range stream {
			_, err := CheckBackup(bytes.NewReader(stream[:n]))
			require.ErrorIs(t, err, ErrBackup, "%d bytes", n)
			if n%13 == 0 {
				requireRefused(t, bytes.NewReader(stream[:n]), ErrBackup, "cut")
			}
		}
		requireRefused(t, bytes.NewReader(stream[:len(stream)-48]), ErrBackup, "all but the end")
		requireRefused(t, bytes.NewReader(append(bytes.Clone(stream), 0)), ErrBackup, "more than all")
	})

	t.Run("RefusesABackupWhoseLogIsNotWhole", func(t *testing.T) {
		for name, change := range map[string]func(key, value []byte) ([]byte, []byte){
			"a state that does not check": func(key, value []byte) ([]byte, []byte) {
				if key[len(key)-1] == 'A' {
					value = []byte("rubbish")
				}
				return key, value
			},
			"a topic that is missing": func(key, value []byte) ([]byte, []byte) {
				if key[len(key)-1] == 'A' {
					return nil, nil
				}
				return key, value
			},
		} {
			requireRefused(t, bytes.NewReader(rewritten(t, stream, nil, change)), ErrBackup, name)
		}
		same := func(key, value []byte) ([]byte, []byte) { return key, value }
		requireRefused(t, bytes.NewReader(rewritten(t, stream, []byte{formatVersion + 1}, same)), ErrBackup, "a newer head")
		_, err := Restore(t.Context(), filepath.Join(t.TempDir(), "log"), bytes.NewReader(rewritten(t, stream, nil, same)))
		require.NoError(t, err)
	})

	t.Run("RefusesAFolderWithSomethingInItAndNamesThat", func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "precious"), nil, 0o600))
		_, err := Restore(t.Context(), dir, bytes.NewReader(stream))
		require.ErrorIs(t, err, ErrNotEmpty)
		require.ErrorContains(t, err, `"precious"`)
		require.FileExists(t, filepath.Join(dir, "precious"))
		require.NoFileExists(t, dir+restoringSuffix)

		file := filepath.Join(dir, "precious")
		_, err = Restore(t.Context(), file, bytes.NewReader(stream))
		require.ErrorIs(t, err, syscall.ENOTDIR)
	})

	t.Run("TakesAnEmptyFolderAlsoBehindALinkAndOneWhoseParentIsMissing", func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(dir, "real"), 0o755))
		require.NoError(t, os.Symlink("real", filepath.Join(dir, "link")))
		for _, name := range []string{"link", filepath.Join("a", "b", "log") + string(filepath.Separator)} {
			_, err := Restore(t.Context(), filepath.Join(dir, name), bytes.NewReader(stream))
			require.NoError(t, err)
			require.Equal(t, Recovered{Topics: 1, Backlog: 1, DeadLetters: 1}, openLog(t, filepath.Join(dir, name)).Recovered())
		}
		info, err := os.Stat(filepath.Join(dir, "real"))
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
	})

	t.Run("SaysThatAnotherIsUnderWayOrWasKilled", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "log")
		require.NoError(t, os.Mkdir(dir+restoringSuffix, 0o700))
		_, err := Restore(t.Context(), dir, bytes.NewReader(stream))
		require.ErrorIs(t, err, ErrLocked)
		require.ErrorContains(t, err, dir+restoringSuffix)
		require.DirExists(t, dir+restoringSuffix, "it isn't ours")
	})

	t.Run("DoesNotTakeAFolderThatIsNotEmptyAnyMore", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "log")
		_, err := Restore(t.Context(), dir, io.MultiReader(bytes.NewReader(stream), readerFunc(func() {
			require.NoError(t, os.MkdirAll(filepath.Join(dir, "other"), 0o700))
		})))
		require.ErrorIs(t, err, ErrNotEmpty)
		require.NoDirExists(t, dir+restoringSuffix)
	})

	t.Run("EndsWithItsContextAndWithTheErrorOfItsReader", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		beside := t.TempDir()
		_, err := Restore(ctx, filepath.Join(beside, "log"), io.MultiReader(bytes.NewReader(stream), readerFunc(cancel)))
		require.ErrorIs(t, err, context.Canceled)
		left, err := os.ReadDir(beside)
		require.NoError(t, err)
		require.Empty(t, left)

		fault := errors.New("fault")
		requireRefused(t, io.MultiReader(bytes.NewReader(stream[:len(stream)-60]), iotest.ErrReader(fault)), fault, "")
	})

	t.Run("LeavesNothingWhenTheDiskIsFull", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		for range 4 {
			publishLarge(t, l)
		}
		_, large := backup(t, l)
		for room := range 4 {
			beside, looks := t.TempDir(), 0
			r := restorer{dir: filepath.Join(beside, "log"), low: 1000, free: func(string) (uint64, error) {
				looks++
				if looks > room {
					return 999, nil
				}
				return 1000, nil
			}}
			_, err := r.run(t.Context(), bytes.NewReader(large))
			require.ErrorIs(t, err, ErrStorageFull)
			require.Equal(t, room+1, looks)
			left, err := os.ReadDir(beside)
			require.NoError(t, err)
			require.Empty(t, left)
		}
	})
}

// readerFunc does something when it is read, and is empty.
type readerFunc func()

func (f readerFunc) Read([]byte) (int, error) {
	f()
	return 0, io.EOF
}

// rewritten returns a stream with other records, those without a key left out, and with another head, if that isn't nil.
func rewritten(t *testing.T, stream, head []byte, change func(key, value []byte) ([]byte, []byte)) []byte {
	t.Helper()
	r, err := dump.NewReader(bytes.NewReader(stream))
	require.NoError(t, err)
	if head == nil {
		head = r.Head()
	}
	var b bytes.Buffer
	w, err := dump.NewWriter(&b, head)
	require.NoError(t, err)
	for {
		key, value, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if key, value = change(key, value); key != nil {
			require.NoError(t, w.Add(key, value))
		}
	}
	_, err = w.End()
	require.NoError(t, err)
	return b.Bytes()
}

func TestARestoredLog(t *testing.T) {
	t.Run("NeverGivesANumberThatTheOriginalGaveAfterTheBackup", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		publish(t, l, testTopic, "a")
		info, stream := backup(t, l)
		after := publish(t, l, testTopic, "b", "c")
		lease := claim(t, l, testTopic, 3)[2].Lease
		for range 3 {
			dir = crash(t, dir)
			l = openLog(t, dir)
			after = append(after, publish(t, l, testTopic, "d")...)
		}
		openings := map[string]bool{}
		for range 3 {
			again := restored(t, stream)
			require.Greater(t, again.journal.Next(), info.Frame+restoreSkip)
			next := publish(t, again, testTopic, "e")[0]
			for _, r := range after {
				require.Greater(t, next.Position, r.Position)
				require.Greater(t, next.ID[14:], r.ID[14:])
			}
			require.Greater(t, claimOne(t, again, testTopic).Lease.Token, lease.Token)
			openings[next.ID[14:20]] = true
			require.Less(t, next.Position, uint64(1)<<53, "exact in JSON")
		}
		require.Len(t, openings, 3, "two that are restored from one backup mint different ids")
	})

	t.Run("CanBeBackedUpAndRestoredAgain", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		fillWithEverything(t, l)
		_, stream := backup(t, l)
		l = restored(t, stream)
		want := viewOf(t, l)
		last := publish(t, l, "more", "x")[0]
		for range 3 {
			_, stream = backup(t, l)
			l = restored(t, stream)
			next := publish(t, l, "more", "x")[0]
			require.Greater(t, next.Position, last.Position)
			require.Greater(t, next.ID[14:], last.ID[14:])
			last = next
		}
		_, err := skipped(checkpoint{opening: 1<<(64-idCounterBits) - 2*restoreOpenings})
		require.ErrorContains(t, err, "used up")
		got := viewOf(t, l)
		got.topics = slices.DeleteFunc(got.topics, func(s Stats) bool { return s.Topic == "more" })
		require.Equal(t, want.topics, got.topics)
	})

	t.Run("IsMissingItsJournalWhenThatIsGoneAndNotBefore", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "log")
		_, err := Restore(t.Context(), dir, bytes.NewReader(smallBackup(t)))
		require.NoError(t, err)
		lost := crash(t, dir)
		require.NoError(t, os.RemoveAll(filepath.Join(lost, "journal")))
		_, err = Open(t.Context(), Options{Dir: lost, SegmentBytes: testSegment})
		require.ErrorIs(t, err, ErrJournalMissing)
		for _, size := range []int64{4 * testSegment, limits.JournalSegmentMinBytes} {
			l, err := Open(t.Context(), Options{Dir: dir, SegmentBytes: size, LockWait: time.Second})
			require.NoError(t, err)
			publish(t, l, testTopic, "x")
			require.NoError(t, l.Close())
		}
	})

	t.Run("SurvivesAPowerCutAtOnce", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "log")
		_, err := Restore(t.Context(), dir, bytes.NewReader(smallBackup(t)))
		require.NoError(t, err)
		logs, err := filepath.Glob(filepath.Join(dir, "store", "*.mem"))
		require.NoError(t, err)
		for _, name := range logs { // what it holds is in tables
			require.NoError(t, os.Remove(name))
		}
		require.Equal(t, Recovered{Topics: 1, Backlog: 1, DeadLetters: 1}, openLog(t, dir).Recovered())
	})
}
