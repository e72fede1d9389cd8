package substrate

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

func TestRelaxedDurability(t *testing.T) {
	relax := func(t *testing.T, l *Log, topic string, n int64) {
		t.Helper()
		require.NoError(t, l.SetPolicy(t.Context(), testTenant, topic, Policy{MaxUnflushed: &n}))
	}
	flushes := func(l *Log) uint64 {
		n, _ := l.JournalStats()
		return n
	}

	t.Run("AnswersBeforeTheFlushUpToItsNumber", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := openLog(t, t.TempDir())
			relax(t, l, testTopic, 4)
			before := flushes(l)
			for range 4 {
				publish(t, l, testTopic, "x")
			}
			require.Equal(t, before, flushes(l))
			require.Equal(t, int64(4), stats(t, l, testTopic).Unflushed)
			publish(t, l, testTopic, "x")
			require.Equal(t, before+1, flushes(l), "the fifth waits for the flush of them all")
			require.Zero(t, stats(t, l, testTopic).Unflushed)
			require.Equal(t, l.journal.Next()-1, l.journal.Synced())
		})
	})

	t.Run("FlushesWhatIsLeftAfterTheDelay", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := openLog(t, t.TempDir())
			relax(t, l, testTopic, 1_000)
			before := flushes(l)
			publish(t, l, testTopic, "x")
			time.Sleep(limits.FlushDelay - time.Nanosecond)
			publish(t, l, testTopic, "x")
			synctest.Wait()
			require.Equal(t, before, flushes(l))
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			require.Equal(t, before+1, flushes(l))
			require.Equal(t, l.journal.Next()-1, l.journal.Synced())
		})
	})

	t.Run("ACommitThatTouchesAStrictTopicIsStrict", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := openLog(t, t.TempDir())
			relax(t, l, testTopic, 1_000)
			publish(t, l, testTopic, "x")
			before := flushes(l)
			_, err := l.Publish(t.Context(), l.newMessage(testTopic, "a"), l.newMessage("strict", "b"))
			require.NoError(t, err)
			require.Equal(t, before+1, flushes(l))
			require.Zero(t, stats(t, l, testTopic).Unflushed, "and makes what was before it durable")
		})
	})

	t.Run("AnAcknowledgementAndItsOutboxFollowTheSource", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := openLog(t, t.TempDir())
			relax(t, l, testTopic, 1_000)
			publish(t, l, testTopic, "x")
			publish(t, l, "strict", "y")
			d, s := claimOne(t, l, testTopic), claimOne(t, l, "strict")
			before := flushes(l)
			require.NoError(t, l.Settle(t.Context(), []Settlement{{Lease: d.Lease, Verdict: Ack}}, []Message{l.newMessage("strict", "z")}))
			require.Equal(t, before, flushes(l))
			require.NoError(t, l.Settle(t.Context(), []Settlement{{Lease: s.Lease, Verdict: Ack}}, []Message{l.newMessage(testTopic, "z")}))
			require.Equal(t, before+1, flushes(l))
		})
	})

	t.Run("LosesNothingWhenTheProcessDies", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		relax(t, l, testTopic, 1_000)
		publish(t, l, testTopic, "a", "b")
		settle(t, l, claimOne(t, l, testTopic), Ack, "")
		require.Equal(t, []string{"b"}, payloads(claim(t, reopenCrashed(t, dir), testTopic, 10)))
	})

	t.Run("IsStrictByDefaultAndCanBeSetBack", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		view, err := l.Policy(testTenant, testTopic)
		require.NoError(t, err)
		require.Equal(t, PolicyValue{Value: 0, Set: true, Source: "default"}, view.MaxUnflushed)
		relax(t, l, testTopic, 10)
		relax(t, l, testTopic, 0)
		before := flushes(l)
		publish(t, l, testTopic, "x")
		require.Equal(t, before+1, flushes(l))
	})
}
