package store

import (
	"encoding/binary"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// disk follows what a power cut would leave of a store's files: what the last sync covered, and of what was written after
// it whatever the system happened to write back.
type disk struct {
	t      *testing.T
	store  *Store
	synced string // a copy of the folder as of the last sync
}

func openOnDisk(t *testing.T) *disk {
	t.Helper()
	d := &disk{t: t, store: openStore(t, t.TempDir())}
	d.synced = d.copyOf("*")
	flush := d.store.flush
	d.store.flush = func() error {
		err := flush()
		d.synced = d.copyOf("*")
		return err
	}
	return d
}

// copyOf copies the store's files that match into a new folder.
func (d *disk) copyOf(pattern string) string {
	to := d.t.TempDir()
	d.copyTo(to, filepath.Join(d.store.dir, pattern))
	return to
}

func (d *disk) copyTo(to, pattern string) {
	files, err := filepath.Glob(pattern)
	require.NoError(d.t, err)
	out, err := exec.CommandContext(d.t.Context(), "cp", append([]string{"--sparse=always", "-t", to}, files...)...).CombinedOutput()
	require.NoError(d.t, err, "%s", out)
}

// afterPowerCut opens what is left if, beside what was synced, the files that match were written back in full.
func (d *disk) afterPowerCut(writtenBack string) *Store {
	d.t.Helper()
	to := d.t.TempDir()
	d.copyTo(to, filepath.Join(d.synced, "*"))
	d.copyTo(to, filepath.Join(d.store.dir, writtenBack))
	return openStore(d.t, to)
}

func TestACheckpointNeverOutlivesWhatItVouchesFor(t *testing.T) {
	key := TopicOf("a", "b")
	number := func(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
	vouched := func(t *testing.T, s *Store) {
		t.Helper()
		checkpoint, err := s.Checkpoint()
		require.NoError(t, err)
		for n := range binary.BigEndian.Uint64(checkpoint) {
			_, err := s.Get(key.Message(n + 1))
			require.NoError(t, err, "message %d of %d", n+1, binary.BigEndian.Uint64(checkpoint))
		}
	}

	t.Run("WhenTheValueLogIsWrittenBackLater", func(t *testing.T) {
		d := openOnDisk(t)
		for n := range uint64(3) {
			write(t, d.store, []Op{{Key: key.Message(n + 1), Body: make([]byte, 100_000)}}, nil, number(n+1))
		}
		vouched(t, d.afterPowerCut("*.mem"))
	})

	t.Run("AndFewBatchesNeedASync", func(t *testing.T) {
		d := openOnDisk(t)
		syncs := 0
		for n := range uint64(100) {
			synced, err := d.store.Write([]Op{{Key: key.Message(n + 1), Body: make([]byte, 1_000)}}, nil, number(n+1))
			require.NoError(t, err)
			if synced {
				syncs++
			}
		}
		require.Equal(t, 1, syncs, "the first, since nothing is known of the memtable")
		vouched(t, d.afterPowerCut("*.mem"))
	})

	t.Run("WhenTheMemtableRotates", func(t *testing.T) {
		if testing.Short() {
			t.Skip("writes 64 MB, and copies them again and again")
		}
		d := openOnDisk(t)
		d.store.flush = d.store.syncFiles // copies only near the rotation: they are large
		n := uint64(0)
		mems := []string{"one"}
		for len(mems) < 2 {
			n++
			if n == 900 {
				d.store.flush = func() error {
					err := d.store.syncFiles()
					d.synced = d.copyOf("*")
					return err
				}
			}
			write(t, d.store, []Op{{Key: key.Message(n), Body: make([]byte, 60_000)}}, nil, number(n))
			var err error
			mems, err = filepath.Glob(filepath.Join(d.store.dir, "*.mem"))
			require.NoError(t, err)
			require.Less(t, n, uint64(2_000))
		}
		require.Greater(t, n, uint64(900))
		vouched(t, d.afterPowerCut(filepath.Base(mems[1])))
	})
}

func TestReadsAfterAndDuringCloseGetErrClosed(t *testing.T) {
	s, err := Open(t.Context(), t.TempDir(), time.Second)
	require.NoError(t, err)
	key := TopicOf("a", "b")
	write(t, s, []Op{{Key: key.Message(1), Body: []byte("x")}}, nil, nil)
	closing, closed := make(chan struct{}), make(chan error, 1)
	require.NoError(t, s.Scan(key.Messages(), key.Message(0), func(_, _ []byte, err error) bool {
		require.NoError(t, err)
		go func() {
			close(closing)
			closed <- s.Close()
		}()
		<-closing
		select {
		case err := <-closed:
			t.Errorf("Close did not wait for the scan (%v)", err)
		case <-time.After(20 * time.Millisecond):
		}
		return false
	}))
	require.NoError(t, <-closed)
	_, err = s.Get(key.Message(1))
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, s.Scan(key.Messages(), key.Message(0), nil), ErrClosed)
}
