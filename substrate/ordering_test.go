package substrate

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

// inAnOrderedLog runs a test on a log whose default lane is ordered.
func inAnOrderedLog(t *testing.T, name string, o Ordering, test func(scene)) {
	t.Helper()
	inALog(t, name, func(in scene) {
		require.NoError(in.t, in.l.SetOrdering(in.t.Context(), testTenant, testTopic, "", o))
		test(in)
	})
}

func TestOrderingByKey(t *testing.T) {
	inAnOrderedLog(t, "GivesAKeyToOneHolderAtATime", OrderKey, func(in scene) {
		t, l := in.t, in.l
		publishKeyed(t, l, "a1", "a2", "b1", "a3")
		a1 := claimOne(t, l, testTopic)
		require.Equal(t, []string{"b1"}, payloads(claim(t, l, testTopic, 10)))
		require.Empty(t, claim(t, l, testTopic, 10))
		s := stats(t, l, testTopic)
		require.Equal(t, []int64{0, 2, 2, 4}, []int64{s.Ready, s.Parked, s.Leased, s.Backlog()})
		settle(t, l, a1, Ack, "")
		require.Equal(t, []string{"a2", "a3"}, payloads(claim(t, l, testTopic, 10)))
		require.Zero(t, stats(t, l, testTopic).Parked)
	})

	inAnOrderedLog(t, "GivesConsecutiveMessagesToOneHolderInOrder", OrderKey, func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		publishKeyed(t, l, "a1", "b1", "a2", "a3", "b2")
		for l := range eachly(t, dir, l) {
			require.Equal(t, []string{"a1", "b1", "a2"}, payloads(claim(t, l, testTopic, 3)))
			require.Empty(t, claim(t, l, testTopic, 3), "the rest is behind them")
		}
	})

	inAnOrderedLog(t, "MessagesWithoutAKeyAreFree", OrderKey, func(in scene) {
		t, l := in.t, in.l
		publish(t, l, testTopic, "x", "y")
		require.Equal(t, []string{"x"}, payloads(claim(t, l, testTopic, 1)))
		require.Equal(t, []string{"y"}, payloads(claim(t, l, testTopic, 1)))
	})

	inAnOrderedLog(t, "WhatWasReleasedUnrunComesAfterTheOneThatFailed", OrderKey, func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		publishKeyed(t, l, "a1", "a2", "a3", "b1")
		d := claim(t, l, testTopic, 3)
		require.NoError(t, l.Settle(t.Context(), []Settlement{
			{Lease: d[0].Lease, Verdict: Retry, Delay: time.Minute},
			{Lease: d[1].Lease, Verdict: Release},
			{Lease: d[2].Lease, Verdict: Release},
		}, nil))
		require.Equal(t, []string{"b1"}, payloads(claim(t, l, testTopic, 10)), "the key waits for the retry")
		require.True(t, waits(t, l, ""))
		time.Sleep(time.Minute)
		for l := range eachly(t, dir, l) {
			for _, want := range []string{"a1 attempt 2", "a2 attempt 1", "a3 attempt 1"} {
				d := claim(t, l, testTopic, 10)
				i := slices.IndexFunc(d, func(d Delivery) bool { return d.Message.Options.OrderingKey == "a" })
				require.Equal(t, want, fmt.Sprintf("%s attempt %d", d[i].Message.Payload, d[i].Attempt))
				settleAll(t, l, d, Ack)
			}
		}
	})

	inAnOrderedLog(t, "BeatsPriority", OrderKey, func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		publishWith(t, l, "a1", MessageOptions{OrderingKey: "a"})
		publishWith(t, l, "a2", MessageOptions{OrderingKey: "a", Priority: 200})
		publishWith(t, l, "free", MessageOptions{Priority: 1})
		for l := range eachly(t, dir, l) {
			require.Equal(t, []string{"free", "a1", "a2"}, payloads(claim(t, l, testTopic, 10)))
		}
	})

	for _, v := range []Verdict{Ack, Bury} {
		inAnOrderedLog(t, "UnblocksTheKeyAfterEach"+v.String(), OrderKey, func(in scene) {
			t, dir, l := in.t, in.dir, in.l
			publishKeyed(t, l, "a1", "a2", "a3")
			first := claimOne(t, l, testTopic)
			require.Empty(t, claim(t, l, testTopic, 10))
			settle(t, l, first, v, "")
			for l := range eachly(t, dir, l) {
				require.Equal(t, []string{"a2"}, payloads(claim(t, l, testTopic, 1)))
				require.Empty(t, claim(t, l, testTopic, 1))
			}
		})
	}

	inAnOrderedLog(t, "AMessageThatIsOutOfAttemptsUnblocksTheKey", OrderKey, func(in scene) {
		t, l := in.t, in.l
		publishKeyed(t, l, "a1", "a2")
		for range 3 {
			settle(t, l, claimOne(t, l, testTopic), Retry, "")
		}
		r, err := l.Claim(t.Context(), claimRequest(testTopic, 10))
		require.NoError(t, err)
		require.Len(t, r.Buried, 1)
		require.Empty(t, r.Deliveries, "the next of the key waits for the next claim")
		require.Equal(t, []string{"a2"}, payloads(claim(t, l, testTopic, 10)))
	})

	inAnOrderedLog(t, "ALeaseThatRanOutGivesTheKeyToTheNextHolderInOrder", OrderKey, func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		publishKeyed(t, l, "a1", "a2", "a3")
		held := claim(t, l, testTopic, 2)
		time.Sleep(2 * time.Minute)
		for l := range eachly(t, dir, l) {
			require.Equal(t, "a1", string(claim(t, l, testTopic, 2)[0].Message.Payload))
			require.Empty(t, claim(t, l, testTopic, 2))
			require.ErrorIs(t, l.Settle(t.Context(), []Settlement{{Lease: held[0].Lease, Verdict: Ack}}, nil), ErrLeaseLost)
		}
	})

	inAnOrderedLog(t, "LeasesThatRanOutTogetherGoTogether", OrderKey, func(in scene) {
		t, l := in.t, in.l
		publishKeyed(t, l, "a1", "a2", "a3")
		claim(t, l, testTopic, 2)
		require.Empty(t, claim(t, l, testTopic, 2))
		time.Sleep(2 * time.Minute)
		require.Equal(t, []string{"a1", "a2"}, payloads(claim(t, l, testTopic, 10)))
		require.Empty(t, claim(t, l, testTopic, 10))
	})

	inAnOrderedLog(t, "ALaterLeaseThatRanOutWaitsForAnEarlierOneOfTheSameHolder", OrderKey, func(in scene) {
		t, l := in.t, in.l
		publishKeyed(t, l, "a1", "a2")
		held := claim(t, l, testTopic, 2)
		_, err := l.Extend(t.Context(), held[0].Lease, time.Hour)
		require.NoError(t, err)
		time.Sleep(2 * time.Minute)
		require.Empty(t, claim(t, l, testTopic, 10))
		require.True(t, waits(t, l, ""))
		require.ErrorIs(t, l.Settle(t.Context(), []Settlement{{Lease: held[1].Lease, Verdict: Ack}}, nil), ErrLeaseLost)
		settle(t, l, held[0], Ack, "")
		require.Equal(t, []string{"a2"}, payloads(claim(t, l, testTopic, 10)))
	})

	inAnOrderedLog(t, "AnEarlierLeaseThatRanOutWaitsForALaterOneOfTheSameHolder", OrderKey, func(in scene) {
		t, l := in.t, in.l
		publishKeyed(t, l, "a1", "a2", "a3")
		held := claim(t, l, testTopic, 2)
		_, err := l.Extend(t.Context(), held[1].Lease, time.Hour)
		require.NoError(t, err)
		time.Sleep(2 * time.Minute)
		require.Empty(t, claim(t, l, testTopic, 10))
		require.True(t, waits(t, l, ""))
		settle(t, l, held[1], Ack, "")
		require.Equal(t, []string{"a1"}, payloads(claim(t, l, testTopic, 10)))
	})

	inAnOrderedLog(t, "AnEarlierOneThatIsRetriedAfterALaterOneWasAckedStillComesFirst", OrderKey, func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		publishKeyed(t, l, "a1", "a2", "a3")
		held := claim(t, l, testTopic, 2)
		settle(t, l, held[1], Ack, "")
		require.Empty(t, claim(t, l, testTopic, 10), "the key is held still")
		settle(t, l, held[0], Retry, "")
		for l := range eachly(t, dir, l) {
			require.Equal(t, []string{"a1"}, payloads(claim(t, l, testTopic, 1)))
			require.Empty(t, claim(t, l, testTopic, 1))
		}
	})

	inAnOrderedLog(t, "AnEarlierOneThatIsRetriedWaitsForALaterOneThatIsHeld", OrderKey, func(in scene) {
		t, l := in.t, in.l
		publishKeyed(t, l, "a1", "a2")
		held := claim(t, l, testTopic, 2)
		settle(t, l, held[0], Retry, "")
		require.Empty(t, claim(t, l, testTopic, 10))
		require.True(t, waits(t, l, ""), "nobody polls")
		settle(t, l, held[1], Ack, "")
		require.Equal(t, []string{"a1"}, payloads(claim(t, l, testTopic, 10)))
	})

	inAnOrderedLog(t, "ARedrivenMessageTakesItsPlaceBeforeTheLaterOnes", OrderKey, func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		publishKeyed(t, l, "a1", "a2")
		settle(t, l, claimOne(t, l, testTopic), Bury, "")
		a2 := claimOne(t, l, testTopic)
		_, err := l.Redrive(t.Context(), testTenant, testTopic, Redrive{})
		require.NoError(t, err)
		require.Empty(t, claim(t, l, testTopic, 10))
		settle(t, l, a2, Retry, "")
		for l := range eachly(t, dir, l) {
			require.Equal(t, []string{"a1"}, payloads(claim(t, l, testTopic, 1)))
		}
	})

	inAnOrderedLog(t, "AParkedMessageExpiresInItsPlace", OrderKey, func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		publishKeyed(t, l, "a1")
		publishWith(t, l, "a2", MessageOptions{OrderingKey: "a", TTL: 10 * time.Second})
		publishKeyed(t, l, "a3")
		first := claimOne(t, l, testTopic)
		require.Empty(t, claim(t, l, testTopic, 10))
		time.Sleep(11 * time.Second)
		require.Equal(t, int64(1), stats(t, l, testTopic).Parked)
		require.Equal(t, ReasonTTLExpired, deadLetters(t, l, DeadLetterFilter{})[0].Reason)
		settle(t, l, first, Ack, "")
		for l := range eachly(t, dir, l) {
			require.Equal(t, []string{"a3"}, payloads(claim(t, l, testTopic, 10)))
		}
	})

	inAnOrderedLog(t, "AParkedMessageThatExpiresWhenItsTurnHasComeUnblocksTheKey", OrderKey, func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		publishKeyed(t, l, "a1")
		publishWith(t, l, "a2", MessageOptions{OrderingKey: "a", TTL: 10 * time.Second})
		publishKeyed(t, l, "a3")
		first := claimOne(t, l, testTopic)
		require.Empty(t, claim(t, l, testTopic, 10))
		settle(t, l, first, Ack, "")
		time.Sleep(11 * time.Second)
		for l := range eachly(t, dir, l) {
			require.Equal(t, []string{"a3"}, payloads(claim(t, l, testTopic, 10)))
		}
	})

	inAnOrderedLog(t, "AWaitingMessageSleepsWhileARedrivenOneComesFirst", OrderKey, func(in scene) {
		t, l := in.t, in.l
		publishKeyed(t, l, "a1", "a2")
		settle(t, l, claimOne(t, l, testTopic), Bury, "")
		settle(t, l, claimOne(t, l, testTopic), Retry, "")
		_, err := l.Redrive(t.Context(), testTenant, testTopic, Redrive{})
		require.NoError(t, err)
		held := claim(t, l, testTopic, 10)
		require.Equal(t, []string{"a1"}, payloads(held))
		require.True(t, waits(t, l, ""), "nobody polls")
		settle(t, l, held[0], Ack, "")
		require.Equal(t, []string{"a2"}, payloads(claim(t, l, testTopic, 10)))
	})

	inAnOrderedLog(t, "ForgetsKeysThatAreDone", OrderKey, func(in scene) {
		t, l := in.t, in.l
		publishKeyed(t, l, "a1", "a2", "b1", "c1", "d1")
		first := claim(t, l, testTopic, 1)
		require.Len(t, claim(t, l, testTopic, 10), 3)
		settleAll(t, l, first, Ack)
		require.NoError(t, l.SetOrdering(t.Context(), testTenant, testTopic, "", OrderTopic))
		setMode(t, l, LaneOff)
		ln := l.find(TopicName{testTenant, testTopic}).work
		l.mu.Lock()
		defer l.mu.Unlock()
		require.Empty(t, ln.keys)
		require.Zero(t, ln.timers.len()+ln.runnable.len()+ln.ages.len())
		require.Empty(t, ln.parked)
	})

	inAnOrderedLog(t, "AParkedMessageExpiresUnderTheKeyThatItWasParkedBy", OrderKey, func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		publishKeyed(t, l, "a1")
		publishWith(t, l, "a2", MessageOptions{OrderingKey: "a", TTL: 10 * time.Second})
		publishKeyed(t, l, "a3")
		first := claimOne(t, l, testTopic)
		require.Empty(t, claim(t, l, testTopic, 10))
		require.NoError(t, l.SetOrdering(t.Context(), testTenant, testTopic, "", OrderTopic))
		publish(t, l, testTopic, "x")
		require.Equal(t, []string{"x"}, payloads(claim(t, l, testTopic, 10)))
		time.Sleep(11 * time.Second)
		settle(t, l, first, Ack, "")
		require.Equal(t, int64(1), stats(t, l, testTopic).Parked)
		require.Contains(t, payloads(claim(t, reopenCrashed(t, dir), testTopic, 10)), "a3")
		require.Equal(t, []string{"a3"}, payloads(claim(t, l, testTopic, 10)))
	})

	inAnOrderedLog(t, "HoldsForWhatIsMetAfterAChange", OrderKey, func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		publishKeyed(t, l, "a1", "a2")
		first := claimOne(t, l, testTopic)
		require.Empty(t, claim(t, l, testTopic, 10), "parks the second")
		require.NoError(t, l.SetOrdering(t.Context(), testTenant, testTopic, "", OrderNone))
		publishKeyed(t, l, "a3", "a4")
		require.Equal(t, []string{"a3"}, payloads(claim(t, l, testTopic, 1)), "nothing blocks it")
		require.Equal(t, []string{"a4"}, payloads(claim(t, l, testTopic, 10)), "the parked one still waits")
		settle(t, l, first, Ack, "")
		require.Contains(t, payloads(claim(t, reopenCrashed(t, dir), testTopic, 10)), "a2")
		require.Equal(t, []string{"a2"}, payloads(claim(t, l, testTopic, 10)))
	})

	inAnOrderedLog(t, "OfADefaultLaneAndOfGroupsAreTheirOwn", OrderNone, func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		makeGroup(t, l, "ordered", GroupOptions{Ordering: OrderKey})
		makeGroup(t, l, "free", GroupOptions{})
		publishKeyed(t, l, "a1", "a2")
		for l := range eachly(t, dir, l) {
			require.Equal(t, OrderKey, groupNamed(t, l, "ordered").Ordering)
			for lane, second := range map[string][]string{"ordered": nil, "free": {"a2"}} {
				require.Equal(t, []string{"a1"}, payloads(claimFrom(t, l, lane, 1)))
				require.Equal(t, second, payloads(claimFrom(t, l, lane, 1)), lane)
			}
		}
	})

	inAnOrderedLog(t, "ShowsWhatIsParked", OrderKey, func(in scene) {
		t, l := in.t, in.l
		publishKeyed(t, l, "a1", "a2", "a3")
		claim(t, l, testTopic, 1)
		claim(t, l, testTopic, 1)
		publish(t, l, testTopic, "x")
		peeked, err := l.Peek(t.Context(), testTenant, testTopic, "", 0, 10)
		require.NoError(t, err)
		var seen []string
		for _, p := range peeked {
			seen = append(seen, p.State+" "+string(p.Message.Payload))
		}
		require.Equal(t, []string{"leased a1", "parked a2", "parked a3", "ready x"}, seen)
	})

	t.Run("OfAnUnknownKindOrLaneIsRefused", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		require.ErrorContains(t, l.SetOrdering(t.Context(), testTenant, testTopic, "", OrderTopic+1), "want none, by key or by topic")
		require.ErrorIs(t, l.SetOrdering(t.Context(), testTenant, testTopic, "g", OrderKey), ErrNoGroup)
	})
}

