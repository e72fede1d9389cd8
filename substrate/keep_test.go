package substrate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

func TestAMessageIsKept(t *testing.T) {
	hour := Policy{KeepMilli: ptr(time.Hour.Milliseconds())}

	inALog(t, "UntilEveryLaneThatIsOwedItIsDone", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		makeGroups(t, l, "g", "h")
		setMode(t, l, LaneOn)
		publish(t, l, testTopic, "a", "b")
		for i, lane := range []string{"g", "", "h"} {
			require.Equal(t, 2, stored(t, l), "%d lanes are done", i)
			require.Equal(t, []string{"a", "b"}, emptyLane(t, l, lane))
		}
		for l := range eachly(t, dir, l) {
			require.Zero(t, stored(t, l))
			require.Zero(t, stats(t, l, testTopic).PinnedBytes)
		}
	})

	inALog(t, "ForTheKeepTimeAfterThat", func(in scene) {
		t, l := in.t, in.l
		setPolicy(t, l, hour)
		makeGroups(t, l, "g")
		setMode(t, l, LaneOn)
		publish(t, l, testTopic, "a", "b")
		emptyLane(t, l, "")
		time.Sleep(30 * time.Minute)
		settleAll(t, l, claimFrom(t, l, "g", 10), Ack)
		time.Sleep(time.Hour - 5*time.Second)
		require.Equal(t, 2, stored(t, l))
		makeGroups(t, l, "replays")
		require.Equal(t, []string{"a", "b"}, payloads(claimFrom(t, l, "replays", 10)), "for those who come later")
		require.NoError(t, l.DeleteGroup(t.Context(), testTenant, testTopic, "replays"))
		time.Sleep(time.Hour + time.Hour/keepMarks + 3*time.Second)
		require.Zero(t, stored(t, l))
		require.Zero(t, stats(t, l, testTopic).PinnedBytes)
	})

	inALog(t, "InADefaultLaneWithoutGroupsToo", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		setPolicy(t, l, Policy{KeepMilli: ptr(60_000)})
		publish(t, l, testTopic, "a", "b", "c")
		d := claim(t, l, testTopic, 2)
		settle(t, l, d[0], Ack, "")
		time.Sleep(50 * time.Second)
		settle(t, l, d[1], Bury, "")
		_, err := l.Discard(t.Context(), testTenant, testTopic, DeadLetterFilter{})
		require.NoError(t, err)
		require.Equal(t, int64(2), stats(t, l, testTopic).PinnedBytes)
		require.Equal(t, 3, stored(t, l))
		time.Sleep(30 * time.Second)
		require.Equal(t, 2, stored(t, l), "the first is gone, the second was done later")
		next := reopenCrashed(t, dir)
		require.Equal(t, 2, stored(t, next))
		time.Sleep(90 * time.Second)
		for _, l := range []*Log{next, l} {
			require.Equal(t, 1, stored(t, l))
			require.Zero(t, stats(t, l, testTopic).PinnedBytes)
			require.Equal(t, []string{"c"}, emptyLane(t, l, ""))
		}
	})

	inAnOrderedLog(t, "FromWhenItWasDoneWhateverItWasBefore", OrderKey, func(in scene) {
		t, l := in.t, in.l
		setPolicy(t, l, Policy{KeepMilli: ptr(60_000)})
		publishKeyed(t, l, "a1", "b1", "b2", "c1", "d1")
		d := claim(t, l, testTopic, 2)
		settle(t, l, d[0], Ack, "")
		dead := claim(t, l, testTopic, 1) // parks b2
		require.Equal(t, []string{"c1"}, payloads(dead))
		settle(t, l, dead[0], Bury, "")
		time.Sleep(50 * time.Second)
		_, err := l.Discard(t.Context(), testTenant, testTopic, DeadLetterFilter{})
		require.NoError(t, err)
		settle(t, l, d[1], Ack, "") // b1, that was in flight
		require.ElementsMatch(t, []string{"b2", "d1"}, emptyLane(t, l, ""), "one was parked, one was fresh")
		require.Equal(t, 5, stored(t, l))
		time.Sleep(30 * time.Second)
		require.Equal(t, 4, stored(t, l), "all but the first")
		time.Sleep(90 * time.Second)
		require.Zero(t, stored(t, l))
	})

	inALog(t, "NoLongerThanThePolicyOfTheDaySays", func(in scene) {
		t, l := in.t, in.l
		setPolicy(t, l, hour)
		publish(t, l, testTopic, "a")
		emptyLane(t, l, "")
		require.Equal(t, 1, stored(t, l))
		setPolicy(t, l, Policy{KeepMilli: ptr(0)})
		require.Zero(t, stored(t, l))
	})

	inALog(t, "AsADeadLetterUntilThatIsDiscarded", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		setPolicy(t, l, Policy{RetentionMilli: ptr(1000)})
		makeGroups(t, l, "g")
		publish(t, l, testTopic, "a", "b")
		settle(t, l, claimFrom(t, l, "g", 1)[0], Bury, "")
		time.Sleep(time.Minute)
		for l := range eachly(t, dir, l) {
			require.Equal(t, 1, stored(t, l))
			_, m, err := l.DeadLetter(t.Context(), testTenant, testTopic, deadLetters(t, l, DeadLetterFilter{})[0].ID)
			require.NoError(t, err)
			require.Equal(t, "a", string(m.Payload))
		}
		_, err := l.Discard(t.Context(), testTenant, testTopic, DeadLetterFilter{})
		require.NoError(t, err)
		require.Zero(t, stored(t, l))
	})

	inALog(t, "ByNobodyWhereNoLaneIsOwedIt", func(in scene) {
		t, l := in.t, in.l
		setMode(t, l, LaneOff)
		publish(t, l, testTopic, "a", "b")
		require.Zero(t, stored(t, l))
		require.Zero(t, stats(t, l, testTopic).PinnedBytes)
	})
}

func TestTheSweep(t *testing.T) {
	inALog(t, "GoesOnInStepsUntilAllIsGone", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		makeGroups(t, l, "g", "h")
		n := 2*limits.SweepPositions + 100
		publishN(t, l, testTopic, n)
		emptyLane(t, l, "h")
		require.NoError(t, l.ResetGroup(t.Context(), testTenant, testTopic, "g", Start{Kind: StartPosition, Position: uint64(n)}))
		crashed := crash(t, dir)
		for _, l := range []*Log{openLog(t, crashed), l} {
			require.Equal(t, 1, stored(t, l))
			require.Equal(t, int64(7), stats(t, l, testTopic).PinnedBytes)
			require.Equal(t, span{}, withoutBounds(l.find(TopicName{testTenant, testTopic}).unswept))
		}
	})

	inALog(t, "RestsWhenThereIsNothingToDo", func(in scene) {
		t, l := in.t, in.l
		publish(t, l, testTopic, "a")
		makeGroups(t, l, "g")
		require.NoError(t, l.DeleteGroup(t.Context(), testTenant, testTopic, "g"))
		stored(t, l)
		l.mu.Lock()
		defer l.mu.Unlock()
		require.Empty(t, l.state.watched)
	})
}

// withoutBounds returns the zero span for one that is empty.
func withoutBounds(s span) span {
	if s.from >= s.to {
		return span{}
	}
	return s
}
