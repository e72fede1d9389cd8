package substrate

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

// fenced returns a log with n messages of the test topic, all of them claimed.
func fenced(t *testing.T, dir string, n int) (*Log, []Delivery) {
	t.Helper()
	l := openLog(t, dir)
	publishN(t, l, testTopic, n)
	return l, claim(t, l, testTopic, n)
}

func raise(t *testing.T, l *Log, d Delivery, key string, token uint64) {
	t.Helper()
	require.NoError(t, l.RaiseFence(t.Context(), d.Lease, Fence{key, token}))
}

// marks returns the tokens of a lane's fence marks.
func marks(t *testing.T, l *Log, lane string) map[string]uint64 {
	t.Helper()
	list, err := l.Fences(testTenant, testTopic, lane, "", 0)
	require.NoError(t, err)
	found := map[string]uint64{}
	for _, m := range list {
		found[m.Key] = m.Token
	}
	return found
}

func refuseStale(t *testing.T, l *Log, d Delivery, key string, token, mark uint64) {
	t.Helper()
	err := l.RaiseFence(t.Context(), d.Lease, Fence{key, token})
	require.ErrorIs(t, err, ErrStaleFence)
	var stale *StaleFenceError
	require.ErrorAs(t, err, &stale)
	require.Equal(t, StaleFenceError{Lease: d.Lease, Fence: Fence{key, token}, Mark: mark}, *stale)
}

func TestRaiseFence(t *testing.T) {
	t.Run("RaisesTheMarkPassesAnEqualTokenAndRefusesALowerOne", func(t *testing.T) {
		l, d := fenced(t, t.TempDir(), 1)
		raise(t, l, d[0], "leader", 5)
		raise(t, l, d[0], "leader", 5)
		refuseStale(t, l, d[0], "leader", 4, 5)
		raise(t, l, d[0], "leader", 7)
		refuseStale(t, l, d[0], "leader", 5, 7)
		raise(t, l, d[0], "another", 1)
		require.Equal(t, map[string]uint64{"leader": 7, "another": 1}, marks(t, l, ""))
		settle(t, l, d[0], Ack, "")
	})

	t.Run("TakesTheTokenZeroAndTheHighest", func(t *testing.T) {
		l, d := fenced(t, t.TempDir(), 1)
		raise(t, l, d[0], "leader", 0)
		require.Equal(t, map[string]uint64{"leader": 0}, marks(t, l, ""))
		raise(t, l, d[0], "leader", 1<<64-1)
		refuseStale(t, l, d[0], "leader", 0, 1<<64-1)
	})

	t.Run("QuotesTheKeyInItsError", func(t *testing.T) {
		l, d := fenced(t, t.TempDir(), 1)
		raise(t, l, d[0], "a\x1b[2J", 5)
		err := l.RaiseFence(t.Context(), d[0].Lease, Fence{"a\x1b[2J", 4})
		require.EqualError(t, err, `message at position 1: fence "a\x1b[2J": token 4 is below 5, which was accepted`)
	})

	t.Run("NeedsAKeyThatIsAllowed", func(t *testing.T) {
		l, d := fenced(t, t.TempDir(), 1)
		for _, key := range []string{"", string(bytes.Repeat([]byte("k"), limits.KeyBytes+1)), "\xff"} {
			var option *OptionError
			require.ErrorAs(t, l.RaiseFence(t.Context(), d[0].Lease, Fence{key, 1}), &option)
			require.Equal(t, "fence", option.Option)
		}
		raise(t, l, d[0], string(bytes.Repeat([]byte("k"), limits.KeyBytes)), 1)
	})

	t.Run("NeedsTheLease", func(t *testing.T) {
		l, d := fenced(t, t.TempDir(), 1)
		settle(t, l, d[0], Retry, "")
		require.ErrorIs(t, l.RaiseFence(t.Context(), d[0].Lease, Fence{"leader", 9}), ErrLeaseLost)
		require.Empty(t, marks(t, l, ""))
		again := claimOne(t, l, testTopic)
		require.ErrorIs(t, l.RaiseFence(t.Context(), d[0].Lease, Fence{"leader", 9}), ErrLeaseLost)
		raise(t, l, again, "leader", 1)
	})

	t.Run("CostsNoFlush", func(t *testing.T) {
		l, d := fenced(t, t.TempDir(), 1)
		before, _ := l.JournalStats()
		for token := range uint64(20) {
			raise(t, l, d[0], "leader", token)
		}
		after, _ := l.JournalStats()
		require.Equal(t, before, after)
	})

	t.Run("IsDoneByEachLaneForItself", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		for _, group := range []string{"g", "h"} {
			_, _, err := l.CreateGroup(t.Context(), testTenant, testTopic, group, GroupOptions{})
			require.NoError(t, err)
		}
		publish(t, l, testTopic, "a")
		publish(t, l, "elsewhere", "a")
		g, h := claimLane(t, l, testTopic, "g", 1), claimLane(t, l, testTopic, "h", 1)
		raise(t, l, g[0], "leader", 5)
		raise(t, l, h[0], "leader", 3)
		raise(t, l, claimOne(t, l, "elsewhere"), "leader", 1)
		require.Equal(t, map[string]uint64{"leader": 5}, marks(t, l, "g"))
		require.Equal(t, map[string]uint64{"leader": 3}, marks(t, l, "h"))
		require.Empty(t, marks(t, l, ""))
	})
}

