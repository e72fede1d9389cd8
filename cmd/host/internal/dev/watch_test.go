package dev

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/longshore/longshore/limits"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestQuiet(t *testing.T) {
	t.Run("WaitsUntilNothingMoreChanges", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			notices, began := make(chan struct{}), time.Now()
			go func() {
				for range 3 {
					time.Sleep(limits.WatchQuiet - 1)
					notices <- struct{}{}
				}
			}()
			require.NoError(t, quiet(t.Context(), notices))
			require.Equal(t, 4*limits.WatchQuiet-3, time.Since(began))
		})
	})
	t.Run("EndsInAStorm", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			notices, began := make(chan struct{}), time.Now()
			go func() {
				for ctx.Err() == nil {
					time.Sleep(time.Millisecond)
					select {
					case notices <- struct{}{}:
					case <-ctx.Done():
					}
				}
			}()
			require.NoError(t, quiet(t.Context(), notices))
			require.Equal(t, limits.WatchStorm, time.Since(began))
			cancel()
		})
	})
}

// TestWatcher has the system watch real folders.
func TestWatcher(t *testing.T) {
	watched := func(t *testing.T) (*trial, func() error) {
		t.Helper()
		tr := oneConsumer(t)
		tr.start()
		return tr, func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			err := tr.watcher.wait(ctx)
			tr.follow(ctx)
			return err
		}
	}
	t.Run("NoticesAnEditorThatRenamesOnSave", func(t *testing.T) {
		tr, next := watched(t)
		for _, text := range []string{"a2", "a3"} { // the file that was watched first is gone by then
			tr.write(".main.new", text)
			require.NoError(t, os.Rename(filepath.Join(tr.dir, ".main.new"), filepath.Join(tr.dir, "main")))
			for tr.current["a"].Wasm == nil || string(tr.current["a"].Wasm) != text {
				require.NoError(t, next())
			}
		}
	})
	t.Run("NoticesFilesInNewFolders", func(t *testing.T) {
		tr, next := watched(t)
		tr.write("x/y/z", "1")
		require.NoError(t, next())
		require.Contains(t, tr.newWords(), "x/y/z changed\n")
		tr.write("x/y/z", "2")
		require.NoError(t, next())
		require.Contains(t, tr.newWords(), "x/y/z changed\n")
	})
	t.Run("LooksNowAndThenWhereTheSystemCantWatch", func(t *testing.T) {
		tr, next := watched(t)
		var why error
		tr.watcher.failed = func(err error) { why = err }
		require.NoError(t, tr.watcher.system.Close()) // as if it had refused
		tr.watcher.add(tr.dir)
		require.Error(t, why)
		require.Nil(t, tr.watcher.system)
		tr.write("main", "a2")
		require.NoError(t, next())
		require.Equal(t, []string{"a=a2"}, tr.newSwaps())
	})
	t.Run("EndsWithItsContext", func(t *testing.T) {
		tr, _ := watched(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, tr.watcher.wait(ctx), context.Canceled)
		require.True(t, errors.Is(sleep(ctx, time.Hour), context.Canceled))
	})
}
