package substrate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

func newReplay(t *testing.T, l *Log, from Start) *Replay {
	t.Helper()
	r, err := l.Replay(t.Context(), testTenant, testTopic, from)
	require.NoError(t, err)
	return r
}

// replayed returns the payloads that a replay yields, and checks that their positions rise.
func replayed(t *testing.T, r *Replay) (seen []string) {
	t.Helper()
	last := uint64(0)
	for m, err := range r.Messages(t.Context()) {
		require.NoError(t, err)
		require.Greater(t, m.Position, last)
		last = m.Position
		seen = append(seen, string(m.Message.Payload))
	}
	return seen
}

// keepFor makes the test topic keep what is done.
func keepFor(t *testing.T, l *Log, d time.Duration) {
	t.Helper()
	milli := d.Milliseconds()
	require.NoError(t, l.SetPolicy(t.Context(), testTenant, testTopic, Policy{KeepMilli: &milli}))
}

func TestReplay(t *testing.T) {
	t.Run("ReadsWhatIsStoredForWhateverReasonInOrder", func(t *testing.T) {
		for _, where := range []string{"memory", "store"} {
			t.Run(where, func(t *testing.T) {
				l := openLog(t, t.TempDir())
				keepFor(t, l, time.Hour)
				publish(t, l, "other", "x")
				publish(t, l, testTopic, "kept", "dead", "leased", "retried")
				publish(t, l, "other", "x")
				publish(t, l, testTopic, "ready")
				d := claim(t, l, testTopic, 4)
				settle(t, l, d[0], Ack, "")
				settle(t, l, d[1], Bury, "r")
				settle(t, l, d[3], Retry, "")
				if where == "store" {
					storeUpToDate(t, l)
				}
				require.Equal(t, []string{"kept", "dead", "leased", "retried", "ready"}, replayed(t, newReplay(t, l, Start{})))
			})
		}
	})

	t.Run("LeavesOutWhatWasDoneBeforeItWasStored", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { // the write-behind waits
			l := openLog(t, t.TempDir())
			publish(t, l, testTopic, "a", "b")
			settle(t, l, claimOne(t, l, testTopic), Ack, "")
			require.Equal(t, []string{"b"}, replayed(t, newReplay(t, l, Start{})))
			gap, is := newReplay(t, l, Start{Kind: StartPosition, Position: 1}).Gap()
			require.True(t, is)
			require.Equal(t, Gap{From: 1, To: 2}, gap)
		})
	})

	t.Run("TouchesNoCursorAndNoLease", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		publish(t, l, testTopic, "a", "b")
		d := claimOne(t, l, testTopic)
		before := stats(t, l, testTopic)
		replayed(t, newReplay(t, l, Start{}))
		require.Equal(t, before, stats(t, l, testTopic))
		settle(t, l, d, Ack, "")
		require.Equal(t, []string{"b"}, payloads(claim(t, l, testTopic, 10)))
	})

	t.Run("EndsAtWhatWasNextWhenItBegan", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		publish(t, l, testTopic, "a", "b")
		r := newReplay(t, l, Start{})
		publish(t, l, testTopic, "c")
		require.Equal(t, []string{"a", "b"}, replayed(t, r))
		require.EqualValues(t, 3, r.End())
		require.Equal(t, []string{"c"}, replayed(t, newReplay(t, l, Start{Kind: StartPosition, Position: r.End()})), "it goes on there")
	})

	t.Run("BeginsAtAPosition", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		publish(t, l, testTopic, "a", "b", "c")
		for position, want := range map[uint64][]string{1: {"a", "b", "c"}, 2: {"b", "c"}, 3: {"c"}, 4: nil} {
			r := newReplay(t, l, Start{Kind: StartPosition, Position: position})
			require.Equal(t, want, replayed(t, r))
			_, gap := r.Gap()
			require.False(t, gap)
		}
	})

	t.Run("APositionBelowAllThatIsStoredIsToldAsAGap", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		publish(t, l, testTopic, "a", "b", "c")
		settle(t, l, claimOne(t, l, testTopic), Ack, "")
		storeUpToDate(t, l)
		r := newReplay(t, l, Start{Kind: StartPosition, Position: 1})
		gap, is := r.Gap()
		require.True(t, is)
		require.Equal(t, Gap{From: 1, To: 2}, gap)
		require.Equal(t, []string{"b", "c"}, replayed(t, r))
		for range 2 {
			settle(t, l, claimOne(t, l, testTopic), Ack, "")
		}
		storeUpToDate(t, l)
		gap, is = newReplay(t, l, Start{Kind: StartPosition, Position: 2}).Gap()
		require.True(t, is)
		require.Equal(t, Gap{From: 2, To: 4}, gap, "nothing is stored")
		_, is = newReplay(t, l, Start{}).Gap()
		require.False(t, is, "earliest is whatever is first")
	})

	t.Run("APositionFromTheFutureIsAnError", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		publish(t, l, testTopic, "a")
		_, err := l.Replay(t.Context(), testTenant, testTopic, Start{Kind: StartPosition, Position: 3})
		var future *PositionError
		require.ErrorAs(t, err, &future)
		require.Equal(t, PositionError{Position: 3, Next: 2}, *future)
	})

	t.Run("BeginsAtATime", func(t *testing.T) {
		for _, stored := range []string{"none", "first", "all"} {
			t.Run(stored, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := openLog(t, t.TempDir())
					since := func(d time.Duration) []string {
						return replayed(t, newReplay(t, l, Start{Kind: StartTime, Time: time.Now().Add(d)}))
					}
					publish(t, l, testTopic, "a", "b")
					if stored != "none" {
						storeUpToDate(t, l)
					}
					time.Sleep(10 * time.Millisecond)
					publish(t, l, testTopic, "c")
					if stored == "all" {
						storeUpToDate(t, l)
					}
					require.Equal(t, []string{"a", "b", "c"}, since(-time.Hour))
					require.Equal(t, []string{"a", "b", "c"}, since(-10*time.Millisecond))
					require.Equal(t, []string{"c"}, since(-time.Millisecond))
					require.Equal(t, []string{"c"}, since(0))
					require.Empty(t, since(time.Millisecond))
				})
			})
		}
	})

	t.Run("Refuses", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		publish(t, l, testTopic, "a")
		_, err := l.Replay(t.Context(), testTenant, testTopic, Start{Kind: StartLatest})
		require.ErrorContains(t, err, "want earliest, a position or a time")
		_, err = l.Replay(t.Context(), testTenant, testTopic, Start{Kind: 9})
		require.ErrorContains(t, err, "kind 9")
		_, err = l.Replay(t.Context(), testTenant, "nothing", Start{})
		require.ErrorIs(t, err, ErrNotFound)
		var name *NameError
		_, err = l.Replay(t.Context(), testTenant, "../a", Start{})
		require.ErrorAs(t, err, &name)
	})

	t.Run("SkipsAndCountsWhatDoesNotCheck", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		publish(t, l, testTopic, "a", "broken", "c")
		storeUpToDate(t, l)
		broken := crash(t, dir)
		overwrite(t, broken, l.find(TopicName{testTenant, testTopic}).key().Message(2))
		l = openLog(t, broken)
		r := newReplay(t, l, Start{})
		for range 2 {
			require.Equal(t, []string{"a", "c"}, replayed(t, r))
			require.EqualValues(t, 1, r.Damaged())
		}
	})

	t.Run("ADelayedMessageIsReadOnceItIsVisible", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := openLog(t, t.TempDir())
			publishWith(t, l, "later", MessageOptions{Delay: time.Second})
			publish(t, l, testTopic, "a")
			storeUpToDate(t, l)
			require.Equal(t, []string{"a"}, replayed(t, newReplay(t, l, Start{})))
			time.Sleep(time.Second)
			synctest.Wait()
			require.Equal(t, []string{"a", "later"}, replayed(t, newReplay(t, l, Start{})), "its record is not in its place yet")
			storeUpToDate(t, l)
			require.Equal(t, []string{"a", "later"}, replayed(t, newReplay(t, l, Start{})))
		})
	})

	t.Run("ReadsPagesOfBoundedCountAndBytes", func(t *testing.T) {
		for _, where := range []string{"memory", "store"} {
			t.Run(where, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { // the write-behind waits
					l := openLog(t, t.TempDir())
					n := 2*limits.ReplayPageMessages + 1
					publishN(t, l, testTopic, n)
					large := strings.Repeat("x", limits.ReplayPageBytes/2+1)
					publish(t, l, testTopic, large)
					publish(t, l, testTopic, large)
					if where == "store" {
						storeUpToDate(t, l)
					}
					r := newReplay(t, l, Start{})
					topic := l.find(TopicName{testTenant, testTopic})
					var sizes []int
					for from := uint64(1); from < r.end; {
						p, err := l.page(t.Context(), topic, from, r.end)
						require.NoError(t, err)
						sizes = append(sizes, len(p.messages))
						from = p.next
					}
					require.Equal(t, []int{limits.ReplayPageMessages, limits.ReplayPageMessages, 2, 1}, sizes)
					require.Len(t, replayed(t, r), n+2)
				})
			})
		}
	})

	t.Run("TheLogWorksWhileItYields", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		publish(t, l, testTopic, "a", "b")
		for m, err := range newReplay(t, l, Start{}).Messages(t.Context()) {
			require.NoError(t, err)
			publish(t, l, testTopic, "more")
			storeUpToDate(t, l)
			m.Message.Payload[0] = '!' // it is the caller's
		}
		require.Equal(t, []string{"a", "b", "more", "more"}, payloads(claim(t, l, testTopic, 10)))
	})

	t.Run("EndsWithItsContextAndWithTheLog", func(t *testing.T) {
		l, err := Open(t.Context(), Options{Dir: t.TempDir(), SegmentBytes: testSegment})
		require.NoError(t, err)
		publishN(t, l, testTopic, 2*limits.ReplayPageMessages)
		last := func(ctx context.Context, between func()) (n int, last error) {
			r := newReplay(t, l, Start{})
			for _, err := range r.Messages(ctx) {
				if n++; n == 1 {
					between()
				}
				last = err
			}
			return n, last
		}
		ctx, cancel := context.WithCancel(t.Context())
		n, err := last(ctx, cancel)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, limits.ReplayPageMessages+1, n)
		_, err = last(t.Context(), func() { require.NoError(t, l.Close()) })
		require.ErrorIs(t, err, ErrClosed)
		_, err = l.Replay(t.Context(), testTenant, testTopic, Start{})
		require.ErrorIs(t, err, ErrClosed)
	})

	t.Run("SeesEachKeptMessageOnceWhileConsumersAcknowledge", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		keepFor(t, l, time.Hour)
		const n = 3_000
		publishN(t, l, testTopic, n)
		var consumers sync.WaitGroup
		for range 4 {
			consumers.Go(func() { consume(t.Context(), l) })
		}
		for range 3 {
			seen := replayed(t, newReplay(t, l, Start{}))
			require.Len(t, seen, n)
			for i, payload := range seen {
				require.Equal(t, fmt.Sprintf("m%06d", i), payload)
			}
		}
		consumers.Wait()
		require.Zero(t, stats(t, l, testTopic).Backlog())
		require.Len(t, replayed(t, newReplay(t, l, Start{})), n)
	})

	t.Run("SeesWhatIsLeftInOrderWhileConsumersAcknowledge", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		publishN(t, l, testTopic, 3_000)
		publish(t, l, "held", "x")
		var consumers sync.WaitGroup
		consumers.Go(func() { consume(t.Context(), l) })
		for stats(t, l, testTopic).Backlog() > 0 {
			replayed(t, newReplay(t, l, Start{}))
		}
		consumers.Wait()
		storeUpToDate(t, l)
		require.Empty(t, replayed(t, newReplay(t, l, Start{})))
	})
}

// consume acknowledges what is in the test topic.
func consume(ctx context.Context, l *Log) {
	for {
		got, err := l.Claim(ctx, claimRequest(testTopic, 64))
		if err != nil || len(got.Deliveries) == 0 {
			return
		}
		var settlements []Settlement
		for _, d := range got.Deliveries {
			settlements = append(settlements, Settlement{Lease: d.Lease, Verdict: Ack})
		}
		if err := l.Settle(ctx, settlements, nil); err != nil && !errors.Is(err, ErrClosed) {
			panic(err)
		}
	}
}
