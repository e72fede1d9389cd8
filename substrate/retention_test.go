package substrate

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

// kilo returns a payload of 1,000 bytes that begins with a name.
func kilo(name string) string { return name + strings.Repeat(".", 1000-len(name)) }

// names returns what the payloads begin with.
func names(deliveries []Delivery) string {
	var s []string
	for _, d := range deliveries {
		name, _, _ := strings.Cut(string(d.Message.Payload), ".")
		s = append(s, name)
	}
	return strings.Join(s, " ")
}

func TestRetentionByAge(t *testing.T) {
	minute := Policy{RetentionMilli: ptr(60_000)}

	inALog(t, "MovesAGroupPastWhatItDidNotClaimInTimeAndReportsTheGap", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		setPolicy(t, l, minute)
		makeGroups(t, l, "slow", "fast")
		publish(t, l, testTopic, "a", "b", "c")
		claimFrom(t, l, "fast", 10)
		time.Sleep(30 * time.Second)
		publish(t, l, testTopic, "d")
		time.Sleep(29 * time.Second)
		require.Equal(t, int64(4), groupNamed(t, l, "slow").Lag, "nothing is old enough")
		time.Sleep(3 * time.Second)
		for l := range eachly(t, dir, l) {
			g := groupNamed(t, l, "slow")
			require.Equal(t, []uint64{1, 4, 3}, []uint64{uint64(g.Lag), g.Cursor, g.Skipped})
			require.Equal(t, []string{"d"}, payloads(claimFrom(t, l, "slow", 10)))
			require.Equal(t, uint64(0), groupNamed(t, l, "fast").Skipped)
		}
		require.Equal(t, 4, rows(t, l, testKey().Messages()), "the other group has them in flight")
	})

	inALog(t, "DropsWhatNobodyNeedsThen", func(in scene) {
		t, l := in.t, in.l
		setPolicy(t, l, minute)
		makeGroups(t, l, "g")
		publishN(t, l, testTopic, 2*limits.SweepPositions+100) // more than one step looks at
		time.Sleep(time.Minute + 3*time.Second)
		require.Zero(t, rows(t, l, testKey().Messages()))
		s := stats(t, l, testTopic)
		require.Zero(t, s.PinnedBytes)
		require.Equal(t, uint64(2*limits.SweepPositions+100), groupNamed(t, l, "g").Skipped)
		publish(t, l, testTopic, "next")
		require.Equal(t, []string{"next"}, payloads(claimFrom(t, l, "g", 10)))
	})

	inALog(t, "MovesAGroupPastMoreThanIsInMemory", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		setPolicy(t, l, minute)
		makeGroups(t, l, "g", "paused")
		require.NoError(t, l.PauseLane(t.Context(), testTenant, testTopic, "paused", true))
		publishN(t, l, testTopic, limits.WindowMessages+limits.SweepPositions)
		claimFrom(t, l, "g", 1) // reads ahead
		time.Sleep(30 * time.Second)
		publish(t, l, testTopic, "young")
		time.Sleep(32 * time.Second)
		for l := range eachly(t, dir, l) {
			require.Equal(t, int64(1), groupNamed(t, l, "g").Lag)
			require.Contains(t, payloads(claimFrom(t, l, "g", 2)), "young")
		}
	})

	inALog(t, "CountsOnlyWhatTheGroupStillWaitedFor", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		setPolicy(t, l, minute)
		makeGroups(t, l, "g")
		publish(t, l, testTopic, "a")
		publishWith(t, l, "expires", MessageOptions{TTL: time.Second})
		publish(t, l, testTopic, "b")
		time.Sleep(time.Minute + 3*time.Second)
		for l := range eachly(t, dir, l) {
			g := groupNamed(t, l, "g")
			require.Equal(t, []int64{0, 2, 1}, []int64{g.Lag, int64(g.Skipped), g.DeadLetters})
		}
	})

	inALog(t, "LooksAtABoundedNumberOfMessagesInAStep", func(in scene) {
		t, l := in.t, in.l
		makeGroups(t, l, "g")
		publishN(t, l, testTopic, limits.SweepPositions+1)
		storeUpToDate(t, l)
		synctest.Wait()
		list, more, err := l.committer.passAll(l.find(TopicName{testTenant, testTopic}), limits.SweepPositions+2, false, nil)
		require.NoError(t, err)
		require.True(t, more)
		require.Equal(t, []passed{{lane: "g", cursor: limits.SweepPositions + 1, count: limits.SweepPositions}}, list)
	})

	inALog(t, "NeverRemovesWhatIsLeasedWaitsForARetryOrIsDead", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		setPolicy(t, l, minute)
		makeGroups(t, l, "g")
		publish(t, l, testTopic, "leased", "retried", "dead", "fresh")
		d := claimFrom(t, l, "g", 3)
		_, err := l.Extend(t.Context(), d[0].Lease, time.Hour)
		require.NoError(t, err)
		require.NoError(t, l.Settle(t.Context(), []Settlement{
			{Lease: d[1].Lease, Verdict: Retry, Delay: 2 * time.Minute}, {Lease: d[2].Lease, Verdict: Bury},
		}, nil))
		time.Sleep(2 * time.Minute)
		require.Equal(t, 3, rows(t, l, testKey().Messages()))
		settle(t, l, d[0], Ack, "")
		for l := range eachly(t, dir, l) {
			require.Equal(t, []string{"retried"}, payloads(claimFrom(t, l, "g", 10)))
			_, err := l.Redrive(t.Context(), testTenant, testTopic, Redrive{})
			require.NoError(t, err)
			time.Sleep(2 * time.Second)
			require.Equal(t, []string{"dead"}, payloads(claimFrom(t, l, "g", 10)))
		}
	})

	inALog(t, "NeverTouchesTheDefaultLane", func(in scene) {
		t, l := in.t, in.l
		setPolicy(t, l, minute)
		publish(t, l, testTopic, "before")
		makeGroups(t, l, "g")
		setMode(t, l, LaneOn)
		publish(t, l, testTopic, "a")
		time.Sleep(2 * time.Minute)
		require.Zero(t, groupNamed(t, l, "g").Lag)
		require.Equal(t, []string{"before", "a"}, payloads(claim(t, l, testTopic, 10)))
	})

	for name, pause := range map[string]func(in scene, on bool){
		"ExemptsAPausedGroup": func(in scene, on bool) {
			require.NoError(in.t, in.l.PauseLane(in.t.Context(), testTenant, testTopic, "g", on))
		},
		"ExemptsAPausedTopic": func(in scene, on bool) {
			require.NoError(in.t, in.l.Pause(in.t.Context(), testTenant, testTopic, on))
		},
	} {
		inALog(t, name, func(in scene) {
			t, l := in.t, in.l
			setPolicy(t, l, minute)
			makeGroups(t, l, "g")
			publish(t, l, testTopic, "a")
			pause(in, true)
			time.Sleep(2 * time.Minute)
			require.Equal(t, int64(1), groupNamed(t, l, "g").Lag)
			pause(in, false)
			time.Sleep(3 * time.Second)
			require.Zero(t, groupNamed(t, l, "g").Lag)
		})
	}

	inALog(t, "CountsFromWhenAMessageBecameVisible", func(in scene) {
		t, l := in.t, in.l
		setPolicy(t, l, minute)
		makeGroups(t, l, "g")
		publishWith(t, l, "delayed", MessageOptions{Delay: 3 * time.Minute})
		time.Sleep(3*time.Minute + time.Second)
		publish(t, l, testTopic, "young")
		publishWith(t, l, "delayed too", MessageOptions{Delay: 50 * time.Second})
		time.Sleep(55 * time.Second)
		require.Equal(t, int64(3), groupNamed(t, l, "g").Lag)
		time.Sleep(10 * time.Second)
		require.Equal(t, []string{"delayed too"}, payloads(claimFrom(t, l, "g", 10)))
	})

	inALog(t, "OfADayIsTheDefault", func(in scene) {
		t, l := in.t, in.l
		p, err := l.Policy(testTenant, testTopic)
		require.NoError(t, err)
		require.Equal(t, PolicyValue{Value: limits.RetentionDuration.Milliseconds(), Set: true, Source: "default"}, p.RetentionMilli)
		require.False(t, p.RetentionBytes.Set)
	})
}

