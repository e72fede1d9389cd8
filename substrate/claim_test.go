package substrate

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

func TestClaim(t *testing.T) {
	t.Run("GivesEachMessageToOneHolderInOrder", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		publish(t, l, testTopic, "a", "b", "c")
		first, rest := claim(t, l, testTopic, 2), claim(t, l, testTopic, 10)
		require.Equal(t, []string{"a", "b"}, payloads(first))
		require.Equal(t, []string{"c"}, payloads(rest))
		require.Empty(t, claim(t, l, testTopic, 10))
		require.Equal(t, 1, first[0].Attempt)
		require.NotEqual(t, first[0].Lease.Token, rest[0].Lease.Token)
	})

	t.Run("OfATopicThatDoesNotExistIsEmptyAndMakesNone", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		require.Empty(t, claim(t, l, "nothing", 1))
		require.Empty(t, l.Topics())
	})

	t.Run("AMessageLargerThanMaxBytesComesAlone", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		publish(t, l, testTopic, "123456", "1", "2", "123456")
		r := claimRequest(testTopic, 10)
		r.MaxBytes = 2
		var sizes []int
		for range 3 {
			got, err := l.Claim(t.Context(), r)
			require.NoError(t, err)
			sizes = append(sizes, len(got.Deliveries))
		}
		require.Equal(t, []int{1, 2, 1}, sizes)
	})

	t.Run("ExpiredLeaseIsClaimableAgain", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := openLog(t, t.TempDir())
			publish(t, l, testTopic, "a")
			claimOne(t, l, testTopic)
			time.Sleep(time.Minute - time.Nanosecond)
			require.Empty(t, claim(t, l, testTopic, 1))
			time.Sleep(time.Nanosecond)
			require.Equal(t, 2, claimOne(t, l, testTopic).Attempt)
		})
	})

	t.Run("BuriesAtMaxAttemptsInsteadOfDelivering", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		publish(t, l, testTopic, "no reason", "has one")
		for attempt := range 3 {
			d := claim(t, l, testTopic, 2)
			require.Len(t, d, 2)
			require.Equal(t, attempt+1, d[0].Attempt)
			settle(t, l, d[0], Retry, "")
			settle(t, l, d[1], Retry, "timeout")
		}
		publish(t, l, testTopic, "next")
		got, err := l.Claim(t.Context(), claimRequest(testTopic, 1))
		require.NoError(t, err)
		require.Equal(t, []string{"next"}, payloads(got.Deliveries), "what is buried is not charged to the batch")
		require.Len(t, got.Buried, 2)
		require.Equal(t, ReasonMaxAttempts, got.Buried[0].Reason)
		require.Equal(t, "timeout", got.Buried[1].Reason)
		require.Equal(t, 3, got.Buried[0].Attempts)
	})

	t.Run("ReadsABacklogLargerThanTheWindowOnceAndInOrder", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		const n = 4*limits.WindowMessages + 17
		publishN(t, l, testTopic, n)
		next, late := 0, false
		for {
			d := claim(t, l, testTopic, 100)
			if len(d) == 0 {
				break
			}
			for _, got := range payloads(d) {
				require.Equal(t, fmt.Sprintf("m%06d", next), got)
				next++
			}
			if next >= 700 && !late {
				late = true
				storeUpToDate(t, l)
				publish(t, l, testTopic, fmt.Sprintf("m%06d", n))
			}
		}
		require.Equal(t, n+1, next)
	})

	t.Run("CountsTheAttemptEvenIfTheProcessDies", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		publish(t, l, testTopic, "a")
		_, err := l.Start(claimOne(t, l, testTopic).Lease)
		require.NoError(t, err)
		d := claimOne(t, reopenCrashed(t, dir), testTopic)
		require.Equal(t, 2, d.Attempt)
	})

	t.Run("QuarantinesAMessageWhoseRecordDoesNotCheck", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		publish(t, l, testTopic, "a", "b")
		storeUpToDate(t, l)
		broken := crash(t, dir)
		overwrite(t, broken, l.find(TopicName{testTenant, testTopic}).key().Message(1))
		l = openLog(t, broken)
		require.Less(t, time.Since(stats(t, l, testTopic).Oldest), time.Hour, "its age is not that of 1970")
		got, err := l.Claim(t.Context(), claimRequest(testTopic, 10))
		require.NoError(t, err)
		require.Equal(t, []string{"b"}, payloads(got.Deliveries))
		require.Empty(t, got.Buried)
		require.Len(t, got.Quarantined, 1)
		require.Equal(t, ReasonCorrupt, got.Quarantined[0].Reason)
		require.Empty(t, deadLetters(t, l, DeadLetterFilter{}))
	})

	t.Run("RefusesBadArguments", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		for _, change := range []func(*ClaimRequest){
			func(r *ClaimRequest) { r.MaxMessages = 0 },
			func(r *ClaimRequest) { r.MaxMessages = limits.ClaimCeilingMsgs + 1 },
			func(r *ClaimRequest) { r.MaxBytes = 0 },
			func(r *ClaimRequest) { r.Lease = 0 },
			func(r *ClaimRequest) { r.MaxAttempts = 0 },
			func(r *ClaimRequest) { r.Topic = "" },
			func(r *ClaimRequest) { r.Lane = "a/b" },
		} {
			r := claimRequest(testTopic, 1)
			change(&r)
			_, err := l.Claim(t.Context(), r)
			require.Error(t, err)
		}
	})
}

