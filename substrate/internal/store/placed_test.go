package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/stretchr/testify/require"
)

// payloadFiles returns the names of a store's payload files.
func payloadFiles(t *testing.T, s *Store) (names []string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(s.dir, "*.pay"))
	require.NoError(t, err)
	for _, name := range found {
		names = append(names, filepath.Base(name))
	}
	return names
}

func requireBodies(t *testing.T, s *Store, topic Topic, from, to uint64, size int) {
	t.Helper()
	n := from
	require.NoError(t, s.Scan(topic.Messages(), topic.Message(from), func(key, got []byte, err error) bool {
		require.NoError(t, err)
		require.Equal(t, n, Position(key))
		require.Equal(t, body(n, size), got)
		n++
		return true
	}))
	require.Equal(t, to+1, n)
	for _, p := range []uint64{from, (from + to) / 2, to} {
		got, err := s.Get(topic.Message(p))
		require.NoError(t, err)
		require.Equal(t, body(p, size), got)
		raw, err := s.Raw(topic.Message(p))
		require.NoError(t, err)
		require.Equal(t, seal(topic.Message(p), body(p, size)), raw)
	}
}

func TestPayloadFiles(t *testing.T) {
	topic := TopicOf("acme", "orders")

	t.Run("HoldTheRecordsOfLargeBlocksAcrossOpens", func(t *testing.T) {
		dir := t.TempDir()
		for i := range uint64(3) {
			s, err := Open(t.Context(), dir, time.Second)
			require.NoError(t, err)
			write(t, s, puts(topic, i*500+1, i*500+500, 1_000), nil, nil)
			requireBodies(t, s, topic, 1, i*500+500, 1_000)
			require.Equal(t, []string{"000001.pay"}, payloadFiles(t, s), "a file is filled first")
			require.NoError(t, s.Close())
		}
	})

	t.Run("GoOnceThatTheirMessagesAreDeletedIsDurable", func(t *testing.T) {
		d := openOnDisk(t)
		s := d.store
		write(t, s, puts(topic, 1, 100, 1_000), nil, nil)
		require.NoError(t, s.files.Leave(1))
		write(t, s, puts(topic, 101, 200, 1_000), nil, nil)
		require.Equal(t, []string{"000001.pay", "000002.pay"}, payloadFiles(t, s))
		write(t, s, nil, deletions(topic, 1, 100), nil)
		require.Equal(t, []string{"000001.pay", "000002.pay"}, payloadFiles(t, s), "a power cut may bring its messages back")
		require.Len(t, positions(t, d.afterPowerCut("KEYREGISTRY"), topic, 0), 200)
		require.NoError(t, s.Sync())
		require.Equal(t, []string{"000002.pay"}, payloadFiles(t, s))
		require.Equal(t, []uint32{2}, s.files.Numbers())
		requireBodies(t, s, topic, 101, 200, 1_000)
		require.Len(t, positions(t, d.afterPowerCut("KEYREGISTRY"), topic, 0), 100)
	})

	t.Run("ThatAreMostlyGarbageAreCollected", func(t *testing.T) {
		d := openOnDisk(t)
		s := d.store
		for i := range uint64(4) {
			write(t, s, puts(topic, i*250+1, i*250+250, 1_000), nil, nil)
		}
		write(t, s, nil, append(deletions(topic, 1, 250), deletions(topic, 501, 750)...), nil)
		before, err := s.ValueLogBytes()
		require.NoError(t, err)
		require.NoError(t, s.Reclaim())
		require.Equal(t, []string{"000002.pay"}, payloadFiles(t, s))
		after, err := s.ValueLogBytes()
		require.NoError(t, err)
		require.Less(t, after, before-400_000)
		for _, s := range []*Store{s, d.afterPowerCut("KEYREGISTRY"), d.afterPowerCut("*.mem")} {
			requireBodies(t, s, topic, 751, 1_000, 1_000)
			require.Len(t, positions(t, s, topic, 0), 500)
		}
		require.NoError(t, s.Reclaim())
		require.Equal(t, []string{"000002.pay"}, payloadFiles(t, s), "there is nothing to gain any more")
	})

	t.Run("StayForASnapshotAndAScanThatBeganBefore", func(t *testing.T) {
		s := openStore(t, t.TempDir())
		write(t, s, puts(topic, 1, 1_000, 1_000), nil, nil)
		snapshot, err := s.Snapshot()
		require.NoError(t, err)
		n := uint64(0)
		require.NoError(t, s.Scan(topic.Messages(), topic.Message(0), func(_, got []byte, err error) bool {
			if n++; n == 10 {
				require.NoError(t, s.files.Leave(1))
				write(t, s, nil, deletions(topic, 1, 1_000), nil)
				require.NoError(t, s.Sync())
				require.Empty(t, payloadFiles(t, s))
			}
			require.NoError(t, err)
			require.Equal(t, body(n, 1_000), got)
			return true
		}))
		require.Equal(t, uint64(1_000), n)
		records := 0
		require.NoError(t, snapshot.Each(func(key, value []byte) error {
			require.True(t, Sound(key, value))
			if _, _, ok := parseRecords(key); ok {
				records += len(value)
			}
			return nil
		}))
		require.Equal(t, 1_000*(1_000+recordHeader), records)
		snapshot.Close()
		bytes, err := s.files.Bytes()
		require.NoError(t, err)
		require.Zero(t, bytes, "closed once nobody reads it")
	})

	t.Run("ThatAreDamagedOrGoneSpoilTheirMessagesAlone", func(t *testing.T) {
		for name, harm := range map[string]func(string) error{
			"flipped": func(path string) error {
				f, err := os.OpenFile(path, os.O_RDWR, 0)
				if err != nil {
					return err
				}
				b := make([]byte, 1)
				_, err = f.ReadAt(b, 50_000)
				b[0] ^= 4
				_, err2 := f.WriteAt(b, 50_000)
				return errors.Join(err, err2, f.Close())
			},
			"cut":  func(path string) error { return os.Truncate(path, 50_000) },
			"gone": os.Remove,
		} {
			dir := t.TempDir()
			s, err := Open(t.Context(), dir, time.Second)
			require.NoError(t, err)
			write(t, s, puts(topic, 1, 100, 1_000), nil, nil)
			require.NoError(t, s.files.Leave(1))
			write(t, s, puts(topic, 101, 200, 1_000), nil, nil)
			require.NoError(t, s.Close())
			require.NoError(t, harm(filepath.Join(dir, "000001.pay")))
			s = openStore(t, dir)
			write(t, s, puts(topic, 201, 300, 1_000), nil, nil)
			require.NoError(t, s.Reclaim())
			good, bad := 0, 0
			require.NoError(t, s.Scan(topic.Messages(), topic.Message(0), func(key, got []byte, err error) bool {
				if corrupt := new(CorruptError); errors.As(err, &corrupt) {
					bad++
					return true
				}
				require.NoError(t, err)
				require.Equal(t, body(Position(key), 1_000), got)
				good++
				return true
			}))
			require.Equal(t, map[string][2]int{"flipped": {299, 1}, "cut": {245, 55}, "gone": {200, 100}}[name], [2]int{good, bad}, name)
		}
	})

	t.Run("GoWithTheirTenant", func(t *testing.T) {
		s := openStore(t, t.TempDir())
		write(t, s, puts(topic, 1, 200, 1_000), nil, nil)
		require.NoError(t, s.files.Leave(1))
		other := TopicOf("bolt", "orders")
		write(t, s, puts(other, 201, 300, 1_000), nil, nil)
		e := &Erasure{Tenant: "acme"}
		write(t, s, nil, []Op{{Key: ErasureKey("acme"), Body: []byte{1}}}, nil)
		for !e.Done {
			freed := e.from == nil
			_, err := s.Erase(e, 10, nil, nil, []byte{})
			require.NoError(t, err)
			require.Equal(t, freed, e.Bytes > 200_000, "%d", e.Bytes)
		}
		require.NoError(t, s.Sync())
		require.Equal(t, []string{"000002.pay"}, payloadFiles(t, s))
		requireBodies(t, s, other, 201, 300, 1_000)
	})

	t.Run("AreToldByARecordThatOlderProgramsRefuse", func(t *testing.T) {
		dir := t.TempDir()
		s, err := Open(t.Context(), dir, time.Second)
		require.NoError(t, err)
		write(t, s, puts(topic, 1, 100, 1_000), nil, nil)
		require.NoError(t, s.view(func(txn *badger.Txn) error {
			item, err := txn.Get(topic.block(1))
			require.NoError(t, err)
			return item.Value(func(v []byte) error {
				require.Equal(t, uint8(placedVersion), v[0])
				return nil
			})
		}))
		newer := sealListing(topic.block(101), listing{places: []place{{position: 101, end: 100}}})
		newer[0] = placedVersion + 1
		txn := s.db.NewTransaction(true)
		require.NoError(t, txn.Set(topic.block(101), newer))
		require.NoError(t, txn.Commit())
		require.NoError(t, s.Close())
		_, err = Open(t.Context(), dir, time.Second)
		require.ErrorContains(t, err, fmt.Sprintf("version %d was written by a newer program; this one knows up to %d", placedVersion+1, placedVersion))
	})
}