func TestFenceMarks(t *testing.T) {
	t.Run("SurviveACrashWithAndWithoutTheStore", func(t *testing.T) {
		for name, stored := range map[string]bool{"Journal": false, "Store": true} {
			t.Run(name, func(t *testing.T) {
				dir := t.TempDir()
				l, d := fenced(t, dir, 1)
				raise(t, l, d[0], "leader", 5)
				if stored {
					storeUpToDate(t, l)
				}
				before, err := l.Fences(testTenant, testTopic, "", "", 0)
				require.NoError(t, err)
				for _, again := range []*Log{reopenCrashed(t, dir), reopenTwice(t, dir)} {
					after, err := again.Fences(testTenant, testTopic, "", "", 0)
					require.NoError(t, err)
					require.Equal(t, before, after)
					refuseStale(t, again, claimOne(t, again, testTopic), "leader", 4, 5)
				}
			})
		}
	})

	t.Run("SurviveARestart", func(t *testing.T) {
		dir := t.TempDir()
		l, d := fenced(t, dir, 1)
		raise(t, l, d[0], "leader", 5)
		raise(t, l, d[0], "gone", 1)
		storeUpToDate(t, l)
		raise(t, l, d[0], "leader", 6)
		n, err := l.ResetFences(t.Context(), testTenant, testTopic, "", "gone")
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.NoError(t, l.Close())
		l = openLog(t, dir)
		require.Equal(t, map[string]uint64{"leader": 6}, marks(t, l, ""))
	})

	t.Run("AreInABackup", func(t *testing.T) {
		l, d := fenced(t, t.TempDir(), 1)
		raise(t, l, d[0], "leader", 5)
		_, stream := backup(t, l)
		require.Equal(t, map[string]uint64{"leader": 5}, marks(t, restored(t, stream), ""))
	})

	t.Run("AreListedByKeyInPages", func(t *testing.T) {
		l, d := fenced(t, t.TempDir(), 1)
		for _, key := range []string{"c", "a", "d", "b"} {
			raise(t, l, d[0], key, 1)
		}
		page := func(after string, n int) (keys []string) {
			list, err := l.Fences(testTenant, testTopic, "", after, n)
			require.NoError(t, err)
			for _, m := range list {
				require.WithinDuration(t, time.Now(), m.Raised, time.Minute)
				keys = append(keys, m.Key)
			}
			return keys
		}
		require.Equal(t, []string{"a", "b"}, page("", 2))
		require.Equal(t, []string{"c", "d"}, page("b", 2))
		require.Equal(t, []string{"c", "d"}, page("bb", 0))
		require.Empty(t, page("d", 2))
		_, err := l.Fences(testTenant, "unknown", "", "", 0)
		require.ErrorIs(t, err, ErrNotFound)
		_, err = l.Fences(testTenant, testTopic, "unknown", "", 0)
		require.ErrorIs(t, err, ErrNoGroup)
	})

	t.Run("AreResetByAnOperator", func(t *testing.T) {
		for name, stored := range map[string]bool{"Young": false, "Stored": true} {
			t.Run(name, func(t *testing.T) {
				dir := t.TempDir()
				l, d := fenced(t, dir, 1)
				for i := range 2*fencesPerFrame + 1 {
					raise(t, l, d[0], fmt.Sprintf("k%03d", i), 5)
				}
				if stored {
					storeUpToDate(t, l)
				}
				n, err := l.ResetFences(t.Context(), testTenant, testTopic, "", "k007")
				require.NoError(t, err)
				require.Equal(t, 1, n)
				raise(t, l, d[0], "k007", 1)
				refuseStale(t, l, d[0], "k008", 1, 5)
				n, err = l.ResetFences(t.Context(), testTenant, testTopic, "", "")
				require.NoError(t, err)
				require.Equal(t, 2*fencesPerFrame+1, n)
				raise(t, l, d[0], "k009", 1)
				raise(t, l, d[0], "k010", 1)
				n, err = l.ResetFences(t.Context(), testTenant, testTopic, "", "k010")
				require.NoError(t, err)
				require.Equal(t, 1, n)
				require.Equal(t, map[string]uint64{"k009": 1}, marks(t, l, ""))
				l = reopenTwice(t, dir)
				require.Equal(t, map[string]uint64{"k009": 1}, marks(t, l, ""))
				n, err = l.ResetFences(t.Context(), testTenant, testTopic, "", "unknown")
				require.NoError(t, err)
				require.Zero(t, n)
			})
		}
	})

	t.Run("GoWithTheirGroupAndDoNotComeBackWithItsName", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		begin := func() Delivery {
			_, _, err := l.CreateGroup(t.Context(), testTenant, testTopic, "g", GroupOptions{})
			require.NoError(t, err)
			publish(t, l, testTopic, "a")
			return claimLane(t, l, testTopic, "g", 1)[0]
		}
		d := begin()
		for i := range fencesPerFrame + 1 {
			raise(t, l, d, fmt.Sprintf("k%03d", i), 5)
		}
		storeUpToDate(t, l)
		require.NoError(t, l.DeleteGroup(t.Context(), testTenant, testTopic, "g"))
		require.ErrorIs(t, l.RaiseFence(t.Context(), d.Lease, Fence{"k000", 6}), ErrLeaseLost)
		raise(t, l, begin(), "k001", 1) // in one batch of the store with what goes
		require.Equal(t, map[string]uint64{"k001": 1}, marks(t, l, "g"))
		l = reopenTwice(t, dir)
		require.Equal(t, map[string]uint64{"k001": 1}, marks(t, l, "g"))
	})

	t.Run("AreBoundedAndTheIdleOnesGoFirst", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			l, d := fenced(t, dir, 1)
			half := limits.FenceMarks / 2
			raiseMany(t, l, d[0], 0, half)
			time.Sleep(limits.FenceIdle / 2)
			raiseMany(t, l, d[0], half, limits.FenceMarks)
			raise(t, l, d[0], "0", 1) // is in use again

			full := l.RaiseFence(t.Context(), d[0].Lease, Fence{"new", 1})
			var bound *limits.Error
			require.ErrorAs(t, full, &bound)
			require.Equal(t, limits.Error{Name: limits.NameFenceMarks, Limit: limits.FenceMarks, Actual: limits.FenceMarks + 1}, *bound)
			require.Len(t, allMarks(t, l), limits.FenceMarks)
			raise(t, l, d[0], "1", 2) // those that are there go on
			require.ErrorIs(t, l.RaiseFence(t.Context(), d[0].Lease, Fence{"1", 1}), ErrStaleFence)

			time.Sleep(limits.FenceIdle / 2)
			d[0].Lease.Token = claimOne(t, l, testTopic).Lease.Token // the lease ran out
			raise(t, l, d[0], "new", 1)
			kept := allMarks(t, l)
			require.Len(t, kept, limits.FenceMarks-fencesPerFrame+1)
			require.Contains(t, kept, "0")
			require.Contains(t, kept, "1")
			require.Contains(t, kept, fmt.Sprint(half), "only the idle ones")
			again := reopenCrashed(t, dir)
			require.Equal(t, kept, allMarks(t, again))
		})
	})

	t.Run("AreSweptOnceASecond", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l, d := fenced(t, t.TempDir(), 1)
			raise(t, l, d[0], "idle", 1)
			time.Sleep(limits.FenceIdle - limits.FenceSweep/2)
			d[0].Lease.Token = claimOne(t, l, testTopic).Lease.Token
			raiseMany(t, l, d[0], 1, limits.FenceMarks)
			full := &limits.Error{Name: limits.NameFenceMarks}
			require.ErrorIs(t, l.RaiseFence(t.Context(), d[0].Lease, Fence{"new", 1}), full)
			time.Sleep(limits.FenceSweep * 3 / 4)
			require.ErrorIs(t, l.RaiseFence(t.Context(), d[0].Lease, Fence{"new", 1}), full, "it was looked for less than a second ago")
			time.Sleep(limits.FenceSweep / 2)
			raise(t, l, d[0], "new", 1)
			require.NotContains(t, allMarks(t, l), "idle")
		})
	})
}

