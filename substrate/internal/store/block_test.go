package store

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// keysOf counts the keys of a class of a topic.
func keysOf(t *testing.T, s *Store, prefix []byte) (n int) {
	t.Helper()
	require.NoError(t, s.view(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: prefix})
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			n++
		}
		return nil
	}))
	return n
}

func puts(t Topic, from, to uint64, size int) (ops []Op) {
	for p := from; p <= to; p++ {
		ops = append(ops, Op{Key: t.Message(p), Body: body(p, size)})
	}
	return ops
}

func deletions(t Topic, from, to uint64) (ops []Op) {
	for p := from; p <= to; p++ {
		ops = append(ops, Op{Key: t.Message(p)})
	}
	return ops
}

func body(position uint64, size int) []byte {
	b := bytes.Repeat([]byte{byte(position)}, size)
	copy(b, fmt.Sprint(position))
	return b
}

// positions returns the positions that a scan finds from one on.
func positions(t require.TestingT, s *Store, topic Topic, from uint64) (found []uint64) {
	require.NoError(t, s.Scan(topic.Messages(), topic.Message(from), func(key, _ []byte, err error) bool {
		require.NoError(t, err)
		found = append(found, Position(key))
		return true
	}))
	return found
}

func TestBlocks(t *testing.T) {
	topic := TopicOf("acme", "orders")

	t.Run("HoldMessagesThatAreWrittenTogether", func(t *testing.T) {
		s := openStore(t, t.TempDir())
		write(t, s, puts(topic, 1, 1_000, 1_000), nil, nil)
		require.Zero(t, keysOf(t, s, topic.Messages()))
		require.Equal(t, 4, keysOf(t, s, topic.one(classBlock)))
		require.Zero(t, keysOf(t, s, topic.one(classRecords)), "they are beside the database")
		require.Equal(t, []uint32{1}, s.files.Numbers())
		require.Len(t, positions(t, s, topic, 0), 1_000)
		require.Equal(t, uint64(700), positions(t, s, topic, 700)[0])
	})

	t.Run("AreNotMadeOfAFewOrOfLargeMessages", func(t *testing.T) {
		s := openStore(t, t.TempDir())
		write(t, s, puts(topic, 1, blockMinimum-1, 100), nil, nil)
		write(t, s, puts(topic, 10, 20, blockedMaxBytes), nil, nil)
		require.Equal(t, blockMinimum-1+11, keysOf(t, s, topic.Messages()))
		require.Len(t, positions(t, s, topic, 0), blockMinimum-1+11)
	})

	t.Run("KeepWithinTheirBounds", func(t *testing.T) {
		s := openStore(t, t.TempDir())
		write(t, s, append(puts(topic, 1, 3*blockMessages, 0), puts(topic, 10_001, 10_100, blockedMaxBytes-1)...), nil, nil)
		require.NoError(t, s.view(func(txn *badger.Txn) error {
			for _, b := range s.index.from(topic, 0) {
				require.LessOrEqual(t, int(b.count), blockMessages)
				require.LessOrEqual(t, int(b.bytes), blockBytes)
				if b.file != 0 {
					require.GreaterOrEqual(t, int(b.bytes), placedMinBytes)
					continue
				}
				item, err := txn.Get(topic.records(b.first))
				require.NoError(t, err)
				require.Less(t, item.ValueSize(), int64(placedMinBytes))
			}
			return nil
		}))
		require.Len(t, positions(t, s, topic, 0), 3*blockMessages+100)
	})

	t.Run("GoWhenAllOfTheirMessagesAreDeleted", func(t *testing.T) {
		s := openStore(t, t.TempDir())
		write(t, s, puts(topic, 1, 100, 100), nil, nil)
		write(t, s, nil, deletions(topic, 1, 99), nil)
		require.Equal(t, []uint64{100}, positions(t, s, topic, 0))
		require.Equal(t, 1, keysOf(t, s, topic.one(classBlock)))
		write(t, s, nil, deletions(topic, 100, 100), nil)
		require.Zero(t, keysOf(t, s, topic.prefix))
		require.Empty(t, s.index.topics)
	})

	t.Run("ThatACrashLeftWithoutMessagesGoWithTheNextWrite", func(t *testing.T) {
		dir := t.TempDir()
		s, err := Open(t.Context(), dir, time.Second)
		require.NoError(t, err)
		write(t, s, puts(topic, 1, 100, 100), nil, nil)
		last, err := s.markDone(deletions(topic, 1, 100))
		require.NoError(t, err)
		require.NoError(t, s.commit(last)) // and no more
		require.NoError(t, s.Close())
		s = openStore(t, dir)
		require.Empty(t, positions(t, s, topic, 0))
		write(t, s, nil, nil, nil)
		require.Zero(t, keysOf(t, s, topic.prefix))
	})

	t.Run("OfABatchThatACrashCutShortAreForgotten", func(t *testing.T) {
		dir := t.TempDir()
		other := TopicOf("acme", "other")
		s, err := Open(t.Context(), dir, time.Second)
		require.NoError(t, err)
		write(t, s, puts(topic, 1, 100, 100), nil, nil)
		write(t, s, append(puts(topic, 101, 200, 100), puts(other, 201, 202, 100)...), nil, nil)
		require.NoError(t, s.Close())
		s = openStore(t, dir)
		require.NoError(t, s.DropFrom(101))
		require.Len(t, positions(t, s, topic, 0), 100)
		require.Zero(t, keysOf(t, s, other.prefix))
		write(t, s, puts(topic, 101, 150, 100), nil, nil) // grouped in another way than before
		write(t, s, nil, deletions(topic, 130, 150), nil)
		require.Len(t, positions(t, s, topic, 0), 129)
	})

	t.Run("ThatAreMostlyDeletedAreUnpacked", func(t *testing.T) {
		s := openStore(t, t.TempDir())
		write(t, s, puts(topic, 1, 100, 100), nil, nil)
		write(t, s, puts(topic, 101, 200, 100), nil, nil)
		write(t, s, nil, append(deletions(topic, 1, 50), deletions(topic, 101, 149)...), nil)
		require.NoError(t, s.Reclaim())
		require.Equal(t, 50, keysOf(t, s, topic.Messages()))
		require.Equal(t, 1, keysOf(t, s, topic.one(classBlock)))
		require.Len(t, positions(t, s, topic, 0), 101)
		got, err := s.Get(topic.Message(77))
		require.NoError(t, err)
		require.Equal(t, body(77, 100), got)
	})

	t.Run("LoseOneMessageToOneFlippedBit", func(t *testing.T) {
		s := openStore(t, t.TempDir())
		write(t, s, puts(topic, 1, 10, 100), nil, nil)
		require.NoError(t, s.db.Update(func(txn *badger.Txn) error {
			item, err := txn.Get(topic.records(1))
			require.NoError(t, err)
			records, err := item.ValueCopy(nil)
			require.NoError(t, err)
			records[len(records)/2] ^= 1
			return txn.Set(topic.records(1), records)
		}))
		var lost []uint64
		require.NoError(t, s.Scan(topic.Messages(), topic.Message(0), func(key, got []byte, err error) bool {
			if corrupt := new(CorruptError); errors.As(err, &corrupt) {
				lost = append(lost, Position(key))
				require.Equal(t, key, corrupt.Key)
			} else {
				require.Equal(t, body(Position(key), 100), got)
			}
			return true
		}))
		require.Len(t, lost, 1)
		_, err := s.Get(topic.Message(lost[0]))
		require.ErrorAs(t, err, new(*CorruptError))
		write(t, s, nil, append(deletions(topic, 1, lost[0]-1), deletions(topic, lost[0]+1, 10)...), nil)
		require.NoError(t, s.Reclaim())
		_, err = s.Get(topic.Message(lost[0]))
		require.ErrorAs(t, err, new(*CorruptError), "it is as damaged when its block is unpacked")
	})

	t.Run("WhoseRecordsAreGoneAreReportedMessageByMessage", func(t *testing.T) {
		s := openStore(t, t.TempDir())
		write(t, s, puts(topic, 1, 10, 100), nil, nil)
		require.NoError(t, s.commit([]Op{{Key: topic.records(1)}}))
		n := 0
		require.NoError(t, s.Scan(topic.Messages(), topic.Message(4), func(_, _ []byte, err error) bool {
			require.ErrorAs(t, err, new(*CorruptError))
			n++
			return true
		}))
		require.Equal(t, 7, n)
		write(t, s, nil, deletions(topic, 1, 9), nil)
		require.NoError(t, s.Reclaim())
		write(t, s, nil, deletions(topic, 10, 10), nil)
		require.Zero(t, keysOf(t, s, topic.prefix))
	})

	t.Run("ThatDoNotSayWhatTheyHoldAreDamage", func(t *testing.T) {
		for name, ops := range map[string][]Op{
			"Contents": {{Key: topic.block(1), Body: []byte{9, 0, 10}}},
			"Bits":     {{Key: topic.done(1), Body: []byte{1}}},
			"Owner":    {{Key: topic.done(2), Body: []byte{1, 0}}},
		} {
			dir := t.TempDir()
			s, err := Open(t.Context(), dir, time.Second)
			require.NoError(t, err)
			write(t, s, puts(topic, 1, 10, 100), nil, nil)
			require.NoError(t, s.commit(ops))
			require.NoError(t, s.Close())
			_, err = Open(t.Context(), dir, time.Second)
			require.ErrorIs(t, err, ErrDamaged, name)
		}
	})
}

