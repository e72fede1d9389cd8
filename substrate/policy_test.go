package substrate

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

func policyOf(depth, rate, bytes int64) Policy {
	optional := func(v int64) *int64 {
		if v == 0 {
			return nil
		}
		return &v
	}
	return Policy{MaxDepth: optional(depth), MaxRatePerSec: optional(rate), MaxMessageBytes: optional(bytes)}
}

func setPolicy(t *testing.T, l *Log, p Policy) {
	t.Helper()
	require.NoError(t, l.SetPolicy(t.Context(), testTenant, testTopic, p))
}

func TestMaxDepth(t *testing.T) {
	t.Run("IsExactUnderConcurrency", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		setPolicy(t, l, policyOf(100, 0, 0))
		var wg sync.WaitGroup
		var admitted atomic.Int64
		for range 16 {
			wg.Go(func() {
				for range 20 {
					_, err := l.Publish(t.Context(), l.newMessage(testTopic, "x"))
					if err == nil {
						admitted.Add(1)
						continue
					}
					if depth := new(DepthError); !errors.As(err, &depth) {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		require.Equal(t, int64(100), admitted.Load())
		require.Equal(t, int64(100), stats(t, l, testTopic).Backlog())
	})

	t.Run("CountsLeasedAndDelayedButNotDeadLettersAndReopensOnDrain", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		setPolicy(t, l, policyOf(3, 0, 0))
		publish(t, l, testTopic, "a", "b", "c")
		full := func() {
			t.Helper()
			_, err := l.Publish(t.Context(), l.newMessage(testTopic, "d"))
			var depth *DepthError
			require.ErrorAs(t, err, &depth)
			require.Equal(t, &DepthError{Topic: testTopic, Limit: 3, Actual: 4}, depth)
		}
		d := claim(t, l, testTopic, 3)
		full()
		require.NoError(t, l.Settle(t.Context(), []Settlement{{Lease: d[0].Lease, Verdict: Retry, Delay: time.Hour}}, nil))
		full()
		settle(t, l, d[1], Bury, "bad")
		publish(t, l, testTopic, "d")
		full()
		settle(t, l, d[2], Ack, "")
		publish(t, l, testTopic, "e")
	})

	t.Run("RefusesABatchWhole", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		setPolicy(t, l, policyOf(2, 0, 0))
		_, err := l.Publish(t.Context(), l.newMessage("other", "x"), l.newMessage(testTopic, "1"), l.newMessage(testTopic, "2"), l.newMessage(testTopic, "3"))
		require.Error(t, err)
		_, exists := l.Stats(testTenant, "other")
		require.False(t, exists)
	})

	t.Run("CountsReservations", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		setPolicy(t, l, policyOf(2, 0, 0))
		a, err := l.Reserve(testTenant, testTopic, 1)
		require.NoError(t, err)
		b, err := l.Reserve(testTenant, testTopic, 1)
		require.NoError(t, err)
		_, err = l.Reserve(testTenant, testTopic, 1)
		require.Error(t, err)
		b.Release()
		b.Release()
		m := l.newMessage(testTopic, "x")
		m.Reservation = a
		publish(t, l, testTopic, "y")
		_, err = l.Publish(t.Context(), m)
		require.NoError(t, err, "it was admitted before")
		a.Release()
		require.Equal(t, int64(2), stats(t, l, testTopic).Backlog())
		_, err = l.Reserve(testTenant, testTopic, 1)
		require.Error(t, err)
		require.Empty(t, l.admission.reserved)
	})
}

func TestMaxRate(t *testing.T) {
	t.Run("IsABucketThatSaysWhenToRetry", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := openLog(t, t.TempDir())
			setPolicy(t, l, policyOf(0, 10, 0))
			publish(t, l, testTopic, strings.Split("0123456789", "")...)
			_, err := l.Publish(t.Context(), l.newMessage(testTopic, "a"), l.newMessage(testTopic, "b"))
			var rate *RateError
			require.ErrorAs(t, err, &rate)
			require.Equal(t, 200*time.Millisecond, rate.RetryAfter.Round(time.Millisecond))
			time.Sleep(rate.RetryAfter)
			publish(t, l, testTopic, "a", "b")
		})
	})

	t.Run("ABatchOverTheBurstIsTooLarge", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		setPolicy(t, l, policyOf(0, 2, 0))
		_, err := l.Publish(t.Context(), l.newMessage(testTopic, "a"), l.newMessage(testTopic, "b"), l.newMessage(testTopic, "c"))
		require.ErrorIs(t, err, &limits.Error{Name: limits.NameBatchMessages})
		publish(t, l, testTopic, "a", "b")
	})

	t.Run("TokensOfARefusedBatchAndOfAReleasedReservationComeBack", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := openLog(t, t.TempDir())
			setPolicy(t, l, policyOf(0, 2, 0))
			require.NoError(t, l.SetPolicy(t.Context(), testTenant, "empty", policyOf(0, 1, 0)))
			publish(t, l, "empty", "x")
			_, err := l.Publish(t.Context(), l.newMessage(testTopic, "a"), l.newMessage(testTopic, "b"), l.newMessage("empty", "y"))
			require.Error(t, err)
			r, err := l.Reserve(testTenant, testTopic, 1)
			require.NoError(t, err)
			r.Release()
			publish(t, l, testTopic, "a", "b")
		})
	})
}

