package substrate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

func TestGroup(t *testing.T) {
	inALog(t, "SeesEachMessageThatItIsOwedOnceWhateverOthersDo", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		makeGroups(t, l, "acks", "buries", "retries", "idle")
		setMode(t, l, LaneOn)
		publish(t, l, testTopic, "a", "b")
		settleAll(t, l, claimFrom(t, l, "acks", 10), Ack)
		settleAll(t, l, claimFrom(t, l, "buries", 10), Bury)
		settleAll(t, l, claimFrom(t, l, "retries", 10), Retry)
		for l := range eachly(t, dir, l) {
			for lane, attempt := range map[string]int{"retries": 2, "idle": 1, "": 1} {
				d := claimFrom(t, l, lane, 10)
				require.Equal(t, []string{"a", "b"}, payloads(d), lane)
				require.Equal(t, attempt, d[0].Attempt, lane)
				require.Empty(t, claimFrom(t, l, lane, 10), lane)
			}
			require.Empty(t, claimFrom(t, l, "acks", 10))
			require.Empty(t, claimFrom(t, l, "buries", 10))
			require.Len(t, deadLetters(t, l, DeadLetterFilter{Lane: "buries", LaneSet: true}), 2)
			require.Len(t, deadLetters(t, l, DeadLetterFilter{}), 2)
		}
	})

	inALog(t, "HasLeasesOfItsOwn", func(in scene) {
		t, l := in.t, in.l
		makeGroups(t, l, "g", "h")
		publish(t, l, testTopic, "a")
		d := claimFrom(t, l, "g", 1)[0]
		e := claimFrom(t, l, "h", 1)[0]
		other := d.Lease
		other.Lane = "h"
		require.ErrorIs(t, l.Settle(t.Context(), []Settlement{{Lease: other, Verdict: Ack}}, nil), ErrLeaseLost)
		_, err := l.Extend(t.Context(), other, time.Hour)
		require.ErrorIs(t, err, ErrLeaseLost)
		_, err = l.Extend(t.Context(), d.Lease, time.Hour)
		require.NoError(t, err)
		time.Sleep(2 * time.Minute)
		require.Empty(t, claimFrom(t, l, "g", 1), "an unexpired lease hides the message")
		again := claimFrom(t, l, "h", 1)[0]
		require.Equal(t, 2, again.Attempt, "an expired one does not")
		require.ErrorIs(t, l.Settle(t.Context(), []Settlement{{Lease: e.Lease, Verdict: Ack}}, nil), ErrLeaseLost)
		settle(t, l, d, Ack, "")
		settle(t, l, again, Ack, "")
	})

	inALog(t, "RetriesReleasesAndBuriesAsTheDefaultLaneDoes", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		makeGroups(t, l, "g")
		publish(t, l, testTopic, "a")
		d := claimFrom(t, l, "g", 1)[0]
		require.NoError(t, l.Settle(t.Context(), []Settlement{{Lease: d.Lease, Verdict: Retry, Delay: time.Minute, Reason: "why"}}, nil))
		require.Empty(t, claimFrom(t, l, "g", 1))
		time.Sleep(time.Minute)
		d = claimFrom(t, l, "g", 1)[0]
		require.Equal(t, 2, d.Attempt)
		require.Equal(t, "why", d.PreviousReason)
		settle(t, l, d, Release, "")
		d = claimFrom(t, l, "g", 1)[0]
		require.Equal(t, 2, d.Attempt, "a release takes the attempt back")
		settle(t, l, d, Retry, "")
		settle(t, l, claimFrom(t, l, "g", 1)[0], Retry, "")
		publish(t, l, testTopic, "b")
		for l := range eachly(t, dir, l) {
			r, err := l.Claim(t.Context(), laneRequest("g", 1))
			require.NoError(t, err)
			require.Equal(t, []string{"b"}, payloads(r.Deliveries), "what is buried is not charged to the batch")
			require.Len(t, r.Buried, 1)
			require.Equal(t, "g", r.Buried[0].Lane)
			require.Equal(t, 3, r.Buried[0].Attempts)
			require.Equal(t, "why", r.Buried[0].Reason)
		}
	})

	inALog(t, "SeesADelayedMessageWhenItIsDue", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		makeGroups(t, l, "early")
		publishWith(t, l, "delayed", MessageOptions{Delay: time.Minute})
		makeGroup(t, l, "late", GroupOptions{Start: Start{Kind: StartLatest}})
		publish(t, l, testTopic, "now")
		require.Equal(t, []string{"now"}, emptyLane(t, l, "early"))
		require.Equal(t, int64(0), groupNamed(t, l, "early").Lag)
		woken := waiter(t, l, "early")
		time.Sleep(time.Minute)
		require.NoError(t, <-woken)
		for l := range eachly(t, dir, l) {
			require.Equal(t, []string{"delayed"}, payloads(claimFrom(t, l, "early", 10)))
			d := claimFrom(t, l, "late", 10)
			require.Equal(t, []string{"now", "delayed"}, payloads(d), "owed when it became visible")
			require.Equal(t, uint64(2), d[1].Lease.Position)
		}
	})

	inALog(t, "ExpiresInEachLaneForItself", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		makeGroups(t, l, "runs", "done", "fresh", "retries")
		publishWith(t, l, "a", MessageOptions{TTL: 30 * time.Second})
		settleAll(t, l, claimFrom(t, l, "done", 1), Ack)
		running := claimFrom(t, l, "runs", 1)
		require.NoError(t, l.Settle(t.Context(), []Settlement{{Lease: claimFrom(t, l, "retries", 1)[0].Lease, Verdict: Retry, Delay: time.Hour}}, nil))
		time.Sleep(31 * time.Second)
		dead := func(t *testing.T, l *Log) (lanes []string) {
			t.Helper()
			for _, d := range deadLetters(t, l, DeadLetterFilter{}) {
				require.Equal(t, ReasonTTLExpired, d.Reason)
				lanes = append(lanes, fmt.Sprint(d.Lane, " after ", d.Attempts))
			}
			return lanes
		}
		require.Equal(t, []string{"fresh after 0", "retries after 1"}, dead(t, l), "a running delivery is not cut")
		settleAll(t, l, running, Retry)
		time.Sleep(time.Second)
		for l := range eachly(t, dir, l) {
			require.Equal(t, []string{"fresh after 0", "retries after 1", "runs after 1"}, dead(t, l))
		}
	})

	inALog(t, "OfTheSameNameOnAnotherTopicIsAnother", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		topics := []TopicName{{"acme", "a"}, {"acme", "a/b"}, {"acme", "a/b/c"}, {"acme-a", "b"}, {"a", "cme"}}
		for i, name := range topics {
			_, _, err := l.CreateGroup(t.Context(), name.Tenant, name.Topic, "g", GroupOptions{})
			require.NoError(t, err)
			for range i + 1 {
				_, err := l.Publish(t.Context(), Message{ID: l.MintID(), Tenant: name.Tenant, Topic: name.Topic, Payload: []byte(name.Topic)})
				require.NoError(t, err)
			}
		}
		require.NoError(t, l.DeleteGroup(t.Context(), "acme", "a", "g"))
		require.NoError(t, l.PauseLane(t.Context(), "acme", "a/b/c", "g", true))
		for l := range eachly(t, dir, l) {
			for i, name := range topics[1:] {
				groups, err := l.Groups(name.Tenant, name.Topic)
				require.NoError(t, err)
				require.Len(t, groups, 1)
				require.Equal(t, int64(i+2), groups[0].Lag)
				require.Equal(t, name.Topic == "a/b/c", groups[0].Paused)
			}
			groups, err := l.Groups("acme", "a")
			require.NoError(t, err)
			require.Empty(t, groups)
		}
	})

	inALog(t, "IsCompactInTheStore", func(in scene) {
		t, l := in.t, in.l
		makeGroups(t, l, "g")
		publishN(t, l, testTopic, 5_000)
		settleAll(t, l, claimFrom(t, l, "g", 100), Ack)
		held := claimFrom(t, l, "g", 7)
		require.Len(t, held, 7)
		require.Equal(t, 1, rows(t, l, testKey().Groups()))
		require.Equal(t, 7, rows(t, l, testKey().Lanes("g")), "only of what is in flight")
		settleAll(t, l, held, Ack)
		require.Zero(t, rows(t, l, testKey().Lanes("g")))
		ln := l.find(TopicName{testTenant, testTopic}).groups["g"]
		require.LessOrEqual(t, len(ln.base().window), limits.WindowMessages)
		require.Empty(t, ln.flights)
	})
}

