package substrate

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

// fillDisk makes the disk of a log full after it was looked at so many times, until it was looked at so many times more. It
// returns how often it was looked at since it was full.
func fillDisk(l *Log, after, until int64) (looks *atomic.Int64) {
	looks = &atomic.Int64{}
	looks.Store(-after)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.space = space{low: 200, reserve: 100, free: func() (uint64, error) {
		if n := looks.Add(1); n > 0 && n <= until {
			return 0, nil
		}
		return 1000, nil
	}}
	return looks
}

func TestQuarantineOnAFullDisk(t *testing.T) {
	t.Run("SkipsTheMessageInItsPlaceAfterFiveTries", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l, dir := damagedLog(t, numbered(3), "payload 02")
			synctest.Wait()                                 // what Open sets off has looked at the disk
			looks := fillDisk(l, 1, limits.QuarantineTries) // the claim itself still finds room
			start := time.Now()
			got := tryClaim(t, l, "", 10)
			require.EqualValues(t, limits.QuarantineTries, looks.Load())
			require.Equal(t, (limits.QuarantineTries-1)*limits.QuarantinePause, time.Since(start))
			require.Equal(t, []string{"payload 01", "payload 03"}, payloads(got.Deliveries))
			require.Empty(t, got.Quarantined)
			require.Equal(t, []string{"position-2"}, ids(got.Skipped))
			for _, d := range got.Deliveries {
				settle(t, l, d, Ack, "")
			}
			s := stats(t, l, testTopic)
			require.EqualValues(t, 1, s.Skipped)
			require.EqualValues(t, 1, s.Backlog())
			require.Zero(t, s.Quarantined)

			ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // its lease is over long before
			defer cancel()
			require.ErrorIs(t, l.WaitReady(ctx, testTenant, testTopic, ""), context.DeadlineExceeded, "claimers don't spin")
			again := tryClaim(t, l, "", 10)
			require.Empty(t, again.Deliveries)
			require.Empty(t, again.Buried)
			require.Empty(t, again.Quarantined)
			require.Empty(t, again.Skipped)
			publish(t, l, testTopic, "goes on")
			require.Equal(t, []string{"goes on"}, payloads(claim(t, l, testTopic, 10)))

			l = reopenCrashed(t, dir) // there is room again
			require.Equal(t, []string{"position-2"}, ids(tryClaim(t, l, "", 10).Quarantined))
			require.Zero(t, stats(t, l, testTopic).Skipped)
		})
	})

	t.Run("TriesAgainMeanwhile", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l, _ := damagedLog(t, numbered(3), "payload 02")
			synctest.Wait()
			fillDisk(l, 1, limits.QuarantineTries-1)
			got := tryClaim(t, l, "", 10)
			require.Empty(t, got.Skipped)
			require.Equal(t, []string{"position-2"}, ids(got.Quarantined))
			require.Zero(t, stats(t, l, testTopic).Skipped)
		})
	})
}