func TestOrderingByTopic(t *testing.T) {
	inAnOrderedLog(t, "GivesTheWholeTopicToOneHolderAtATimeInOrder", OrderTopic, func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		publish(t, l, testTopic, "1", "2")
		publishWith(t, l, "3", MessageOptions{OrderingKey: "k"})
		held := claim(t, l, testTopic, 2)
		require.Equal(t, []string{"1", "2"}, payloads(held))
		require.Empty(t, claim(t, l, testTopic, 10))
		require.True(t, waits(t, l, ""))
		settle(t, l, held[0], Ack, "")
		require.Empty(t, claim(t, l, testTopic, 10))
		settle(t, l, held[1], Retry, "")
		for l := range eachly(t, dir, l) {
			require.Equal(t, []string{"2"}, payloads(claim(t, l, testTopic, 1)))
			require.Empty(t, claim(t, l, testTopic, 1))
		}
	})

	inAnOrderedLog(t, "ParksNothing", OrderTopic, func(in scene) {
		t, l := in.t, in.l
		publishN(t, l, testTopic, 100)
		claim(t, l, testTopic, 1)
		require.Empty(t, claim(t, l, testTopic, 10))
		require.Zero(t, stats(t, l, testTopic).Parked)
		require.Equal(t, int64(99), stats(t, l, testTopic).Ready)
	})
}

