package store

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/stretchr/testify/require"
)

// contents returns what a snapshot holds, by key.
func contents(t *testing.T, s *Snapshot) map[string]string {
	t.Helper()
	all, last := map[string]string{}, ""
	require.NoError(t, s.Each(func(key, value []byte) error {
		require.Less(t, last, string(key), "in order")
		last = string(key)
		all[last] = string(value)
		return nil
	}))
	return all
}

func snapshotOf(t *testing.T, s *Store) *Snapshot {
	t.Helper()
	snapshot, err := s.Snapshot()
	require.NoError(t, err)
	return snapshot
}

func TestSnapshot(t *testing.T) {
	key := TopicOf("a", "b")
	t.Run("HoldsWhatThereWasAndNothingOfTheLogsOwn", func(t *testing.T) {
		s := openStore(t, t.TempDir())
		write(t, s, []Op{{Key: key.Message(1), Body: []byte("one")}, {Key: key.Message(2), Body: make([]byte, 100_000)}},
			[]Op{{Key: key.State(), Body: []byte("state")}}, []byte("checkpoint"))
		snapshot := snapshotOf(t, s)
		defer snapshot.Close()
		write(t, s, []Op{{Key: key.Message(3), Body: []byte("later")}},
			[]Op{{Key: key.Message(1)}, {Key: key.State(), Body: []byte("changed")}}, []byte("checkpoint"))
		require.NoError(t, s.Reclaim())
		all := contents(t, snapshot)
		require.Len(t, all, 3)
		for k, body := range map[string][]byte{
			string(key.Message(1)): []byte("one"), string(key.Message(2)): make([]byte, 100_000), string(key.State()): []byte("state"),
		} {
			got, err := open([]byte(k), []byte(all[k]))
			require.NoError(t, err)
			require.True(t, bytes.Equal(body, got))
		}
		require.Equal(t, all, contents(t, snapshot), "again")
	})

	t.Run("CopiesARecordThatDoesNotCheckAndSaysSo", func(t *testing.T) {
		s := openStore(t, t.TempDir())
		write(t, s, []Op{{Key: key.Message(1), Body: []byte("one")}}, nil, nil)
		for k, value := range map[byte][]byte{2: []byte("rubbish"), 3: {}} {
			require.NoError(t, s.db.Update(func(txn *badger.Txn) error { return txn.Set(key.Message(uint64(k)), value) }))
		}
		snapshot := snapshotOf(t, s)
		defer snapshot.Close()
		var told []string
		require.NoError(t, snapshot.Each(func(key, value []byte) error {
			told = append(told, fmt.Sprint(len(value), Sound(key, value)))
			return nil
		}))
		require.Equal(t, []string{"12 true", "7 false", "0 false"}, told)
	})

	t.Run("StopsWhenItsReaderDoes", func(t *testing.T) {
		s := openStore(t, t.TempDir())
		write(t, s, []Op{{Key: key.Message(1), Body: []byte("1")}, {Key: key.Message(2), Body: []byte("2")}}, nil, nil)
		snapshot := snapshotOf(t, s)
		defer snapshot.Close()
		stop, n := errors.New("stop"), 0
		require.ErrorIs(t, snapshot.Each(func(_, _ []byte) error { n++; return stop }), stop)
		require.Equal(t, 1, n)
	})

	t.Run("IsNotGivenAfterCloseAndHoldsCloseUp", func(t *testing.T) {
		s, err := Open(t.Context(), t.TempDir(), time.Second)
		require.NoError(t, err)
		snapshot := snapshotOf(t, s)
		require.True(t, s.Snapshots())
		closed := make(chan error, 1)
		go func() { closed <- s.Close() }()
		select {
		case err := <-closed:
			t.Errorf("Close did not wait (%v)", err)
		case <-time.After(20 * time.Millisecond):
		}
		snapshot.Close()
		require.NoError(t, <-closed)
		require.False(t, s.Snapshots())
		_, err = s.Snapshot()
		require.ErrorIs(t, err, ErrClosed)
	})

	t.Run("LoadsIntoAnotherStore", func(t *testing.T) {
		from, to := openStore(t, t.TempDir()), openStore(t, t.TempDir())
		write(t, from, []Op{{Key: key.Message(1), Body: []byte("one")}, {Key: key.Message(2), Body: make([]byte, 100_000)}}, nil, []byte("checkpoint"))
		require.NoError(t, from.db.Update(func(txn *badger.Txn) error { return txn.Set(key.Message(3), nil) }))
		snapshot := snapshotOf(t, from)
		defer snapshot.Close()
		var records []Record
		require.NoError(t, snapshot.Each(func(key, value []byte) error {
			records = append(records, Record{bytes.Clone(key), bytes.Clone(value)})
			return nil
		}))
		require.NoError(t, to.Load(records))
		loaded := snapshotOf(t, to)
		defer loaded.Close()
		require.Equal(t, contents(t, snapshot), contents(t, loaded))
		_, err := to.Checkpoint()
		require.ErrorIs(t, err, ErrNotFound, "nothing vouches for it yet")
		require.Error(t, to.Load([]Record{{Key: metaKey(checkpointName)}}))
		require.Error(t, to.Load([]Record{{Key: nil}}))
		require.Error(t, to.Load([]Record{{Key: make([]byte, 66_000)}}))
	})

	t.Run("WhatFitsIsTaken", func(t *testing.T) {
		s := openStore(t, t.TempDir())
		for _, size := range []int{1, 100, 60_000} {
			var records []Record
			bytes := int64(0)
			for n := uint64(0); Fits(len(records)+1, bytes+int64(size)+int64(len(key.Message(n)))); n++ {
				records = append(records, Record{key.Message(n), make([]byte, size)})
				bytes += int64(size + len(key.Message(n)))
			}
			require.NoError(t, s.Load(records), "%d records of %d bytes", len(records), size)
		}
	})
}

func TestReclaimBesideAReader(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 400 MB")
	}
	key := TopicOf("a", "b")
	var puts, deletes []Op
	for i := range uint64(1_000) {
		puts = append(puts, Op{Key: key.Message(i), Body: make([]byte, 200_000)})
		if i%100 != 0 {
			deletes = append(deletes, Op{Key: key.Message(i)})
		}
	}
	for name, began := range map[string]struct {
		before bool
		sees   int
	}{
		"ThatBeganBeforeTheDeletes": {true, len(puts)},
		"ThatBeganAfterThem":        {false, len(puts) - len(deletes)}, // value logs are rewritten, and can't be removed
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, t.TempDir())
			write(t, s, puts, nil, nil)
			full := used(t, s.dir)
			var reader *Snapshot
			if began.before {
				reader = snapshotOf(t, s)
			}
			write(t, s, nil, deletes, nil)
			write(t, s, nil, nil, nil) // Badger takes what the newest transaction did for visible to a reader
			if !began.before {
				reader = snapshotOf(t, s)
			}
			require.NoError(t, s.Reclaim())
			require.NoError(t, s.Reclaim())
			require.Less(t, used(t, s.dir), full+full/2, "it does not run away")
			require.Len(t, contents(t, reader), began.sees)
			reader.Close()
			require.NoError(t, s.Reclaim())
			require.Less(t, used(t, s.dir), full/3)
			for i := uint64(0); i < 1_000; i += 100 {
				body, err := s.Get(key.Message(i))
				require.NoError(t, err)
				require.Len(t, body, 200_000)
			}
		})
	}
}
