package mapped

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")

	t.Run("IsNotThereBeforeItIsMade", func(t *testing.T) {
		_, err := Open(name, 4096)
		require.ErrorIs(t, err, os.ErrNotExist)
	})

	t.Run("ShowsWhatIsStoredAtOnce", func(t *testing.T) {
		require.NoError(t, Create(name, make([]byte, 4096)))
		f, err := Open(name, 4096)
		require.NoError(t, err)
		copy(f.Bytes()[100:], "stored")
		seen, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, "stored", string(seen[100:106]), "as another process sees it")
		require.NoError(t, f.Sync())
		require.NoError(t, f.Close())
		require.NoError(t, f.Close())
		require.NoError(t, f.Sync(), "nothing to do after Close")
	})

	t.Run("IsReplacedWhole", func(t *testing.T) {
		require.NoError(t, Create(name, []byte("short")))
		left, err := filepath.Glob(name + "*")
		require.NoError(t, err)
		require.Equal(t, []string{name}, left)
	})

	t.Run("OfAnotherSizeIsRefused", func(t *testing.T) {
		_, err := Open(name, 4096)
		var size *SizeError
		require.ErrorAs(t, err, &size)
		require.EqualError(t, err, name+" has 5 bytes: want 4096")
	})

	t.Run("IsNotMadeInAFolderThatIsGone", func(t *testing.T) {
		require.ErrorIs(t, Create(filepath.Join(t.TempDir(), "none", "f"), nil), os.ErrNotExist)
	})
}
