package substrate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

func TestResetGroup(t *testing.T) {
	inALog(t, "MovesTheCursorBackAndForth", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		makeGroups(t, l, "g", "holds")
		publish(t, l, testTopic, "a", "b", "c")
		require.Len(t, emptyLane(t, l, "g"), 3)
		require.NoError(t, l.ResetGroup(t.Context(), testTenant, testTopic, "g", Start{Kind: StartPosition, Position: 2}))
		for l := range eachly(t, dir, l) {
			require.Equal(t, int64(2), groupNamed(t, l, "g").Lag)
			require.Equal(t, []string{"b"}, payloads(claimFrom(t, l, "g", 1)))
		}
		require.NoError(t, l.ResetGroup(t.Context(), testTenant, testTopic, "g", Start{Kind: StartLatest}))
		require.Empty(t, claimFrom(t, l, "g", 1))
		require.NoError(t, l.ResetGroup(t.Context(), testTenant, testTopic, "g", Start{}))
		require.Equal(t, []string{"a", "b", "c"}, emptyLane(t, l, "g"))
		require.Equal(t, []string{"a", "b", "c"}, emptyLane(t, l, "holds"), "other groups are not affected")
	})

	inALog(t, "EndsLeasesAndWhatIsParkedOrWaits", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		makeGroup(t, l, "g", GroupOptions{Ordering: OrderKey})
		publishKeyed(t, l, "a1", "a2", "a3", "b1")
		held := claimFrom(t, l, "g", 1)
		settleAll(t, l, claimFrom(t, l, "g", 10), Retry)
		require.NoError(t, l.ResetGroup(t.Context(), testTenant, testTopic, "g", Start{Kind: StartPosition, Position: 2}))
		require.ErrorIs(t, l.Settle(t.Context(), []Settlement{{Lease: held[0].Lease, Verdict: Ack}}, nil), ErrLeaseLost)
		require.Equal(t, 3, stored(t, l), "nobody needs the first any more")
		for l := range eachly(t, dir, l) {
			g := groupNamed(t, l, "g")
			require.Equal(t, []int64{3, 0}, []int64{g.Lag, g.InFlight})
			require.Equal(t, []string{"a2", "a3", "b1"}, payloads(claimFrom(t, l, "g", 10)))
		}
	})

	inALog(t, "LeavesDeadLettersWhichAreNotDeliveredAgain", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		makeGroups(t, l, "g", "holds")
		publish(t, l, testTopic, "a", "b", "c")
		d := claimFrom(t, l, "g", 3)
		settle(t, l, d[1], Bury, "why")
		require.NoError(t, l.ResetGroup(t.Context(), testTenant, testTopic, "g", Start{}))
		for l := range eachly(t, dir, l) {
			require.Equal(t, int64(2), groupNamed(t, l, "g").Lag)
			require.Equal(t, []string{"a", "c"}, emptyLane(t, l, "g"))
			require.Len(t, deadLetters(t, l, DeadLetterFilter{}), 1)
			_, err := l.Redrive(t.Context(), testTenant, testTopic, Redrive{})
			require.NoError(t, err)
			require.Equal(t, []string{"b"}, emptyLane(t, l, "g"))
		}
	})

	inALog(t, "WithMoreInFlightThanOneStepEnds", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		makeGroups(t, l, "g")
		n := limits.SweepPositions + 100
		publishN(t, l, testTopic, n)
		for held := 0; held < n; {
			held += len(claimFrom(t, l, "g", 500))
		}
		require.NoError(t, l.ResetGroup(t.Context(), testTenant, testTopic, "g", Start{}))
		require.Equal(t, Group{Name: "g", Cursor: 1, Lag: int64(n), Oldest: groupNamed(t, l, "g").Oldest}, groupNamed(t, l, "g"))
		require.Len(t, emptyLane(t, reopenCrashed(t, dir), "g"), n)
		require.Len(t, emptyLane(t, l, "g"), n)
	})

	inALog(t, "IsRefusedWithTooManyDeadLettersAhead", func(in scene) {
		t, l := in.t, in.l
		makeGroups(t, l, "g")
		n := limits.DeadAside + 1
		msgs := make([]Message, n)
		for i := range msgs {
			msgs[i] = l.newMessage(testTopic, "")
		}
		for len(msgs) > 0 {
			some := min(len(msgs), 2048)
			_, err := l.Publish(t.Context(), msgs[:some]...)
			require.NoError(t, err)
			msgs = msgs[some:]
		}
		ln := l.find(TopicName{testTenant, testTopic}).groups["g"]
		l.mu.Lock()
		for p := range n {
			ln.dead.add(uint64(p + 1))
		}
		l.mu.Unlock()
		over := new(limits.Error)
		require.ErrorAs(t, l.ResetGroup(t.Context(), testTenant, testTopic, "g", Start{}), &over)
		require.Equal(t, limits.Error{Name: "dead letters of a group that is reset", Limit: limits.DeadAside, Actual: limits.DeadAside + 1}, *over)
		require.NoError(t, l.ResetGroup(t.Context(), testTenant, testTopic, "g", Start{Kind: StartPosition, Position: 2}))
	})
}

