package substrate

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUseDefaultLane(t *testing.T) {
	use := func(t *testing.T, l *Log) {
		t.Helper()
		require.NoError(t, l.UseDefaultLane(t.Context(), testTenant, testTopic))
	}
	group := func(t *testing.T, l *Log) {
		t.Helper()
		_, _, err := l.CreateGroup(t.Context(), testTenant, testTopic, "g", GroupOptions{})
		require.NoError(t, err)
	}
	t.Run("AGroupThatComesLaterTakesNothingFromIt", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		use(t, l)
		group(t, l)
		publish(t, l, testTopic, "a")
		require.EqualValues(t, 1, stats(t, l, testTopic).Ready)
		require.NoError(t, l.Close())
		l = openLog(t, dir)
		publish(t, l, testTopic, "b")
		require.EqualValues(t, 2, stats(t, l, testTopic).Ready)
	})
	t.Run("WithoutItTheGroupDoes", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		group(t, l)
		publish(t, l, testTopic, "a")
		require.Zero(t, stats(t, l, testTopic).Ready)
		use(t, l)
		publish(t, l, testTopic, "b")
		require.EqualValues(t, 1, stats(t, l, testTopic).Ready)
	})
	t.Run("AgainChangesNothing", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		use(t, l)
		before := l.journal.Next()
		use(t, l)
		require.Equal(t, before, l.journal.Next())
	})
	t.Run("ALaneThatIsOffIsRefused", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		_, err := l.SetLaneMode(t.Context(), testTenant, testTopic, LaneOff)
		require.NoError(t, err)
		require.ErrorIs(t, l.UseDefaultLane(t.Context(), testTenant, testTopic), ErrLaneOff)
		require.Equal(t, LaneOff, stats(t, l, testTopic).LaneMode)
	})
	t.Run("ABadNameIsRefused", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		require.ErrorAs(t, l.UseDefaultLane(t.Context(), testTenant, "../x"), new(*NameError))
	})
}

func TestWordsOfModesAndOrderings(t *testing.T) {
	for _, m := range []LaneMode{LaneAuto, LaneOn, LaneOff} {
		got, err := ParseLaneMode(m.String())
		require.NoError(t, err)
		require.Equal(t, m, got)
	}
	for _, o := range []Ordering{OrderNone, OrderKey, OrderTopic} {
		got, err := ParseOrdering(o.String())
		require.NoError(t, err)
		require.Equal(t, o, got)
	}
	require.Equal(t, "unknown unknown", LaneMode(9).String()+" "+Ordering(9).String())
	_, err := ParseLaneMode("maybe")
	require.EqualError(t, err, `default lane "maybe": want auto, on or off`)
	_, err = ParseOrdering("fifo")
	require.EqualError(t, err, `ordering "fifo": want none, key or topic`)
}

func TestPolicyErrorsOfTimesAreWrittenAsTimes(t *testing.T) {
	l := openLog(t, t.TempDir())
	none := int64(0)
	require.EqualError(t, l.SetPolicy(t.Context(), testTenant, testTopic, Policy{RetentionMilli: &none}),
		"retention: 0s is not allowed: want 1ms to 8784h0m0s")
}
