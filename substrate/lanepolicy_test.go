package substrate

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

func TestMaxDepthOfGroups(t *testing.T) {
	inALog(t, "IsThatOfTheLargestWhereThereIsNoDefaultLane", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		makeGroups(t, l, "fast", "slow")
		setPolicy(t, l, policyOf(3, 0, 0))
		publish(t, l, testTopic, "a", "b")
		publishWith(t, l, "c", MessageOptions{Delay: time.Hour})
		emptyLane(t, l, "fast")
		held := claimFrom(t, l, "slow", 2)
		for l := range eachly(t, dir, l) {
			_, err := l.Publish(t.Context(), l.newMessage(testTopic, "d"))
			require.Equal(t, &DepthError{Topic: testTopic, Limit: 3, Actual: 4}, err)
		}
		settle(t, l, held[0], Bury, "")
		publish(t, l, testTopic, "d") // dead letters don't count
		emptyLane(t, l, "fast")
		_, err := l.Publish(t.Context(), l.newMessage(testTopic, "e"))
		require.Error(t, err)
		require.NoError(t, l.DeleteGroup(t.Context(), testTenant, testTopic, "slow"))
		publish(t, l, testTopic, "e", "f")
	})

	inALog(t, "IsThatOfTheDefaultLaneWhereThereIsOne", func(in scene) {
		t, l := in.t, in.l
		makeGroups(t, l, "slow")
		setMode(t, l, LaneOn)
		setPolicy(t, l, policyOf(2, 0, 0))
		for range 3 {
			publish(t, l, testTopic, "a", "b")
			require.Len(t, emptyLane(t, l, ""), 2)
		}
		require.Equal(t, int64(6), groupNamed(t, l, "slow").Lag)
	})
}

func TestIdempotencyWindowPolicy(t *testing.T) {
	again := func(t *testing.T, l *Log) bool {
		t.Helper()
		return publishWith(t, l, "x", MessageOptions{IdempotencyKey: "k"}).Duplicate
	}
	inALog(t, "SaysHowLongAKeyCountsFromItsFirstUse", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		setPolicy(t, l, Policy{IdempotencyWindowMilli: ptr(1000)})
		require.False(t, again(t, l))
		time.Sleep(time.Second - time.Nanosecond)
		require.True(t, again(t, reopenCrashed(t, dir)))
		require.True(t, again(t, l))
		time.Sleep(time.Nanosecond)
		require.False(t, again(t, l))
	})

	inALog(t, "OfZeroLetsNoneCount", func(in scene) {
		t, l := in.t, in.l
		setPolicy(t, l, Policy{IdempotencyWindowMilli: ptr(0)})
		require.False(t, again(t, l))
		require.False(t, again(t, l))
	})

	inALog(t, "IsBounded", func(in scene) {
		t, l := in.t, in.l
		ceiling := limits.IdempotencyWindowCeiling.Milliseconds()
		setPolicy(t, l, Policy{IdempotencyWindowMilli: ptr(ceiling)})
		require.ErrorContains(t, l.SetPolicy(t.Context(), testTenant, testTopic, Policy{IdempotencyWindowMilli: ptr(ceiling + 1)}), "idempotency_window")
	})
}

func TestRequiredFeaturesUpToTheirBoundComeBackAsGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		makeGroups(t, l, "g")
		features := make([]string, limits.RequiredFeatures)
		for i := range features {
			features[i] = strings.Repeat("f", limits.FeatureBytes-1) + string(rune('a'+i))
		}
		publishWith(t, l, "x", MessageOptions{RequiredFeatures: features, Target: "t", ReplyTo: "r"})
		for l := range eachly(t, dir, l) {
			require.Equal(t, MessageOptions{RequiredFeatures: features, Target: "t", ReplyTo: "r"}, claimFrom(t, l, "g", 1)[0].Message.Options)
		}
	})
}