func TestGroups(t *testing.T) {
	inALog(t, "AreListedWithWhatTheyLag", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		makeGroups(t, l, "b", "a")
		start := time.Now()
		publish(t, l, testTopic, "1", "2", "3", "4", "5")
		d := claimFrom(t, l, "a", 4)
		settle(t, l, d[0], Ack, "")
		settle(t, l, d[1], Bury, "")
		require.NoError(t, l.Settle(t.Context(), []Settlement{{Lease: d[2].Lease, Verdict: Retry, Delay: time.Hour}}, nil))
		want := Group{Name: "a", Cursor: 5, Lag: 1, InFlight: 2, Leased: 1, DeadLetters: 1, Oldest: start}
		require.Equal(t, want, groupNamed(t, l, "a"))
		settle(t, l, d[3], Release, "")
		want.Leased = 0
		for l := range eachly(t, dir, l) {
			groups, err := l.Groups(testTenant, testTopic)
			require.NoError(t, err)
			require.Equal(t, []Group{want, {Name: "b", Cursor: 1, Lag: 5, Oldest: start}}, groups)
		}
	})

	inALog(t, "OfAnUnknownTopicAreNotFound", func(in scene) {
		t, l := in.t, in.l
		_, err := l.Groups(testTenant, testTopic)
		require.ErrorIs(t, err, ErrNotFound)
	})

	inALog(t, "ThatAreUnknownAreErrorsButForDelete", func(in scene) {
		t, l := in.t, in.l
		for range 2 { // without a topic, then with one
			_, err := l.Claim(t.Context(), laneRequest("g", 1))
			require.ErrorIs(t, err, ErrNoGroup)
			require.ErrorIs(t, l.ResetGroup(t.Context(), testTenant, testTopic, "g", Start{}), ErrNoGroup)
			require.ErrorIs(t, l.PauseLane(t.Context(), testTenant, testTopic, "g", true), ErrNoGroup)
			require.NoError(t, l.DeleteGroup(t.Context(), testTenant, testTopic, "g"))
			_, err = l.Peek(t.Context(), testTenant, testTopic, "g", 0, 1)
			require.ErrorIs(t, err, ErrNoGroup)
			publish(t, l, testTopic, "a")
		}
	})
}

