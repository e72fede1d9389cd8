package substrate

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStorageWatermarks(t *testing.T) {
	l := openLog(t, t.TempDir())
	var free atomic.Uint64
	l.mu.Lock()
	l.space = space{low: 200, reserve: 100, free: func() (uint64, error) { return free.Load(), nil }}
	l.mu.Unlock()
	publishOne := func() error {
		_, err := l.Publish(t.Context(), l.newMessage(testTopic, "x"))
		return err
	}
	free.Store(200)
	for range 4 {
		require.NoError(t, publishOne())
	}
	d := claim(t, l, testTopic, 4)
	settle(t, l, d[3], Bury, "bad")

	require.NoError(t, l.Room())

	free.Store(199) // below the first: no messages, everything else
	require.ErrorIs(t, l.Room(), ErrStorageFull)
	require.ErrorIs(t, publishOne(), ErrStorageFull)
	outbox := []Message{l.newMessage("out", "x")}
	require.ErrorIs(t, l.Settle(t.Context(), []Settlement{{Lease: d[0].Lease, Verdict: Ack}}, outbox), ErrStorageFull)
	settle(t, l, d[0], Ack, "")
	settle(t, l, d[1], Retry, "again")
	require.Len(t, claim(t, l, testTopic, 1), 1)

	free.Store(99) // below the second: reads, and what gives space back
	require.ErrorIs(t, publishOne(), ErrStorageFull)
	require.ErrorIs(t, l.Settle(t.Context(), []Settlement{{Lease: d[2].Lease, Verdict: Ack}}, nil), ErrStorageFull)
	_, err := l.Claim(t.Context(), claimRequest(testTopic, 1))
	require.ErrorIs(t, err, ErrStorageFull)
	_, err = l.Extend(t.Context(), d[2].Lease, time.Minute)
	require.ErrorIs(t, err, ErrStorageFull)
	_, err = l.Redrive(t.Context(), testTenant, testTopic, Redrive{})
	require.ErrorIs(t, err, ErrStorageFull)
	require.Len(t, deadLetters(t, l, DeadLetterFilter{}), 1)
	n, err := l.Discard(t.Context(), testTenant, testTopic, DeadLetterFilter{})
	require.NoError(t, err)
	require.Equal(t, 1, n)

	free.Store(200)
	settle(t, l, d[2], Ack, "")
	require.NoError(t, publishOne())
	require.NoError(t, l.Err())
}
