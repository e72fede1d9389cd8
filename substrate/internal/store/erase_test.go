package store

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestErase(t *testing.T) {
	t.Run("AnyPartOfIt", func(t *testing.T) {
		dir := t.TempDir()
		open := func() *Store {
			s, err := Open(t.Context(), dir, 0)
			require.NoError(t, err)
			return s
		}
		s := open()
		gone, shorter, next := TopicOf("acme", "orders"), TopicOf("acm", "orders"), TopicOf("acmf", "orders")
		for _, topic := range []Topic{gone, shorter, next} {
			write(t, s, puts(topic, 1, 20, 10), []Op{{Key: topic.State(), Body: []byte("state")}}, []byte("cp"))
			write(t, s, nil, deletions(topic, 3, 7), []byte("cp"))
			write(t, s, puts(topic, 30, 50, 10), nil, []byte("cp"))
			write(t, s, nil, deletions(topic, 30, 50), []byte("cp"))
		}
		write(t, s, []Op{{Key: BucketOf("acme", "b").Value("k"), Body: []byte("v")}}, nil, []byte("cp"))
		write(t, s, nil, []Op{{Key: ErasureKey("acme"), Body: []byte("1")}}, []byte("begun"))

		e := &Erasure{Tenant: "acme"}
		steps := 0
		for ; !e.Done; steps++ {
			_, err := s.Erase(e, 1, nil, nil, []byte("going on"))
			require.NoError(t, err)
			require.NoError(t, s.Close())
			s = open() // whatever is left of its blocks
			tenants, err := s.Erasures()
			require.NoError(t, err)
			require.Equal(t, []string{"acme"}, tenants)
		}
		require.Greater(t, steps, 5)
		require.Zero(t, keysOf(t, s, []byte("\x04acme")))
		_, err := s.Get(gone.Message(1))
		require.ErrorIs(t, err, ErrNotFound)
		for _, topic := range []Topic{shorter, next} {
			n := 0
			require.NoError(t, s.Scan(topic.Messages(), topic.Messages(), func(_, _ []byte, err error) bool {
				require.NoError(t, err)
				n++
				return true
			}))
			require.Equal(t, 15, n)
		}
		write(t, s, nil, []Op{{Key: ErasureKey("acme")}}, []byte("done"))
		tenants, err := s.Erasures()
		require.NoError(t, err)
		require.Empty(t, tenants)
		require.NoError(t, s.Close())
	})

	t.Run("AllAtOnceLeavesRoomForATenantOfThatName", func(t *testing.T) {
		s := openStore(t, t.TempDir())
		topic := TopicOf("acme", "orders")
		write(t, s, puts(topic, 1, 20, 10), nil, nil)
		require.NoError(t, s.EraseAll("acme", 3))
		write(t, s, puts(topic, 5, 30, 10), nil, nil)
		var got []uint64
		require.NoError(t, s.Keys(topic.Messages(), topic.Messages(), func(key []byte) bool {
			got = append(got, Position(key))
			return true
		}))
		require.Len(t, got, 26)
		require.Equal(t, uint64(5), got[0])
	})
}

func TestRecordBytes(t *testing.T) {
	s := openStore(t, t.TempDir())
	b := BucketOf("acme", "b")
	var all int64
	for _, key := range []string{"k", string(make([]byte, 200))} {
		for _, n := range []int{0, 1, 127, 128, valueThreshold - 10, valueThreshold - 9, valueThreshold, 1 << 20, 1 << 21} {
			name := b.Value(key + string(rune('a'+n%26)))
			write(t, s, []Op{{Key: name, Body: make([]byte, n)}}, nil, nil)
			got, err := s.RecordBytes(name)
			require.NoError(t, err)
			require.Equal(t, int64(recordHeader+n), got, "a value of %d bytes under a key of %d", n, len(key))
			write(t, s, nil, []Op{{Key: name}}, nil)
		}
		write(t, s, []Op{{Key: b.Value(key), Body: make([]byte, 100_000)}}, nil, nil)
		all += int64(len(key) + recordHeader + 100_000)
	}
	none, err := s.RecordBytes(b.Value("none"))
	require.NoError(t, err)
	require.Zero(t, none)
	sum, err := s.ValueBytes(b)
	require.NoError(t, err)
	require.Equal(t, all, sum)
}
