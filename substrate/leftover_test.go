package substrate

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/substrate/internal/store"
)

// withStore calls f with the store of the closed log in dir.
func withStore(t *testing.T, dir string, f func(s *store.Store)) {
	t.Helper()
	s, err := store.Open(t.Context(), filepath.Join(dir, "store"), time.Second)
	require.NoError(t, err)
	f(s)
	require.NoError(t, s.Close())
}

func TestMessagesThatACrashLeftInTheStoreAreNotDeliveredTwice(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir)
	publish(t, l, testTopic, "a")
	storeUpToDate(t, l)
	publish(t, l, testTopic, "b", "c", "d", "e", "f", "g", "h", "i", "j", "k")
	crashed := crash(t, dir)
	key := store.TopicOf(testTenant, testTopic)
	withStore(t, crashed, func(s *store.Store) { // a part of the batch that holds b to k, in blocks that another cut makes otherwise
		body, err := s.Checkpoint()
		require.NoError(t, err)
		cp, err := decodeCheckpoint(body)
		require.NoError(t, err)
		var left []store.Op
		for position := uint64(5); position <= 8; position++ {
			m := l.newMessage(testTopic, "left")
			id, err := parseID(m.ID)
			require.NoError(t, err)
			left = append(left, store.Op{Key: key.Message(position), Body: appendMessage(nil, id, &m)})
		}
		if cp.nextPosition > 2 {
			t.Skip("the batch was stored before the copy was made")
		}
		_, err = s.Write(left, nil, body)
		require.NoError(t, err)
	})

	after, err := Open(t.Context(), Options{Dir: crashed, SegmentBytes: testSegment})
	require.NoError(t, err)
	d := claim(t, after, testTopic, 100)
	require.Equal(t, []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"}, payloads(d))
	for i := range d {
		settle(t, after, d[i], Ack, "")
	}
	require.NoError(t, after.Close())
	withStore(t, crashed, func(s *store.Store) {
		require.NoError(t, s.Scan(key.Messages(), key.Messages(), func(k, _ []byte, _ error) bool {
			t.Errorf("message %d is still there", store.Position(k))
			return true
		}))
	})
}