func TestMaxMessageBytes(t *testing.T) {
	l := openLog(t, t.TempDir())
	setPolicy(t, l, policyOf(0, 0, 4))
	publish(t, l, testTopic, "1234")
	_, err := l.Publish(t.Context(), l.newMessage(testTopic, "12345"))
	require.ErrorIs(t, err, &limits.Error{Name: limits.NameMessageBytes})
	_, err = l.Reserve(testTenant, testTopic, 5)
	require.ErrorIs(t, err, &limits.Error{Name: limits.NameMessageBytes})
}

func TestPolicy(t *testing.T) {
	t.Run("StoredWinsOverConfigUntilUnsetAndSaysWhereItComesFrom", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		config := map[TopicName]Policy{{testTenant, testTopic}: policyOf(5, 7, 0)}
		require.NoError(t, l.SetDefaults(config))
		setPolicy(t, l, policyOf(9, 0, 0))
		want := PolicyView{
			MaxDepth:        PolicyValue{Value: 9, Set: true, Source: "stored"},
			MaxRatePerSec:   PolicyValue{Value: 7, Set: true, Source: "config"},
			MaxMessageBytes: PolicyValue{Value: limits.MessageBytes, Set: true, Source: "default"},
			MaxUnflushed:    PolicyValue{Set: true, Source: "default"},
			MaxPriority:     PolicyValue{Source: "default"},

			IdempotencyWindowMilli: PolicyValue{Value: limits.IdempotencyWindow.Milliseconds(), Set: true, Source: "default"},

			RetentionMilli: PolicyValue{Value: limits.RetentionDuration.Milliseconds(), Set: true, Source: "default"},
			RetentionBytes: PolicyValue{Source: "default"},
			KeepMilli:      PolicyValue{Set: true, Source: "default"},
			MaxAgeMilli:    PolicyValue{Source: "default"},
		}
		got, err := l.Policy(testTenant, testTopic)
		require.NoError(t, err)
		require.Equal(t, want, got)

		n := reopenCrashed(t, dir)
		require.NoError(t, n.SetDefaults(config))
		got, err = n.Policy(testTenant, testTopic)
		require.NoError(t, err)
		require.Equal(t, want, got)

		require.NoError(t, n.UnsetPolicy(t.Context(), testTenant, testTopic))
		got, err = n.Policy(testTenant, testTopic)
		require.NoError(t, err)
		require.Equal(t, PolicyValue{Value: 5, Set: true, Source: "config"}, got.MaxDepth)
	})

	t.Run("SettingOneFieldKeepsTheOthers", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		setPolicy(t, l, policyOf(1, 2, 0))
		setPolicy(t, l, policyOf(3, 0, 0))
		got, err := l.Policy(testTenant, testTopic)
		require.NoError(t, err)
		require.Equal(t, int64(3), got.MaxDepth.Value)
		require.Equal(t, int64(2), got.MaxRatePerSec.Value)
	})

	t.Run("RefusesValuesOutOfRange", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		for _, p := range []Policy{policyOf(-1, 0, 0), policyOf(0, limits.PolicyMaxRatePerSec+1, 0), policyOf(0, 0, limits.MessageCeilingBytes+1)} {
			require.Error(t, l.SetPolicy(t.Context(), testTenant, testTopic, p))
			require.Error(t, l.SetDefaults(map[TopicName]Policy{{testTenant, testTopic}: p}))
		}
	})
}