// reopenTwice opens a copy of the log's folder as a crash leaves it now, and then what that Open stored.
func reopenTwice(t *testing.T, dir string) *Log {
	t.Helper()
	dir = crash(t, dir)
	require.NoError(t, openLog(t, dir).Close())
	return openLog(t, dir)
}

// raiseMany raises marks named by numbers.
func raiseMany(t *testing.T, l *Log, d Delivery, from, to int) {
	t.Helper()
	var raising sync.WaitGroup
	errs := make([]error, 64)
	for i := range errs {
		raising.Go(func() {
			for k := from + i; k < to; k += len(errs) {
				errs[i] = errors.Join(errs[i], l.RaiseFence(t.Context(), d.Lease, Fence{fmt.Sprint(k), 1}))
			}
		})
	}
	raising.Wait()
	require.NoError(t, errors.Join(errs...))
}

// allMarks returns the tokens of the marks of the default lane, over all pages.
func allMarks(t *testing.T, l *Log) map[string]uint64 {
	t.Helper()
	found := map[string]uint64{}
	for after := ""; ; {
		page, err := l.Fences(testTenant, testTopic, "", after, 0)
		require.NoError(t, err)
		for _, m := range page {
			found[m.Key], after = m.Token, m.Key
		}
		if len(page) < limits.FencePage {
			return found
		}
	}
}