func TestReadersSeeEveryMessageWhileBlocksComeAndGo(t *testing.T) {
	s := openStore(t, t.TempDir())
	topic := TopicOf("acme", "orders")
	write(t, s, puts(topic, 1, 100, 1_000), nil, nil)
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if n := len(positions(t, s, topic, 0)); n < 40 {
					t.Errorf("a scan found %d messages", n)
				}
				if _, err := s.Get(topic.Message(7)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for round := range uint64(20) { // messages 1 to 40 stay
		first := 101 + round*100
		write(t, s, puts(topic, first, first+99, 1_000), deletions(topic, max(41, first-100), first-1), nil)
		if err := s.unpack(); err != nil {
			t.Error(err)
		}
	}
	close(done)
	readers.Wait()
	require.Len(t, positions(t, s, topic, 0), 140)
}

func TestTheStoreIsAMapOfMessages(t *testing.T) {
	if testing.Short() {
		t.Skip("opens many stores")
	}
	checks := flag.Lookup("rapid.checks")
	if checks.Value.String() == checks.DefValue {
		require.NoError(t, flag.Set("rapid.checks", "12"))
		t.Cleanup(func() { require.NoError(t, flag.Set("rapid.checks", checks.DefValue)) })
	}
	rapid.Check(t, func(rt *rapid.T) {
		dir := t.TempDir()
		s, err := Open(t.Context(), dir, time.Second)
		require.NoError(rt, err)
		defer func() { require.NoError(rt, s.Close()) }()
		topics := []Topic{TopicOf("a", "b"), TopicOf("a", "b/c"), TopicOf("d", "b")}
		model := map[int]map[uint64]int{0: {}, 1: {}, 2: {}}
		next := uint64(1)
		batch := func() (early []Op, sizes map[int]map[uint64]int) {
			sizes = map[int]map[uint64]int{0: {}, 1: {}, 2: {}}
			for range rapid.IntRange(0, 60).Draw(rt, "messages") {
				i := rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(rt, "topic")
				size := rapid.SampledFrom([]int{0, 1, 100, 5_000, 30_000, blockedMaxBytes}).Draw(rt, "size")
				early = append(early, Op{Key: topics[i].Message(next), Body: body(next, size)})
				sizes[i][next] = size
				next++
			}
			return early, sizes
		}
		rt.Repeat(map[string]func(*rapid.T){
			"write": func(rt *rapid.T) {
				var last []Op
				for i, sizes := range model {
					for position := range sizes {
						if rapid.IntRange(0, 2).Draw(rt, "fate") > 0 {
							last = append(last, Op{Key: topics[i].Message(position)})
							delete(sizes, position)
						}
					}
				}
				early, sizes := batch()
				write(t, s, early, last, nil)
				for i := range sizes {
					for position, size := range sizes[i] {
						model[i][position] = size
					}
				}
			},
			"be cut short": func(rt *rapid.T) {
				from := next
				early, _ := batch()
				for len(early) > 0 {
					sortOps(early)
					n, err := s.put(early)
					require.NoError(rt, err)
					early = early[n:]
				}
				require.NoError(rt, s.Close())
				s, err = Open(t.Context(), dir, time.Second)
				require.NoError(rt, err)
				require.NoError(rt, s.DropFrom(from))
				next = from
			},
			"unpack": func(rt *rapid.T) { require.NoError(rt, s.unpack()) },
			"open again": func(rt *rapid.T) {
				require.NoError(rt, s.Close())
				s, err = Open(t.Context(), dir, time.Second)
				require.NoError(rt, err)
			},
			"": func(rt *rapid.T) {
				for i, topic := range topics {
					from := uint64(rapid.IntRange(0, int(next)).Draw(rt, "from"))
					found := map[uint64]struct{}{}
					last := uint64(0)
					require.NoError(rt, s.Scan(topic.Messages(), topic.Message(from), func(key, got []byte, err error) bool {
						require.NoError(rt, err)
						position := Position(key)
						require.Greater(rt, position, last)
						last = position
						size, is := model[i][position]
						require.True(rt, is, "message %d is deleted", position)
						require.True(rt, bytes.Equal(body(position, size), got))
						found[position] = struct{}{}
						return true
					}))
					for position, size := range model[i] {
						if _, is := found[position]; position >= from {
							require.True(rt, is, "message %d", position)
						}
						got, err := s.Get(topic.Message(position))
						require.NoError(rt, err)
						require.True(rt, bytes.Equal(body(position, size), got))
					}
					_, err := s.Get(topic.Message(next))
					require.ErrorIs(rt, err, ErrNotFound)
				}
			},
		})
	})
}

func FuzzParsePlaces(f *testing.F) {
	f.Add(uint64(7), appendPlaces(nil, []place{{position: 7, end: 100}, {position: 9, start: 100, end: 150}}))
	f.Fuzz(func(t *testing.T, first uint64, b []byte) {
		c, ok := parseListing(first, b)
		places := c.places
		if !ok {
			return
		}
		for i, p := range places {
			if p.start > p.end || i > 0 && (p.position <= places[i-1].position || p.start != places[i-1].end) {
				t.Fatalf("%v", places)
			}
		}
	})
}

func TestACheckpointNeverOutlivesTheBlocksItVouchesFor(t *testing.T) {
	topic := TopicOf("a", "b")
	d := openOnDisk(t)
	for n := range uint64(3) {
		write(t, d.store, puts(topic, n*100+1, n*100+100, 1_000), nil, []byte{byte(n + 1)})
	}
	s := d.afterPowerCut("*.mem")
	checkpoint, err := s.Checkpoint()
	require.NoError(t, err)
	require.NotZero(t, checkpoint[0])
	vouched := uint64(checkpoint[0]) * 100
	require.NoError(t, s.DropFrom(vouched+1))
	require.Len(t, positions(t, s, topic, 0), int(vouched))
	files, err := filepath.Glob(filepath.Join(d.store.dir, "*.pay"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
}
