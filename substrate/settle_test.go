package substrate

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

func TestSettle(t *testing.T) {
	t.Run("AckIsFinal", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		publish(t, l, testTopic, "a")
		d := claimOne(t, l, testTopic)
		settle(t, l, d, Ack, "")
		require.ErrorIs(t, l.Settle(t.Context(), []Settlement{{Lease: d.Lease, Verdict: Retry}}, nil), ErrLeaseLost)
		n := reopenCrashed(t, dir)
		require.Empty(t, claim(t, n, testTopic, 10))
		require.Equal(t, uint64(1), stats(t, n, testTopic).Acked)
	})

	t.Run("AckAndOutboxAreOneCommit", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		publish(t, l, testTopic, "a")
		d := claimOne(t, l, testTopic)
		outbox := []Message{l.newMessage("out", "1"), l.newMessage("out", "2")}
		require.NoError(t, l.Settle(t.Context(), []Settlement{{Lease: d.Lease, Verdict: Ack}}, outbox))
		n := reopenCrashed(t, dir)
		require.Empty(t, claim(t, n, testTopic, 10))
		require.Equal(t, []string{"1", "2"}, payloads(claim(t, n, "out", 10)))
	})

	t.Run("BuryAndOutboxAreOneCommit", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		publish(t, l, testTopic, "a")
		d := claimOne(t, l, testTopic)
		require.NoError(t, l.Settle(t.Context(), []Settlement{{Lease: d.Lease, Verdict: Bury}}, []Message{l.newMessage("out", "1")}))
		n := reopenCrashed(t, dir)
		require.Len(t, deadLetters(t, n, DeadLetterFilter{}), 1)
		require.Equal(t, []string{"1"}, payloads(claim(t, n, "out", 10)))
	})

	t.Run("WhatComesBackPublishesNothing", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		publish(t, l, testTopic, "a")
		d := claimOne(t, l, testTopic)
		for _, v := range []Verdict{Retry, Release} {
			err := l.Settle(t.Context(), []Settlement{{Lease: d.Lease, Verdict: v}}, []Message{l.newMessage("out", "1")})
			require.ErrorContains(t, err, "an Ack or a Bury")
		}
		_, exists := l.Stats(testTenant, "out")
		require.False(t, exists)
	})

	t.Run("WithAStaleLeaseChangesNothingAndPublishesNothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := openLog(t, t.TempDir())
			publish(t, l, testTopic, "a")
			stale := claimOne(t, l, testTopic)
			time.Sleep(time.Minute)
			newest := claimOne(t, l, testTopic)
			for _, v := range []Verdict{Ack, Retry, Release, Bury} {
				require.ErrorIs(t, l.Settle(t.Context(), []Settlement{{Lease: stale.Lease, Verdict: v}}, nil), ErrLeaseLost)
			}
			outbox := []Message{l.newMessage("out", "1")}
			require.ErrorIs(t, l.Settle(t.Context(), []Settlement{{Lease: stale.Lease, Verdict: Ack}}, outbox), ErrLeaseLost)
			_, err := l.Extend(t.Context(), stale.Lease, time.Hour)
			require.ErrorIs(t, err, ErrLeaseLost)
			_, exists := l.Stats(testTenant, "out")
			require.False(t, exists)
			require.Equal(t, int64(1), stats(t, l, testTopic).Leased)
			settle(t, l, newest, Ack, "")
			require.Zero(t, stats(t, l, testTopic).Backlog())
		})
	})

	t.Run("IsAllOrNothing", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		publish(t, l, testTopic, "a", "b")
		d := claim(t, l, testTopic, 2)
		settle(t, l, d[0], Ack, "")
		both := []Settlement{{Lease: d[1].Lease, Verdict: Ack}, {Lease: d[0].Lease, Verdict: Ack}}
		require.ErrorIs(t, l.Settle(t.Context(), both, nil), ErrLeaseLost)
		require.Equal(t, int64(1), stats(t, l, testTopic).Leased)
	})

	t.Run("AnOutboxThatIsRefusedChangesNothing", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		require.NoError(t, l.SetPolicy(t.Context(), testTenant, "out", policyOf(1, 0, 0)))
		publish(t, l, testTopic, "a")
		publish(t, l, "out", "full")
		d := claimOne(t, l, testTopic)
		err := l.Settle(t.Context(), []Settlement{{Lease: d.Lease, Verdict: Ack}}, []Message{l.newMessage("out", "1")})
		var depth *DepthError
		require.ErrorAs(t, err, &depth)
		require.Equal(t, int64(1), stats(t, l, testTopic).Leased)
		settle(t, l, d, Ack, "")
	})

	t.Run("RetryKeepsTheAttemptAndHidesForTheDelay", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := openLog(t, t.TempDir())
			publish(t, l, testTopic, "a")
			d := claimOne(t, l, testTopic)
			retry := Settlement{Lease: d.Lease, Verdict: Retry, Delay: time.Second, Reason: "timeout"}
			require.NoError(t, l.Settle(t.Context(), []Settlement{retry}, nil))
			require.Empty(t, claim(t, l, testTopic, 1))
			time.Sleep(time.Second)
			again := claimOne(t, l, testTopic)
			require.Equal(t, 2, again.Attempt)
			require.Equal(t, "timeout", again.PreviousReason)
		})
	})

	t.Run("ReleaseTakesTheAttemptBack", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		publish(t, l, testTopic, "a")
		for range 10 {
			d := claimOne(t, l, testTopic)
			require.Equal(t, 1, d.Attempt)
			settle(t, l, d, Release, "")
		}
	})

	t.Run("BuryIsOneCommitWithReasonAndReceipt", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		publish(t, l, testTopic, "a")
		d := claimOne(t, l, testTopic)
		bury := Settlement{Lease: d.Lease, Verdict: Bury, Reason: "guest-trap: unreachable", Receipt: []byte(`{"fuel":1}`)}
		require.NoError(t, l.Settle(t.Context(), []Settlement{bury}, nil))
		n := reopenCrashed(t, dir)
		require.Empty(t, claim(t, n, testTopic, 1))
		letter, m, err := n.DeadLetter(t.Context(), testTenant, testTopic, d.Message.ID)
		require.NoError(t, err)
		require.Equal(t, "a", string(m.Payload))
		require.Equal(t, 1, letter.Attempts)
		require.Equal(t, "guest-trap: unreachable", letter.Reason)
		require.JSONEq(t, `{"fuel":1}`, string(letter.Receipt))
	})

	t.Run("RefusesBadArguments", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		publish(t, l, testTopic, "a")
		d := claimOne(t, l, testTopic)
		for _, bad := range [][]Settlement{
			{{Lease: d.Lease}},
			{{Lease: d.Lease, Verdict: 9}},
			{{Lease: d.Lease, Verdict: Bury, Reason: strings.Repeat("x", limits.ReasonBytes+1)}},
			{{Lease: d.Lease, Verdict: Bury, Receipt: make([]byte, limits.ReceiptBytes+1)}},
			{{Lease: d.Lease, Verdict: Ack}, {Lease: d.Lease, Verdict: Ack}},
			make([]Settlement, limits.ClaimCeilingMsgs+1),
		} {
			require.Error(t, l.Settle(t.Context(), bad, nil))
		}
		require.Error(t, l.Settle(t.Context(), []Settlement{{Lease: d.Lease, Verdict: Retry}}, []Message{l.newMessage("out", "")}))
		require.NoError(t, l.Settle(t.Context(), nil, nil))
		settle(t, l, d, Ack, "")
	})
}

func TestExtend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := openLog(t, t.TempDir())
		publish(t, l, testTopic, "a", "b")
		a, _ := claimOne(t, l, testTopic), claimOne(t, l, testTopic)
		until, err := l.Extend(t.Context(), a.Lease, time.Hour)
		require.NoError(t, err)
		require.True(t, until.Equal(time.Now().Add(time.Hour)))
		time.Sleep(time.Minute)
		require.Equal(t, []string{"b"}, payloads(claim(t, l, testTopic, 10)), "only the holder's own lease moved")
		settle(t, l, a, Ack, "")
		_, err = l.Extend(t.Context(), a.Lease, 0)
		require.Error(t, err)
	})
}