func TestPause(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir)
	publish(t, l, testTopic, "a", "b")
	d := claimOne(t, l, testTopic)
	require.NoError(t, l.Pause(t.Context(), testTenant, testTopic, true))
	require.Empty(t, claim(t, l, testTopic, 10))
	settle(t, l, d, Retry, "again")
	publish(t, l, testTopic, "c")
	require.Empty(t, claim(t, l, testTopic, 10))
	n := reopenCrashed(t, dir)
	require.True(t, stats(t, n, testTopic).Paused)
	require.Empty(t, claim(t, n, testTopic, 10))
	require.NoError(t, n.Pause(t.Context(), testTenant, testTopic, false))
	require.Equal(t, []string{"a", "b", "c"}, payloads(claim(t, n, testTopic, 10)))
}

func TestWaitReady(t *testing.T) {
	var held Delivery
	for name, event := range map[string]struct {
		before func(t *testing.T, l *Log)
		event  func(t *testing.T, l *Log)
		after  time.Duration
	}{
		"IsWokenByAPublish": {
			before: func(*testing.T, *Log) {},
			event: func(t *testing.T, l *Log) {
				t.Helper()
				t.Helper()
				publish(t, l, testTopic, "a")
			},
		},
		"IsWokenByARetryThatComesDue": {
			before: func(t *testing.T, l *Log) {
				t.Helper()
				publish(t, l, testTopic, "a")
				d := claimOne(t, l, testTopic)
				require.NoError(t, l.Settle(t.Context(), []Settlement{{Lease: d.Lease, Verdict: Retry, Delay: time.Hour}}, nil))
			},
			event: func(*testing.T, *Log) {},
			after: time.Hour,
		},
		"IsWokenByALeaseThatRunsOut": {
			before: func(t *testing.T, l *Log) {
				t.Helper()
				t.Helper()
				publish(t, l, testTopic, "a")
				claimOne(t, l, testTopic)
			},
			event: func(*testing.T, *Log) {},
			after: time.Minute,
		},
		"IsWokenByAResume": {
			before: func(t *testing.T, l *Log) {
				t.Helper()
				publish(t, l, testTopic, "a")
				require.NoError(t, l.Pause(t.Context(), testTenant, testTopic, true))
			},
			event: func(t *testing.T, l *Log) {
				t.Helper()
				require.NoError(t, l.Pause(t.Context(), testTenant, testTopic, false))
			},
		},
		"IsWokenByARelease": {
			before: func(t *testing.T, l *Log) {
				t.Helper()
				publish(t, l, testTopic, "a")
				held = claimOne(t, l, testTopic)
			},
			event: func(t *testing.T, l *Log) {
				t.Helper()
				settle(t, l, held, Release, "")
			},
		},
		"IsWokenByALeaseThatIsCutShort": {
			before: func(t *testing.T, l *Log) {
				t.Helper()
				publish(t, l, testTopic, "a")
				held = claimOne(t, l, testTopic)
			},
			event: func(t *testing.T, l *Log) {
				t.Helper()
				_, err := l.Extend(t.Context(), held.Lease, time.Second)
				require.NoError(t, err)
			},
			after: time.Second,
		},
		"IsWokenByARedrive": {
			before: func(t *testing.T, l *Log) {
				t.Helper()
				publish(t, l, testTopic, "a")
				settle(t, l, claimOne(t, l, testTopic), Bury, "bad")
			},
			event: func(t *testing.T, l *Log) {
				t.Helper()
				_, err := l.Redrive(t.Context(), testTenant, testTopic, Redrive{})
				require.NoError(t, err)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := openLog(t, t.TempDir())
				event.before(t, l)
				start := time.Now()
				done := make(chan error, 1)
				go func() { done <- l.WaitReady(t.Context(), testTenant, testTopic, "") }()
				synctest.Wait()
				require.Empty(t, done)
				event.event(t, l)
				require.NoError(t, <-done)
				require.Equal(t, event.after, time.Since(start))
				claimOne(t, l, testTopic)
			})
		})
	}
}