func TestRetentionByBytes(t *testing.T) {
	five := Policy{RetentionBytes: ptr(5000)}

	inALog(t, "MovesAGroupPastAsMuchAsIsTooMuch", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		setPolicy(t, l, five)
		makeGroups(t, l, "slow", "slower", "fast")
		for i := range 8 {
			publish(t, l, testTopic, kilo(fmt.Sprint(i)))
		}
		emptyLane(t, l, "fast")
		claimFrom(t, l, "slow", 1)
		time.Sleep(5 * time.Second)
		for l := range eachly(t, dir, l) {
			require.LessOrEqual(t, stats(t, l, testTopic).PinnedBytes, int64(5000))
			require.Equal(t, uint64(4), groupNamed(t, l, "slower").Skipped)
			require.Equal(t, uint64(3), groupNamed(t, l, "slow").Skipped)
			require.Equal(t, int64(4), groupNamed(t, l, "slower").Lag)
			require.Zero(t, groupNamed(t, l, "fast").Skipped)
		}
		require.Equal(t, "4 5 6 7", names(claimFrom(t, l, "slower", 10)))
	})

	inALog(t, "TakesNothingUpToTheCap", func(in scene) {
		t, l := in.t, in.l
		setPolicy(t, l, five)
		makeGroups(t, l, "g")
		for i := range 5 {
			publish(t, l, testTopic, kilo(fmt.Sprint(i)))
		}
		time.Sleep(5 * time.Second)
		require.Equal(t, int64(5), groupNamed(t, l, "g").Lag)
	})

	inALog(t, "CountsAPausedGroup", func(in scene) {
		t, l := in.t, in.l
		setPolicy(t, l, five)
		makeGroups(t, l, "g")
		require.NoError(t, l.PauseLane(t.Context(), testTenant, testTopic, "g", true))
		for i := range 8 {
			publish(t, l, testTopic, kilo(fmt.Sprint(i)))
		}
		time.Sleep(5 * time.Second)
		require.Equal(t, int64(5), groupNamed(t, l, "g").Lag)
	})

	inALog(t, "CountsNeitherTheDefaultLaneNorDeadLetters", func(in scene) {
		t, l := in.t, in.l
		setPolicy(t, l, five)
		makeGroups(t, l, "g")
		setMode(t, l, LaneOn)
		for i := range 8 {
			publish(t, l, testTopic, kilo(fmt.Sprint(i)))
		}
		time.Sleep(5 * time.Second)
		require.Zero(t, stats(t, l, testTopic).PinnedBytes)
		settleAll(t, l, claimFrom(t, l, "g", 2), Bury)
		emptyLane(t, l, "")
		time.Sleep(5 * time.Second)
		require.Equal(t, int64(5000), stats(t, l, testTopic).PinnedBytes)
		require.Equal(t, uint64(1), groupNamed(t, l, "g").Skipped)
		require.Equal(t, "3 4 5 6 7", names(claimFrom(t, l, "g", 10)))
		require.Len(t, deadLetters(t, l, DeadLetterFilter{}), 2)
	})

	inALog(t, "TakesWhatIsOnlyKeptBeforeItTakesFromAGroup", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		setPolicy(t, l, five)
		setPolicy(t, l, Policy{KeepMilli: ptr(time.Hour.Milliseconds())})
		makeGroups(t, l, "g")
		for i := range 7 {
			publish(t, l, testTopic, kilo(fmt.Sprint(i)))
		}
		settleAll(t, l, claimFrom(t, l, "g", 5), Ack)
		time.Sleep(5 * time.Second)
		for l := range eachly(t, dir, l) {
			require.Equal(t, int64(5000), stats(t, l, testTopic).PinnedBytes)
			require.Equal(t, int64(2), groupNamed(t, l, "g").Lag)
			require.Equal(t, 5, rows(t, l, testKey().Messages()), "the oldest are gone, and no more of them than that")
		}
		require.NoError(t, l.ResetGroup(t.Context(), testTenant, testTopic, "g", Start{}))
		require.Equal(t, "2 3 4 5 6", names(claimFrom(t, l, "g", 10)))
	})

	inALog(t, "TakesWhatIsKeptOfATopicWithoutGroups", func(in scene) {
		t, l := in.t, in.l
		setPolicy(t, l, five)
		setPolicy(t, l, Policy{KeepMilli: ptr(60_000)})
		for i := range 8 {
			publish(t, l, testTopic, kilo(fmt.Sprint(i)))
		}
		emptyLane(t, l, "")
		time.Sleep(5 * time.Second)
		require.Equal(t, 5, rows(t, l, testKey().Messages()))
		time.Sleep(2 * time.Minute)
		require.Zero(t, rows(t, l, testKey().Messages()), "the rest goes when its time is over")
	})
}

func TestCursorOfAGroup(t *testing.T) {
	inALog(t, "JumpsToTheFirstThatIsStoredAndNeverGoesBack", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		setPolicy(t, l, Policy{RetentionMilli: ptr(60_000)})
		makeGroups(t, l, "g")
		publishN(t, l, testTopic, 10)
		time.Sleep(2 * time.Minute)
		publish(t, l, testTopic, "x")
		setPolicy(t, l, Policy{RetentionMilli: ptr(time.Hour.Milliseconds())})
		cursor := groupNamed(t, l, "g").Cursor
		require.Equal(t, uint64(11), cursor)
		settleAll(t, l, claimFrom(t, l, "g", 1), Retry)
		for l := range eachly(t, dir, l) {
			require.Equal(t, cursor+1, groupNamed(t, l, "g").Cursor)
			require.NoError(t, l.ResetGroup(t.Context(), testTenant, testTopic, "g", Start{Kind: StartPosition, Position: 3}))
			require.Equal(t, cursor, groupNamed(t, l, "g").Cursor, "nothing is stored before")
			require.Equal(t, []string{"x"}, payloads(claimFrom(t, l, "g", 1)))
			require.Equal(t, uint64(10), groupNamed(t, l, "g").Skipped)
		}
	})
}
