package substrate

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

// buryN publishes n messages and buries them with reasons "r0", "r1", "r2", "r0" and so on.
func buryN(t *testing.T, l *Log, n int) {
	t.Helper()
	publishN(t, l, testTopic, n)
	for i := 0; i < n; {
		d := claim(t, l, testTopic, 64)
		var s []Settlement
		for _, d := range d {
			s = append(s, Settlement{Lease: d.Lease, Verdict: Bury, Reason: fmt.Sprintf("r%d", i%3)})
			i++
		}
		require.NoError(t, l.Settle(t.Context(), s, nil))
	}
}

func deadLetters(t *testing.T, l *Log, f DeadLetterFilter) []DeadLetter {
	t.Helper()
	letters, err := l.DeadLetters(t.Context(), testTenant, testTopic, f)
	require.NoError(t, err)
	return letters
}

func TestDeadLetters(t *testing.T) {
	t.Run("AreListedByPositionWithEveryConditionOfTheFilter", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := openLog(t, t.TempDir())
			buryN(t, l, 6)
			time.Sleep(time.Hour)
			publish(t, l, testTopic, "young")
			settle(t, l, claimOne(t, l, testTopic), Bury, "")
			all := deadLetters(t, l, DeadLetterFilter{})
			require.Len(t, all, 7)
			for i, c := range []struct {
				filter DeadLetterFilter
				want   []int
			}{
				{DeadLetterFilter{ID: all[3].ID}, []int{3}},
				{DeadLetterFilter{ID: "no such id"}, nil},
				{DeadLetterFilter{ReasonContains: "1"}, []int{1, 4}},
				{DeadLetterFilter{ReasonContains: "R1"}, nil},
				{DeadLetterFilter{ReasonContains: "r"}, []int{0, 1, 2, 3, 4, 5}},
				{DeadLetterFilter{OlderThan: time.Hour}, []int{0, 1, 2, 3, 4, 5}},
				{DeadLetterFilter{OlderThan: time.Hour + time.Millisecond}, nil},
				{DeadLetterFilter{LaneSet: true}, []int{0, 1, 2, 3, 4, 5, 6}},
				{DeadLetterFilter{LaneSet: true, Lane: "group"}, nil},
				{DeadLetterFilter{ReasonContains: "r0", After: all[0].Position}, []int{3}},
				{DeadLetterFilter{ReasonContains: "r2", Limit: 1}, []int{2}},
			} {
				var want []DeadLetter
				for _, k := range c.want {
					want = append(want, all[k])
				}
				require.Equal(t, want, deadLetters(t, l, c.filter), "case %d", i)
			}
		})
	})

	t.Run("OfATopicThatDoesNotExistAreNotFound", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		_, err := l.DeadLetters(t.Context(), testTenant, "nothing", DeadLetterFilter{})
		require.ErrorIs(t, err, ErrNotFound)
		_, _, err = l.DeadLetter(t.Context(), testTenant, "nothing", "x")
		require.ErrorIs(t, err, ErrNotFound)
	})

	t.Run("AreOutOfTheDepthAndStayOverACrash", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		buryN(t, l, 3)
		n := reopenCrashed(t, dir)
		require.Len(t, deadLetters(t, n, DeadLetterFilter{}), 3)
		require.Equal(t, int64(3), stats(t, n, testTopic).DeadLetters)
		require.Zero(t, stats(t, n, testTopic).Backlog())
	})
}

func TestRedrive(t *testing.T) {
	t.Run("KeepsIdentityAndEnvelopeAndBeginsAttemptsAnew", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		m := l.newMessage(testTopic, "a")
		m.Envelope = []byte("signed")
		_, err := l.Publish(t.Context(), m)
		require.NoError(t, err)
		for range 2 {
			settle(t, l, claimOne(t, l, testTopic), Bury, "bad")
			r, err := l.Redrive(t.Context(), testTenant, testTopic, Redrive{Operator: "local:0"})
			require.NoError(t, err)
			require.Equal(t, RedriveResult{Moved: 1}, r)
		}
		d := claimOne(t, reopenCrashed(t, dir), testTopic)
		require.Equal(t, m, d.Message)
		require.Equal(t, 1, d.Attempt)
		require.Empty(t, d.PreviousReason)
		d = claimOne(t, l, testTopic)
		settle(t, l, d, Bury, "bad")
		require.Equal(t, 2, deadLetters(t, l, DeadLetterFilter{})[0].Redriven)
	})

	t.Run("LeavesWhatTheCallerDoesNotAdmit", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		buryN(t, l, 4)
		r, err := l.Redrive(t.Context(), testTenant, testTopic, Redrive{Admit: func(m Message) error {
			if string(m.Payload) == "m000002" {
				return errors.New("forged")
			}
			return nil
		}})
		require.NoError(t, err)
		require.Equal(t, RedriveResult{Moved: 3, Refused: 1}, r)
		require.Len(t, deadLetters(t, l, DeadLetterFilter{}), 1)
	})

	t.Run("OfManyMovesEachOnceWhateverIsInTheStore", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		const n = 2*movesPerFrame + 5
		buryN(t, l, n)
		r, err := l.Redrive(t.Context(), testTenant, testTopic, Redrive{Filter: DeadLetterFilter{Limit: n - 1}})
		require.NoError(t, err)
		require.Equal(t, n-1, r.Moved)
		require.Len(t, deadLetters(t, l, DeadLetterFilter{}), 1)
		seen := map[string]bool{}
		for {
			d := claim(t, l, testTopic, 100)
			if len(d) == 0 {
				break
			}
			for _, p := range payloads(d) {
				require.False(t, seen[p])
				seen[p] = true
			}
		}
		require.Len(t, seen, n-1)
	})
}

