package rollout

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/substrate"
)

func TestUpload(t *testing.T) {
	module := bytes.Repeat([]byte("x"), 3*roomBytes)
	digest := digestOf(string(module))
	asked, fullAt := 0, 0
	s := openStore(t, t.TempDir())
	d := New(Options{Store: s, Room: func() error {
		if asked++; asked == fullAt {
			return fmt.Errorf("the disk: %w", substrate.ErrStorageFull)
		}
		return nil
	}})
	for _, at := range []int{1, 3} {
		t.Run(fmt.Sprintf("EndsWhereTheDiskGetsFull/%d", at), func(t *testing.T) {
			asked, fullAt = 0, at
			require.ErrorIs(t, d.Upload("acme", digest, bytes.NewReader(module)), substrate.ErrStorageFull)
			require.Equal(t, at, asked)
			require.Zero(t, modules(t, s))
			left, err := filepath.Glob(filepath.Join(s.dir, "new-*"))
			require.NoError(t, err)
			require.Empty(t, left, "nothing of it is left on the disk")
			require.False(t, s.Has("acme", digest))
		})
	}
	t.Run("GoesOnWhileThereIsRoom", func(t *testing.T) {
		asked, fullAt = 0, -1
		require.NoError(t, d.Upload("acme", digest, bytes.NewReader(module)))
		require.Equal(t, 4, asked, "once a MiB, and at the end")
		require.True(t, s.Has("acme", digest))
	})
}
