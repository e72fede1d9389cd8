package substrate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

func TestDefaultLane(t *testing.T) {
	inALog(t, "IsOwedWhatWasPublishedBeforeTheFirstGroup", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		publish(t, l, testTopic, "a", "b")
		makeGroups(t, l, "g")
		publish(t, l, testTopic, "c")
		for l := range eachly(t, dir, l) {
			require.Equal(t, int64(2), stats(t, l, testTopic).Ready, "registering revokes nothing, and owes no more")
			require.Equal(t, []string{"a", "b"}, payloads(claim(t, l, testTopic, 10)))
			require.Equal(t, []string{"a", "b", "c"}, emptyLane(t, l, "g"))
		}
	})

	inALog(t, "ThatWasClaimedFromIsOwedAllBesideGroups", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		publish(t, l, testTopic, "a")
		emptyLane(t, l, "")
		makeGroups(t, l, "g")
		publish(t, l, testTopic, "b")
		for l := range eachly(t, dir, l) {
			publish(t, l, testTopic, "c")
			require.Equal(t, []string{"b", "c"}, emptyLane(t, l, ""))
		}
	})

	inALog(t, "ThatIsClaimedFromBesideGroupsIsOwedAllFromThenOn", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		makeGroups(t, l, "g")
		publish(t, l, testTopic, "a")
		require.Empty(t, claim(t, l, testTopic, 10))
		publish(t, l, testTopic, "b")
		for l := range eachly(t, dir, l) {
			require.Equal(t, []string{"b"}, payloads(claim(t, l, testTopic, 10)))
			publish(t, l, testTopic, "c")
			require.Equal(t, []string{"c"}, payloads(claim(t, l, testTopic, 10)))
		}
	})

	inALog(t, "AsksAWaiterToClaimOnceWhereOnlyThatMakesItOwed", func(in scene) {
		t, l := in.t, in.l
		woken := waiter(t, l, "")
		require.Empty(t, woken)
		makeGroups(t, l, "g")
		require.NoError(t, <-woken, "a consumer of the default lane is there")
		require.Empty(t, claim(t, l, testTopic, 10))
		woken = waiter(t, l, "")
		require.Empty(t, woken, "once")
		publish(t, l, testTopic, "a")
		require.NoError(t, <-woken)
		require.Equal(t, []string{"a"}, payloads(claim(t, l, testTopic, 10)))
	})

	inALog(t, "IsOwedAllAgainWhenTheLastGroupIsGone", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		makeGroups(t, l, "g", "h")
		publish(t, l, testTopic, "a")
		require.NoError(t, l.DeleteGroup(t.Context(), testTenant, testTopic, "g"))
		publish(t, l, testTopic, "b")
		require.NoError(t, l.DeleteGroup(t.Context(), testTenant, testTopic, "h"))
		publish(t, l, testTopic, "c")
		require.Equal(t, 1, stored(t, l))
		for l := range eachly(t, dir, l) {
			require.Equal(t, []string{"c"}, payloads(claim(t, l, testTopic, 10)))
		}
	})

	inALog(t, "ThatIsOnIsOwedAll", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		require.Zero(t, setMode(t, l, LaneOn))
		makeGroups(t, l, "g")
		publish(t, l, testTopic, "a")
		for l := range eachly(t, dir, l) {
			publish(t, l, testTopic, "b")
			require.Equal(t, []string{"a", "b"}, payloads(claim(t, l, testTopic, 10)))
		}
	})

	inALog(t, "ThatIsOffDropsWhatItHasButForDeadLettersAndSaysHowMuch", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		require.NoError(t, l.SetOrdering(t.Context(), testTenant, testTopic, "", OrderKey))
		publishKeyed(t, l, "a1", "a2", "b1", "c1")
		held := claim(t, l, testTopic, 1)
		d := claim(t, l, testTopic, 2) // parks the second
		settle(t, l, d[0], Bury, "")
		settle(t, l, d[1], Retry, "")
		publishKeyed(t, l, "d1")
		require.Equal(t, int64(4), setMode(t, l, LaneOff))
		require.ErrorIs(t, l.Settle(t.Context(), []Settlement{{Lease: held[0].Lease, Verdict: Ack}}, nil), ErrLeaseLost)
		publish(t, l, testTopic, "not owed")
		require.Equal(t, 1, stored(t, l))
		for l := range eachly(t, dir, l) {
			_, err := l.Claim(t.Context(), claimRequest(testTopic, 1))
			require.ErrorIs(t, err, ErrLaneOff)
			require.Zero(t, stats(t, l, testTopic).Backlog())
			require.Len(t, deadLetters(t, l, DeadLetterFilter{}), 1)
			require.Zero(t, setMode(t, l, LaneOff), "again")
		}
	})

	inALog(t, "ThatIsOffRefusesToTakeDeadLettersBack", func(in scene) {
		t, l := in.t, in.l
		publish(t, l, testTopic, "a", "b")
		settleAll(t, l, claim(t, l, testTopic, 2), Bury)
		setMode(t, l, LaneOff)
		makeGroups(t, l, "g")
		settleAll(t, l, claimFrom(t, l, "g", 1), Bury)
		r, err := l.Redrive(t.Context(), testTenant, testTopic, Redrive{})
		require.NoError(t, err)
		require.Equal(t, RedriveResult{Moved: 1, Refused: 2}, r)
		require.Len(t, deadLetters(t, l, DeadLetterFilter{}), 2)
		require.Equal(t, []string{"a"}, func() []string {
			d, err := l.Claim(t.Context(), laneRequest("g", 1))
			require.NoError(t, err)
			return payloads(d.Deliveries)
		}())
		setMode(t, l, LaneAuto)
		r, err = l.Redrive(t.Context(), testTenant, testTopic, Redrive{})
		require.NoError(t, err)
		require.Equal(t, RedriveResult{Moved: 2}, r)
		require.Equal(t, []string{"a", "b"}, payloads(claim(t, l, testTopic, 10)))
	})

	inALog(t, "ThatIsTurnedOnAgainIsOwedWhatComesFromThenOn", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		makeGroups(t, l, "g")
		setMode(t, l, LaneOn)
		publish(t, l, testTopic, "a")
		setMode(t, l, LaneOff)
		publish(t, l, testTopic, "b")
		setMode(t, l, LaneOn)
		publish(t, l, testTopic, "c")
		setMode(t, l, LaneOff)
		setMode(t, l, LaneAuto)
		publish(t, l, testTopic, "d")
		for l := range eachly(t, dir, l) {
			require.Empty(t, claim(t, l, testTopic, 10), "auto, with a group, and never claimed")
			publish(t, l, testTopic, "e")
			require.Equal(t, []string{"e"}, payloads(claim(t, l, testTopic, 10)))
			require.Equal(t, []string{"a", "b", "c", "d", "e"}, emptyLane(t, l, "g"))
		}
	})

	inALog(t, "HopsOverWhatItWasNotOwed", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		makeGroups(t, l, "g")
		setMode(t, l, LaneOn)
		var want []string
		for _, name := range []string{"a", "b", "c"} {
			publish(t, l, testTopic, name)
			want = append(want, name)
			require.NoError(t, l.submit(t.Context(), &request{bytes: groupBytes, plan: func(time.Time) (frame, error) {
				return &modeFrame{name: TopicName{testTenant, testTopic}, mode: LaneOn}, nil
			}}))
			publish(t, l, testTopic, "not "+name)
			setMode(t, l, LaneOn)
		}
		for l := range eachly(t, dir, l) {
			require.Equal(t, int64(3), stats(t, l, testTopic).Ready)
			require.Equal(t, want, emptyLane(t, l, ""))
			require.Len(t, emptyLane(t, l, "g"), 6)
		}
	})

	inALog(t, "IsTurnedOnAndOffBeforeItsBacklogOnlySoOften", func(in scene) {
		t, l := in.t, in.l
		publish(t, l, testTopic, "backlog")
		made := 0
		var err error
		for ; err == nil && made <= limits.SkippedSpans; made++ {
			if _, _, err = l.CreateGroup(t.Context(), testTenant, testTopic, "g", GroupOptions{}); err != nil {
				break
			}
			publish(t, l, testTopic, "x")
			require.NoError(t, l.DeleteGroup(t.Context(), testTenant, testTopic, "g"))
		}
		require.Equal(t, limits.SkippedSpans, made)
		require.Error(t, err)
		emptyLane(t, l, "")
		setMode(t, l, LaneOff)
	})

	inALog(t, "OfAnUnknownModeIsRefused", func(in scene) {
		t, l := in.t, in.l
		_, err := l.SetLaneMode(t.Context(), testTenant, testTopic, LaneOff+1)
		require.ErrorContains(t, err, "mode 3: want auto, on or off")
		require.Empty(t, l.Topics())
	})
}