func TestWaitForAKey(t *testing.T) {
	inAnOrderedLog(t, "EndsWhenItIsFreed", OrderKey, func(in scene) {
		t, l := in.t, in.l
		publishKeyed(t, l, "a1", "a2")
		first := claimOne(t, l, testTopic)
		require.Empty(t, claim(t, l, testTopic, 10))
		woken := waiter(t, l, "")
		time.Sleep(time.Second)
		require.Empty(t, woken)
		settle(t, l, first, Ack, "")
		require.NoError(t, <-woken)
		require.Equal(t, []string{"a2"}, payloads(claim(t, l, testTopic, 10)))
	})

	inAnOrderedLog(t, "EndsWithTheLeaseThatHoldsIt", OrderKey, func(in scene) {
		t, l := in.t, in.l
		publishKeyed(t, l, "a1", "a2")
		claimOne(t, l, testTopic)
		require.Empty(t, claim(t, l, testTopic, 10))
		start := time.Now()
		require.NoError(t, l.WaitReady(t.Context(), testTenant, testTopic, ""))
		require.Equal(t, time.Minute, time.Since(start))
	})

	inAnOrderedLog(t, "EndsWithThePublishOfAnotherKey", OrderKey, func(in scene) {
		t, l := in.t, in.l
		publishKeyed(t, l, "a1", "a2")
		claimOne(t, l, testTopic)
		require.Empty(t, claim(t, l, testTopic, 10))
		woken := waiter(t, l, "")
		require.Empty(t, woken)
		publishKeyed(t, l, "b1")
		require.NoError(t, <-woken)
		require.Equal(t, []string{"b1"}, payloads(claim(t, l, testTopic, 10)))
	})
}

