package dev

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

func TestScan(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	scan := scanner{enter: func(string) {}, maxFolders: 9, maxFiles: 9}
	look := func(before files) files {
		t.Helper()
		now, err := scan.scan(t.Context(), []string{dir}, before)
		require.NoError(t, err)
		return now
	}
	put := func(text string, modified time.Time) {
		t.Helper()
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		require.NoError(t, os.Chtimes(file, modified, modified))
	}
	now := time.Now()

	t.Run("ComparesContents", func(t *testing.T) {
		put("one", now.Add(-time.Hour))
		first := look(nil)
		put("one", now)
		second := look(first)
		require.Empty(t, changed(first, second))
		put("two", now)
		require.Equal(t, []string{file}, changed(second, look(second)), "of the same size, in the same moment")
	})
	t.Run("DoesNotReadAgainWhatIsOldAndLooksTheSame", func(t *testing.T) {
		put("one", now.Add(-time.Hour))
		first := look(nil)
		put("two", now.Add(-time.Hour))
		require.Empty(t, changed(first, look(first)))
	})
	t.Run("TakesSizeAndTimeForTheContentOfALargeFile", func(t *testing.T) {
		put("", now.Add(-time.Hour))
		require.NoError(t, os.Truncate(file, limits.SourceBytes+1))
		require.NoError(t, os.Chtimes(file, now, now.Add(-time.Hour)))
		first := look(nil)
		require.Zero(t, first[file].sum)
		require.NoError(t, os.Chtimes(file, now, now))
		require.Equal(t, []string{file}, changed(first, look(first)))
	})
	t.Run("TellsWhatIsGoneAndWhatIsNew", func(t *testing.T) {
		put("one", now)
		first := look(nil)
		require.NoError(t, os.Rename(file, file+"2"))
		require.Equal(t, []string{file, file + "2"}, changed(first, look(first)))
	})
	t.Run("LeavesOutWhatIsNoFile", func(t *testing.T) {
		before := look(nil)
		require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
		require.NoError(t, os.Symlink(dir, filepath.Join(dir, "loop")))
		require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, "dangling")))
		require.Empty(t, changed(before, look(before)))
	})
}
