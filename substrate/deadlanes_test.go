package substrate

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDeadLettersAcrossLanes(t *testing.T) {
	// bury gives each of three lanes the same three dead letters, with their lane as reason.
	bury := func(t *testing.T, l *Log) {
		t.Helper()
		makeGroups(t, l, "g", "h")
		setMode(t, l, LaneOn)
		publish(t, l, testTopic, "a", "b", "c")
		for _, lane := range []string{"h", "", "g"} {
			for _, d := range claimFrom(t, l, lane, 10) {
				settle(t, l, d, Bury, "of lane "+lane)
			}
		}
	}
	places := func(letters []DeadLetter) (s []string) {
		for _, d := range letters {
			s = append(s, fmt.Sprint(d.Position, d.Lane))
		}
		return s
	}

	inALog(t, "AreListedAndPagedByPositionThenLane", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		bury(t, l)
		for l := range eachly(t, dir, l) {
			want := []string{"1", "1g", "1h", "2", "2g", "2h", "3", "3g", "3h"}
			require.Equal(t, want, places(deadLetters(t, l, DeadLetterFilter{})))
			for size := 1; size <= 4; size++ {
				var got []string
				f := DeadLetterFilter{Limit: size}
				for {
					page := deadLetters(t, l, f)
					if len(page) == 0 {
						break
					}
					last := page[len(page)-1]
					f.After, f.AfterLane = last.Position, last.Lane
					got = append(got, places(page)...)
				}
				require.Equal(t, want, got, "pages of %d", size)
			}
			require.Equal(t, []string{"1", "2", "3"}, places(deadLetters(t, l, DeadLetterFilter{LaneSet: true})))
			require.Equal(t, []string{"2g"}, places(deadLetters(t, l, DeadLetterFilter{LaneSet: true, Lane: "g", After: 1, AfterLane: "g", Limit: 1})))
			require.Equal(t, []string{"1h", "2h", "3h"}, places(deadLetters(t, l, DeadLetterFilter{ReasonContains: "lane h"})))
		}
	})

	inALog(t, "OfOneGroupAreDiscardedWithoutWhatAnotherLaneIsOwed", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		bury(t, l)
		makeGroups(t, l, "fresh")
		n, err := l.Discard(t.Context(), testTenant, testTopic, DeadLetterFilter{LaneSet: true, Lane: "g"})
		require.NoError(t, err)
		require.Equal(t, 3, n)
		require.Equal(t, 3, stored(t, l))
		for l := range eachly(t, dir, l) {
			require.Equal(t, []string{"1", "1h", "2", "2h", "3", "3h"}, places(deadLetters(t, l, DeadLetterFilter{})))
			require.Equal(t, []string{"a", "b", "c"}, emptyLane(t, l, "fresh"))
			letter, m, err := l.DeadLetter(t.Context(), testTenant, testTopic, deadLetters(t, l, DeadLetterFilter{})[0].ID)
			require.NoError(t, err)
			require.Equal(t, "of lane ", letter.Reason)
			require.Equal(t, "a", string(m.Payload), "a dead letter keeps its message whole")
			n, err := l.Discard(t.Context(), testTenant, testTopic, DeadLetterFilter{})
			require.NoError(t, err)
			require.Equal(t, 6, n)
			require.Zero(t, stored(t, l))
		}
	})

	inALog(t, "OfOneMessageAreRedrivenInEachLaneForItself", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		bury(t, l)
		id := deadLetters(t, l, DeadLetterFilter{})[0].ID
		f := DeadLetterFilter{ID: id, LaneSet: true, Lane: "h"}
		r, err := l.Redrive(t.Context(), testTenant, testTopic, Redrive{Filter: f, Operator: "ada"})
		require.NoError(t, err)
		require.Equal(t, RedriveResult{Moved: 1}, r)
		for l := range eachly(t, dir, l) {
			d := claimFrom(t, l, "h", 10)
			require.Equal(t, []string{"a"}, payloads(d))
			require.Equal(t, 1, d[0].Attempt)
			require.Equal(t, id, d[0].Message.ID)
			require.Empty(t, claimFrom(t, l, "g", 10))
			require.Empty(t, claimFrom(t, l, "", 10))
			require.Len(t, deadLetters(t, l, DeadLetterFilter{}), 8)
		}
	})
}

func TestCountersOfLanesAreExactAfterRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		makeGroup(t, l, "keyed", GroupOptions{Ordering: OrderKey})
		makeGroups(t, l, "free", "idle")
		require.NoError(t, l.SetOrdering(t.Context(), testTenant, testTopic, "", OrderKey))
		setMode(t, l, LaneOn)
		for i, key := range []string{"a", "a", "", "b", "a", "", "b", "b"} {
			publishWith(t, l, strings.Repeat("x", i), MessageOptions{OrderingKey: key, Priority: uint8(i)})
		}
		publishWith(t, l, "later", MessageOptions{Delay: time.Hour})
		for _, lane := range []string{"keyed", "free", ""} {
			first := claimFrom(t, l, lane, 1)
			d := claimFrom(t, l, lane, 3) // parks what is behind the first
			settle(t, l, d[0], Bury, "")
			settle(t, l, d[1], Ack, "")
			settleAll(t, l, d[2:], Release)
			require.NoError(t, l.Settle(t.Context(), []Settlement{{Lease: first[0].Lease, Verdict: Retry, Delay: time.Hour}}, nil))
		}
		require.NoError(t, l.DeleteGroup(t.Context(), testTenant, testTopic, "idle"))
		_, err := l.Discard(t.Context(), testTenant, testTopic, DeadLetterFilter{LaneSet: true, Lane: "free"})
		require.NoError(t, err)
		time.Sleep(3 * time.Second)
		want := stats(t, l, testTopic)
		groups, err := l.Groups(testTenant, testTopic)
		require.NoError(t, err)
		require.Positive(t, l.find(TopicName{testTenant, testTopic}).groups["keyed"].parkedN)
		for l := range eachly(t, dir, l) {
			require.Equal(t, want, stats(t, l, testTopic))
			again, err := l.Groups(testTenant, testTopic)
			require.NoError(t, err)
			require.Equal(t, groups, again)
		}
	})
}