// TestParkedMessages uses a state of a lane that was made by hand, and none of a log.
func TestParkedMessages(t *testing.T) {
	// crowded returns a lane in which many messages are parked behind a few keys that are held, and behind one that is free.
	crowded := func(n int) *lane {
		tp := newTopic(TopicName{testTenant, testTopic})
		ln := tp.work
		ln.ordering = OrderKey
		const keys = 10
		position := uint64(0)
		for key := uint64(1); key <= keys; key++ {
			position++
			ln.addFlight(&flight{position: position, leased: true, at: int64(time.Hour), key: key, attempt: 1})
		}
		for range n {
			position++
			ln.park(position, position%(keys+1)+1) // the last key is nobody's
		}
		position++
		ln.base().jump(position, 0, positions{})
		for range 20 {
			ln.base().offer(&entry{position: position, origin: origin{order: 1000 + position}})
			position++
		}
		return ln
	}
	request := ClaimRequest{MaxMessages: 10, MaxBytes: 100, Lease: time.Minute, MaxAttempts: 3}
	// steps counts what a claim allocates, which is one thing for each flight, key or message that it looks at.
	steps := func(ln *lane) float64 {
		return testing.AllocsPerRun(10, func() { planClaim(ln, request, time.Unix(0, 1)) })
	}

	t.Run("CostAClaimNothing", func(t *testing.T) {
		many := 1_000_000
		if testing.Short() {
			many = 100_000
		}
		few, crowd := crowded(100), crowded(many)
		require.Equal(t, int64(many), crowd.parkedN)
		p := planClaim(crowd, request, time.Unix(0, 1))
		require.Len(t, p.taken, 10)
		require.LessOrEqual(t, steps(crowd), steps(few))
		l := &Log{state: newState()}
		require.Len(t, l.wantedParked(crowd, 10), 1, "of the one key that is free")
		for _, positions := range l.wantedParked(crowd, 10) {
			require.Len(t, positions, 10, "what is read from the store")
		}
	})

	inAnOrderedLog(t, "AreMetOnce", OrderKey, func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		n := 3 * limits.WindowMessages
		publishKeyed(t, l, "a0")
		var msgs []Message
		for i := range n {
			m := l.newMessage(testTopic, fmt.Sprintf("a%06d", i))
			m.Options.OrderingKey = "a"
			msgs = append(msgs, m)
		}
		_, err := l.Publish(t.Context(), msgs...)
		require.NoError(t, err)
		first := claimOne(t, l, testTopic)
		publishKeyed(t, l, "b1")
		storeUpToDate(t, l)
		require.Equal(t, []string{"b1"}, payloads(claim(t, l, testTopic, 1)), "one claim goes past all of them")
		require.Equal(t, int64(n), stats(t, l, testTopic).Parked)
		require.Equal(t, n+2, rows(t, l, testKey().Lanes("")))
		settle(t, l, first, Ack, "")
		next := reopenCrashed(t, dir)
		require.Equal(t, int64(n), stats(t, next, testTopic).Parked)
		require.Equal(t, "a000000", string(claim(t, next, testTopic, 2)[1].Message.Payload))
		require.Equal(t, int64(n), stats(t, l, testTopic).Parked)
		for i := 0; i < n; {
			d := claim(t, l, testTopic, 500)
			require.NotEmpty(t, d)
			for _, d := range d {
				require.Equal(t, fmt.Sprintf("a%06d", i), string(d.Message.Payload))
				i++
			}
			settleAll(t, l, d, Ack)
		}
	})

	t.Run("AreBoundedAndThenTheLaneWaitsAtTheNext", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := openLog(t, t.TempDir())
			require.NoError(t, l.SetOrdering(t.Context(), testTenant, testTopic, "", OrderKey))
			publishKeyed(t, l, "a1", "a2", "a3", "b1")
			first := claimOne(t, l, testTopic)
			ln := l.find(TopicName{testTenant, testTopic}).work
			l.mu.Lock()
			ln.parkedN = limits.ParkedMessages - 1
			l.mu.Unlock()
			require.Empty(t, claim(t, l, testTopic, 10))
			require.Equal(t, int64(limits.ParkedMessages), stats(t, l, testTopic).Parked, "one more, and no more")
			require.Equal(t, int64(2), stats(t, l, testTopic).Ready)
			require.Empty(t, claim(t, l, testTopic, 10))
			require.True(t, waits(t, l, ""), "nobody polls")
			settle(t, l, first, Ack, "")
			require.Equal(t, []string{"a2", "a3", "b1"}, payloads(claim(t, l, testTopic, 10)))
		})
	})
}