func TestGroupNames(t *testing.T) {
	inALog(t, "AreOneSegment", func(in scene) {
		t, l := in.t, in.l
		longest := strings.Repeat("g", limits.GroupBytes)
		for _, name := range []string{"", "a/b", ".", "..", "a b", "a:b", longest + "g", "ü"} {
			_, _, err := l.CreateGroup(t.Context(), testTenant, testTopic, name, GroupOptions{})
			refused := new(NameError)
			require.ErrorAs(t, err, &refused, name)
			require.ErrorAs(t, l.ResetGroup(t.Context(), testTenant, testTopic, name, Start{}), &refused)
			require.ErrorAs(t, l.DeleteGroup(t.Context(), testTenant, testTopic, name), &refused)
			if name == "" {
				continue // names the default lane
			}
			_, err = l.Claim(t.Context(), laneRequest(name, 1))
			require.ErrorAs(t, err, &refused)
			require.ErrorAs(t, l.WaitReady(t.Context(), testTenant, testTopic, name), &refused)
			require.ErrorAs(t, l.PauseLane(t.Context(), testTenant, testTopic, name, true), &refused)
		}
		require.Empty(t, l.Topics())
		makeGroups(t, l, longest, "A-b_c.9")
	})

	inALog(t, "AreBoundedInNumber", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		for i := range limits.GroupsPerTopic {
			makeGroups(t, l, fmt.Sprint("g", i))
		}
		_, _, err := l.CreateGroup(t.Context(), testTenant, testTopic, "more", GroupOptions{})
		require.ErrorIs(t, err, &limits.Error{Name: limits.NameGroups})
		_, _, err = l.CreateGroup(t.Context(), testTenant, "other", "more", GroupOptions{})
		require.NoError(t, err, "another topic has its own")
		publish(t, l, testTopic, "a")
		require.Equal(t, limits.GroupsPerTopic, stats(t, reopenCrashed(t, dir), testTopic).Groups)
		require.NoError(t, l.DeleteGroup(t.Context(), testTenant, testTopic, "g7"))
		makeGroups(t, l, "more")
	})
}