func TestDeleteGroup(t *testing.T) {
	inALog(t, "TakesItsDeadLettersAndWhatOnlyItNeeded", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		makeGroups(t, l, "g", "holds")
		publish(t, l, testTopic, "a", "b", "c", "d")
		d := claimFrom(t, l, "g", 3)
		settle(t, l, d[0], Bury, "")
		settle(t, l, d[1], Retry, "")
		settleAll(t, l, claimFrom(t, l, "holds", 2), Bury)
		settleAll(t, l, claimFrom(t, l, "holds", 1), Ack)
		require.NoError(t, l.DeleteGroup(t.Context(), testTenant, testTopic, "g"))
		require.ErrorIs(t, l.Settle(t.Context(), []Settlement{{Lease: d[2].Lease, Verdict: Ack}}, nil), ErrLeaseLost)
		_, err := l.Claim(t.Context(), laneRequest("g", 1))
		require.ErrorIs(t, err, ErrNoGroup)
		require.Equal(t, 3, stored(t, l), "two dead letters of the other, and one that it is owed")
		require.Equal(t, 1, rows(t, l, testKey().Groups()))
		require.Zero(t, rows(t, l, testKey().Lanes("g"))+rows(t, l, testKey().DeadLetters("g")))
		for l := range eachly(t, dir, l) {
			require.Len(t, deadLetters(t, l, DeadLetterFilter{}), 2)
			require.Equal(t, []string{"d"}, emptyLane(t, l, "holds"))
			makeGroup(t, l, "g", GroupOptions{Start: Start{Kind: StartLatest}})
			require.Empty(t, claimFrom(t, l, "g", 1), "a new one of its name begins anew")
			require.Empty(t, deadLetters(t, l, DeadLetterFilter{LaneSet: true, Lane: "g"}))
		}
	})

	inALog(t, "GoesOnAfterACrashInBetween", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		makeGroups(t, l, "g", "holds")
		publish(t, l, testTopic, "a", "b")
		settle(t, l, claimFrom(t, l, "g", 1)[0], Bury, "")
		require.NoError(t, l.submit(t.Context(), &request{bytes: groupBytes, plan: func(time.Time) (frame, error) {
			return &laneFrame{name: laneName{TopicName{testTenant, testTopic}, "g"}, closing: true}, nil
		}}))
		crashed := crash(t, dir) // what DeleteGroup does first
		storeUpToDate(t, l)
		for _, dir := range []string{crashed, crash(t, dir)} {
			n := openLog(t, dir)
			require.Equal(t, 2, stored(t, n))
			require.Equal(t, 1, stats(t, n, testTopic).Groups)
			require.Empty(t, deadLetters(t, n, DeadLetterFilter{}))
			makeGroup(t, n, "g", GroupOptions{Start: Start{Kind: StartLatest}})
		}
	})

	inALog(t, "LeavesTheCountOfPinnedBytesExact", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		makeGroups(t, l, "g", "holds")
		publish(t, l, testTopic, "0123456789", "01234")
		settle(t, l, claimFrom(t, l, "g", 1)[0], Bury, "")
		settle(t, l, claimFrom(t, l, "holds", 1)[0], Ack, "")
		require.Equal(t, int64(5), stats(t, l, testTopic).PinnedBytes, "a dead letter is not pinned")
		require.NoError(t, l.DeleteGroup(t.Context(), testTenant, testTopic, "g"))
		require.Equal(t, 1, stored(t, l))
		for l := range eachly(t, dir, l) {
			require.Equal(t, int64(5), stats(t, l, testTopic).PinnedBytes)
		}
		emptyLane(t, l, "holds")
		require.Zero(t, stats(t, l, testTopic).PinnedBytes)
	})

	inALog(t, "LeavesTheEndOfAMessageThatAnotherLaneStillHas", func(in scene) {
		t, l := in.t, in.l
		makeGroups(t, l, "g")
		setMode(t, l, LaneOn)
		publishWith(t, l, "a", MessageOptions{Priority: 5, TTL: time.Minute})
		settle(t, l, claimFrom(t, l, "g", 1)[0], Bury, "")
		require.NoError(t, l.DeleteGroup(t.Context(), testTenant, testTopic, "g"))
		time.Sleep(2 * time.Minute)
		require.Equal(t, ReasonTTLExpired, deadLetters(t, l, DeadLetterFilter{})[0].Reason)
	})
}
