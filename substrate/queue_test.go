package substrate

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

func TestQueue(t *testing.T) {
	woken := func(q *queue) bool {
		select {
		case <-q.wake:
			return true
		default:
			return false
		}
	}

	t.Run("WakesTheCommitterOnceAsManyWaitAsItExpects", func(t *testing.T) {
		q := newQueue()
		require.NoError(t, q.put(t.Context(), &request{}))
		require.True(t, woken(q))
		require.Equal(t, 1, q.expect(3))
		require.NoError(t, q.put(t.Context(), &request{}))
		require.False(t, woken(q))
		require.NoError(t, q.put(t.Context(), &request{}))
		require.True(t, woken(q))
		require.Len(t, q.take(nil), 3)
	})

	t.Run("WakesTheCommitterWhenItExpectsNoMoreThanThereIs", func(t *testing.T) {
		q := newQueue()
		q.expect(2)
		require.NoError(t, q.put(t.Context(), &request{}))
		require.False(t, woken(q))
		q.expect(1)
		require.True(t, woken(q))
	})

	t.Run("ForgetsASignalOfWhatWasTaken", func(t *testing.T) {
		q := newQueue()
		require.NoError(t, q.put(t.Context(), &request{}))
		q.take(nil)
		require.False(t, woken(q))
		require.NoError(t, q.put(t.Context(), &request{}))
		q.expect(2)
		require.False(t, woken(q), "one is fewer than what is expected now")
	})

	t.Run("HoldsBackWhoComesWhenItIsFull", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue()
			for range limits.CommitGroupRequests {
				require.NoError(t, q.put(t.Context(), &request{}))
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			require.ErrorIs(t, q.put(ctx, &request{}), context.DeadlineExceeded)
			put := make(chan error)
			go func() { put <- q.put(t.Context(), &request{}) }()
			synctest.Wait()
			require.Len(t, q.take(nil), limits.CommitGroupRequests)
			require.NoError(t, <-put)
			require.Equal(t, 1, q.len())
		})
	})

	t.Run("RefusesAfterCloseAlsoWhoWaitsForRoom", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue()
			for range limits.CommitGroupRequests {
				require.NoError(t, q.put(t.Context(), &request{}))
			}
			put := make(chan error)
			go func() { put <- q.put(t.Context(), &request{}) }()
			synctest.Wait()
			q.close()
			require.ErrorIs(t, <-put, ErrClosed)
			require.ErrorIs(t, q.put(t.Context(), &request{}), ErrClosed)
			require.Len(t, q.take(nil), limits.CommitGroupRequests)
		})
	})
}

func TestMuster(t *testing.T) {
	begin := func(m *muster, q *queue, n int) {
		q.take(nil)
		m.begin(q, n)
	}

	t.Run("NeverWaitsForALonePublisher", func(t *testing.T) {
		m, q := newMuster(), newQueue()
		m.flush = time.Millisecond
		begin(&m, q, 1)
		require.Equal(t, 1, q.expected)
		require.Zero(t, m.expected)
	})

	t.Run("WaitsForThoseWhomTheLastGroupAnsweredBesideThoseThatWait", func(t *testing.T) {
		m, q := newMuster(), newQueue()
		m.flush = time.Millisecond
		require.NoError(t, q.put(t.Context(), &request{}))
		m.begin(q, 3)
		require.Equal(t, 4, q.expected)
	})

	t.Run("WaitsNoLongerThanAFlushAndItsBound", func(t *testing.T) {
		for flush, wait := range map[time.Duration]time.Duration{
			10 * time.Microsecond: 10 * time.Microsecond,
			time.Second:           limits.CommitGroupWait,
		} {
			synctest.Test(t, func(t *testing.T) {
				m, q := newMuster(), newQueue()
				m.flush = flush
				start := time.Now()
				m.begin(q, 2)
				<-m.timer.C
				require.Equal(t, wait, time.Since(start))
				require.NoError(t, q.put(t.Context(), &request{}))
				m.end(q)
				<-q.wake
			})
		}
	})

	t.Run("WaitsMoreSeldomTheMoreOftenItWasInVain", func(t *testing.T) {
		m, q := newMuster(), newQueue()
		m.flush = time.Millisecond
		waits := 0
		for range 100 {
			begin(&m, q, 4)
			if m.expected > 0 {
				waits++
				m.end(q)
			}
		}
		require.Less(t, waits, 15)
		m.skip = 0
		begin(&m, q, 4)
		m.formed()
		require.Zero(t, m.misses)
		begin(&m, q, 4)
		require.Equal(t, 4, q.expected)
	})
}