func TestSettleWithAFence(t *testing.T) {
	t.Run("IsRefusedWholeIfTheMarkHasRisen", func(t *testing.T) {
		dir := t.TempDir()
		l, d := fenced(t, dir, 3)
		old := Fence{"leader", 5}
		raise(t, l, d[0], old.Key, old.Token)
		raise(t, l, d[1], old.Key, 6)
		err := l.Settle(t.Context(), []Settlement{
			{Lease: d[2].Lease, Verdict: Ack}, {Lease: d[0].Lease, Verdict: Ack, Fence: old},
		}, []Message{l.newMessage("out", "never")})
		require.ErrorIs(t, err, ErrStaleFence)
		var stale *StaleFenceError
		require.ErrorAs(t, err, &stale)
		require.Equal(t, d[0].Lease, stale.Lease)
		require.EqualValues(t, 3, stats(t, l, testTopic).Leased)
		_, exists := l.Stats(testTenant, "out")
		require.False(t, exists)
		settle(t, l, d[0], Ack, "stale-fence") // without the fence, as whoever drops the message
	})

	t.Run("IsTakenIfTheMarkIsTheSameLowerOrGone", func(t *testing.T) {
		l, d := fenced(t, t.TempDir(), 3)
		raise(t, l, d[0], "leader", 5)
		with := func(i int, f Fence) []Settlement { return []Settlement{{Lease: d[i].Lease, Verdict: Ack, Fence: f}} }
		require.NoError(t, l.Settle(t.Context(), with(0, Fence{"leader", 5}), nil))
		require.NoError(t, l.Settle(t.Context(), with(1, Fence{"leader", 6}), nil))
		require.Equal(t, map[string]uint64{"leader": 5}, marks(t, l, ""), "a settlement raises nothing")
		_, err := l.ResetFences(t.Context(), testTenant, testTopic, "", "")
		require.NoError(t, err)
		require.NoError(t, l.Settle(t.Context(), with(2, Fence{"leader", 1}), nil))
	})

	t.Run("IsFirstAboutTheLease", func(t *testing.T) {
		l, d := fenced(t, t.TempDir(), 2)
		raise(t, l, d[1], "leader", 9)
		settle(t, l, d[0], Ack, "")
		err := l.Settle(t.Context(), []Settlement{{Lease: d[0].Lease, Verdict: Ack, Fence: Fence{"leader", 1}}}, nil)
		require.ErrorIs(t, err, ErrLeaseLost)
		require.NotErrorIs(t, err, ErrStaleFence)
	})
}

// claimLane claims n messages of a group.
func claimLane(t *testing.T, l *Log, topic, lane string, n int) []Delivery {
	t.Helper()
	r := claimRequest(topic, n)
	r.Lane = lane
	got, err := l.Claim(t.Context(), r)
	require.NoError(t, err)
	require.Len(t, got.Deliveries, n)
	return got.Deliveries
}