func TestDiscard(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir)
	buryN(t, l, 6)
	n, err := l.Discard(t.Context(), testTenant, testTopic, DeadLetterFilter{ReasonContains: "r1"})
	require.NoError(t, err)
	require.Equal(t, 2, n)
	again := reopenCrashed(t, dir)
	require.Len(t, deadLetters(t, again, DeadLetterFilter{}), 4)
	require.Equal(t, uint64(2), stats(t, again, testTopic).Discarded)
	_, err = again.body(again.find(TopicName{testTenant, testTopic}), 2)
	require.ErrorContains(t, err, "no such record", "its message is gone too")
}

func TestDeadLetterListIsPaged(t *testing.T) {
	l := openLog(t, t.TempDir())
	buryN(t, l, limits.DeadLetterPage+1)
	page := deadLetters(t, l, DeadLetterFilter{Limit: limits.DeadLetterPage + 1})
	require.Len(t, page, limits.DeadLetterPage)
	require.Len(t, deadLetters(t, l, DeadLetterFilter{After: page[len(page)-1].Position}), 1)
}

func TestDeadMessage(t *testing.T) {
	l := openLog(t, t.TempDir())
	buryN(t, l, 2)
	letters := deadLetters(t, l, DeadLetterFilter{})
	t.Run("IsTheOneThatDied", func(t *testing.T) {
		m, err := l.DeadMessage(t.Context(), letters[1])
		require.NoError(t, err)
		require.Equal(t, letters[1].ID, m.ID)
		require.Equal(t, "m000001", string(m.Payload))
	})
	t.Run("IsNoneOfAnotherIDAtItsPlace", func(t *testing.T) {
		other := letters[1]
		other.ID = letters[0].ID
		_, err := l.DeadMessage(t.Context(), other)
		require.ErrorIs(t, err, ErrNotFound)
	})
	t.Run("IsGoneOnceItIsDiscarded", func(t *testing.T) {
		_, err := l.Discard(t.Context(), testTenant, testTopic, DeadLetterFilter{})
		require.NoError(t, err)
		_, err = l.DeadMessage(t.Context(), letters[1])
		require.ErrorIs(t, err, ErrNotFound)
	})
	t.Run("IsNoneOfATopicThatIsNotThere", func(t *testing.T) {
		_, err := l.DeadMessage(t.Context(), DeadLetter{Tenant: testTenant, Topic: "none", ID: letters[0].ID, Position: 1})
		require.ErrorIs(t, err, ErrNotFound)
	})
}

func TestRedriveNotes(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir)
	publish(t, l, testTopic, "a", "b", "c")
	for _, d := range claim(t, l, testTopic, 3) {
		settle(t, l, d, Bury, "bad")
	}
	note := func(m Message) (string, error) { return "note of " + string(m.Payload), nil }
	r, err := l.Redrive(t.Context(), testTenant, testTopic, Redrive{Filter: DeadLetterFilter{Limit: 2}, Operator: "not this", Note: note})
	require.NoError(t, err)
	require.Equal(t, RedriveResult{Moved: 2}, r)
	crashed := reopenCrashed(t, dir)
	for _, log := range []*Log{l, crashed} {
		for _, d := range claim(t, log, testTopic, 3) {
			require.Equal(t, "note of "+string(d.Message.Payload), d.Operator)
			settle(t, log, d, Bury, "again")
		}
	}
	_, err = l.Redrive(t.Context(), testTenant, testTopic, Redrive{Note: func(Message) (string, error) { return strings.Repeat("x", limits.OperatorBytes+1), nil }})
	require.ErrorIs(t, err, &limits.Error{Name: limits.NameKeyBytes})
	s := stats(t, l, testTopic)
	require.Equal(t, int64(3), s.DeadLetters)
	r, err = l.Redrive(t.Context(), testTenant, testTopic, Redrive{})
	require.NoError(t, err)
	require.Equal(t, RedriveResult{Moved: 3}, r)
	for _, d := range claim(t, l, testTopic, 3) {
		require.Empty(t, d.Operator, "of the last redrive, not of the one before")
	}
}
