package substrate

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

// publishLevels publishes one message for each priority, named by it and by when it came.
func publishLevels(t *testing.T, l *Log, levels ...uint8) {
	t.Helper()
	for i, p := range levels {
		publishWith(t, l, fmt.Sprintf("%d:%d", p, i), MessageOptions{Priority: p})
	}
}

func TestPriority(t *testing.T) {
	inALog(t, "HigherOnesComeFirstAndAmongEqualsThoseThatCameFirst", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		publishLevels(t, l, 0, 5, 255, 5, 0, 9)
		want := []string{"255:2", "9:5", "5:1", "5:3", "0:0", "0:4"}
		for l := range eachly(t, dir, l) {
			require.Equal(t, want[:3], payloads(claim(t, l, testTopic, 3)))
			require.Equal(t, want[3:], payloads(claim(t, l, testTopic, 10)))
		}
	})

	inALog(t, "ALaterOneOvertakesABacklogThatIsNotInMemory", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		publishN(t, l, testTopic, limits.WindowMessages+10)
		claim(t, l, testTopic, 1)
		storeUpToDate(t, l)
		publishLevels(t, l, 1)
		for l := range eachly(t, dir, l) {
			require.Contains(t, payloads(claim(t, l, testTopic, 2)), "1:0")
		}
	})

	inALog(t, "LowerOnesWaitForMoreHigherOnesThanAreInMemory", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		publishLevels(t, l, 0)
		var msgs []Message
		for i := range limits.WindowMessages + 10 {
			m := l.newMessage(testTopic, fmt.Sprint("high ", i))
			m.Options.Priority = 2
			msgs = append(msgs, m)
		}
		_, err := l.Publish(t.Context(), msgs...)
		require.NoError(t, err)
		for l := range eachly(t, dir, l) {
			var got []string
			for range 12 { // more than what is in memory
				got = append(got, payloads(claim(t, l, testTopic, 70))...)
			}
			require.Len(t, got, len(msgs)+1)
			require.Equal(t, "0:0", got[len(msgs)])
			require.Equal(t, fmt.Sprint("high ", len(msgs)-1), got[len(msgs)-1])
		}
	})

	inALog(t, "CountsForNothingInAGroup", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		makeGroups(t, l, "g")
		publishLevels(t, l, 0, 5, 255)
		for l := range eachly(t, dir, l) {
			require.Equal(t, []string{"0:0", "5:1", "255:2"}, payloads(claimFrom(t, l, "g", 10)))
		}
	})

	inALog(t, "CountsForNothingBesideAnOrderingKey", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		publish(t, l, testTopic, "first")
		publishWith(t, l, "keyed", MessageOptions{Priority: 200, OrderingKey: "k"})
		publishLevels(t, l, 1)
		for l := range eachly(t, dir, l) {
			require.Equal(t, []string{"1:0", "first", "keyed"}, payloads(claim(t, l, testTopic, 10)))
		}
	})

	inALog(t, "IsKeptThroughADelay", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		publish(t, l, testTopic, "low")
		publishWith(t, l, "delayed", MessageOptions{Priority: 7, Delay: time.Minute})
		time.Sleep(time.Minute + time.Second)
		for l := range eachly(t, dir, l) {
			require.Equal(t, []string{"delayed", "low"}, payloads(claim(t, l, testTopic, 10)))
		}
	})

	inALog(t, "OfARedrivenOneCountsNoMore", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		publishLevels(t, l, 3, 3)
		publishWith(t, l, "expires", MessageOptions{Priority: 3, TTL: time.Second})
		time.Sleep(2 * time.Second)
		_, err := l.Redrive(t.Context(), testTenant, testTopic, Redrive{})
		require.NoError(t, err)
		for l := range eachly(t, dir, l) {
			require.Equal(t, []string{"expires", "3:0", "3:1"}, payloads(claim(t, l, testTopic, 10)), "each once")
		}
	})

	inALog(t, "LeavesNothingInTheStoreOnceTheMessagesAreClaimed", func(in scene) {
		t, l := in.t, in.l
		makeGroups(t, l, "g")
		setMode(t, l, LaneOn)
		publishLevels(t, l, 3, 3, 9)
		publishWith(t, l, "expires", MessageOptions{Priority: 3, TTL: time.Second})
		require.Equal(t, 3, rows(t, l, testKey().Priorities(3)))
		require.Equal(t, 1, rows(t, l, testKey().Priorities(9)))
		time.Sleep(2 * time.Second)
		settleAll(t, l, claim(t, l, testTopic, 3), Ack)
		require.Zero(t, rows(t, l, testKey().Priorities(3))+rows(t, l, testKey().Priorities(9)))
		require.Equal(t, 4, stored(t, l), "the group needs three, and one is a dead letter")
	})

	inALog(t, "LeavesNothingInTheStoreOfADefaultLaneThatIsTurnedOff", func(in scene) {
		t, l := in.t, in.l
		makeGroups(t, l, "g")
		setMode(t, l, LaneOn)
		publishLevels(t, l, 3)
		require.Equal(t, 1, rows(t, l, testKey().Priorities(3)))
		setMode(t, l, LaneOff)
		emptyLane(t, l, "g")
		require.Zero(t, stored(t, l))
		require.Zero(t, rows(t, l, testKey().Priorities(3)))
	})
}

func TestMaxPriority(t *testing.T) {
	inALog(t, "RefusesHigherOnesByNameFromTheNextPublishOn", func(in scene) {
		t, l := in.t, in.l
		publishLevels(t, l, limits.PriorityCeiling)
		setPolicy(t, l, Policy{MaxPriority: ptr(3)})
		publishLevels(t, l, 3)
		m := l.newMessage(testTopic, "x")
		m.Options.Priority = 4
		low := l.newMessage(testTopic, "y")
		_, err := l.Publish(t.Context(), low, m)
		require.ErrorContains(t, err, "option priority: want at most 3 on topic "+testTopic)
		require.Equal(t, int64(2), stats(t, l, testTopic).Ready, "nothing of the batch is stored")
		setPolicy(t, l, Policy{MaxPriority: ptr(4)})
		_, err = l.Publish(t.Context(), low, m)
		require.NoError(t, err)
		require.NoError(t, l.UnsetPolicy(t.Context(), testTenant, testTopic))
		publishLevels(t, l, limits.PriorityCeiling)
	})

	inALog(t, "HoldsForAnOutboxWhoseAckThenChangesNothing", func(in scene) {
		t, l := in.t, in.l
		publish(t, l, "in", "x")
		setPolicy(t, l, Policy{MaxPriority: ptr(0)})
		d := claimOne(t, l, "in")
		m := l.newMessage(testTopic, "out")
		m.Options.Priority = 1
		refused := new(OptionError)
		err := l.Settle(t.Context(), []Settlement{{Lease: d.Lease, Verdict: Ack}}, []Message{m})
		require.ErrorAs(t, err, &refused)
		require.Equal(t, int64(1), stats(t, l, "in").Leased)
	})

	inALog(t, "IsBoundedItself", func(in scene) {
		t, l := in.t, in.l
		setPolicy(t, l, Policy{MaxPriority: ptr(limits.PriorityCeiling)})
		refused := new(PolicyError)
		err := l.SetPolicy(t.Context(), testTenant, testTopic, Policy{MaxPriority: ptr(limits.PriorityCeiling + 1)})
		require.ErrorAs(t, err, &refused)
		require.Equal(t, PolicyError{Name: "max_priority", Value: 256, Max: limits.PriorityCeiling}, *refused)
	})
}
