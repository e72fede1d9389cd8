package substrate

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPauseLane(t *testing.T) {
	inALog(t, "StopsTheDeliveriesOfOneLaneThroughARestart", func(in scene) {
		t, dir, l := in.t, in.dir, in.l
		makeGroups(t, l, "g", "h")
		setMode(t, l, LaneOn)
		publish(t, l, testTopic, "a", "b")
		held := claimFrom(t, l, "g", 1)
		for _, lane := range []string{"g", ""} {
			require.NoError(t, l.PauseLane(t.Context(), testTenant, testTopic, lane, true))
		}
		publish(t, l, testTopic, "c")
		settleAll(t, l, held, Retry) // settlements go on
		for l := range eachly(t, dir, l) {
			for _, lane := range []string{"g", ""} {
				require.Empty(t, claimFrom(t, l, lane, 10))
				require.True(t, waits(t, l, lane))
			}
			require.Equal(t, []string{"a", "b", "c"}, payloads(claimFrom(t, l, "h", 10)))
			require.True(t, groupNamed(t, l, "g").Paused)
			require.False(t, groupNamed(t, l, "h").Paused)
			require.False(t, stats(t, l, testTopic).Paused, "which is the topic's")
		}
	})

	inALog(t, "LetsExpiriesGoOn", func(in scene) {
		t, l := in.t, in.l
		makeGroups(t, l, "g")
		require.NoError(t, l.PauseLane(t.Context(), testTenant, testTopic, "g", true))
		publishWith(t, l, "a", MessageOptions{TTL: time.Second})
		time.Sleep(2 * time.Second)
		require.Equal(t, "g", deadLetters(t, l, DeadLetterFilter{})[0].Lane)
	})

	inALog(t, "EndsWithAResumeThatNeedsNoOtherEvent", func(in scene) {
		t, l := in.t, in.l
		makeGroups(t, l, "g")
		publish(t, l, testTopic, "a")
		require.NoError(t, l.PauseLane(t.Context(), testTenant, testTopic, "g", true))
		woken := waiter(t, l, "g")
		time.Sleep(time.Minute)
		require.Empty(t, woken)
		require.NoError(t, l.PauseLane(t.Context(), testTenant, testTopic, "g", false))
		require.NoError(t, <-woken)
		require.Equal(t, []string{"a"}, payloads(claimFrom(t, l, "g", 1)))
	})

	inALog(t, "IsBesideThatOfTheTopic", func(in scene) {
		t, l := in.t, in.l
		makeGroups(t, l, "g")
		publish(t, l, testTopic, "a")
		require.NoError(t, l.Pause(t.Context(), testTenant, testTopic, true))
		require.Empty(t, claimFrom(t, l, "g", 1))
		require.True(t, waits(t, l, "g"))
		require.NoError(t, l.PauseLane(t.Context(), testTenant, testTopic, "g", false))
		require.Empty(t, claimFrom(t, l, "g", 1))
		require.NoError(t, l.Pause(t.Context(), testTenant, testTopic, false))
		require.Len(t, claimFrom(t, l, "g", 1), 1)
	})
}

func TestWaitForAGroup(t *testing.T) {
	for _, c := range []struct {
		name string
		wake func(in scene, held Delivery)
	}{
		{"EndsWithAPublish", func(in scene, _ Delivery) { publish(in.t, in.l, testTopic, "b") }},
		{"EndsWithARetry", func(in scene, held Delivery) { settle(in.t, in.l, held, Retry, "") }},
		{"EndsWithTheLease", func(_ scene, held Delivery) { time.Sleep(time.Until(held.Expires)) }},
		{"EndsWithAReset", func(in scene, _ Delivery) {
			require.NoError(in.t, in.l.ResetGroup(in.t.Context(), testTenant, testTopic, "g", Start{}))
		}},
		{"EndsWithARedrive", func(in scene, held Delivery) {
			settle(in.t, in.l, held, Bury, "")
			_, err := in.l.Redrive(in.t.Context(), testTenant, testTopic, Redrive{})
			require.NoError(in.t, err)
		}},
	} {
		inALog(t, c.name, func(in scene) {
			t, l := in.t, in.l
			makeGroups(t, l, "g")
			publish(t, l, testTopic, "a")
			held := claimFrom(t, l, "g", 1)[0]
			woken := waiter(t, l, "g")
			synctest.Wait()
			require.Empty(t, woken)
			c.wake(in, held)
			require.NoError(t, <-woken)
			require.Len(t, claimFrom(t, l, "g", 1), 1)
		})
	}

	inALog(t, "BeginsBeforeThereIsOne", func(in scene) {
		t, l := in.t, in.l
		publish(t, l, testTopic, "a")
		woken := waiter(t, l, "g")
		require.Empty(t, woken)
		makeGroups(t, l, "g")
		require.NoError(t, <-woken)
	})

	inALog(t, "DoesNotEndWithWhatIsOfAnotherTopic", func(in scene) {
		t, l := in.t, in.l
		makeGroups(t, l, "g")
		woken := waiter(t, l, "g")
		publish(t, l, testTopic+"/more", "a")
		synctest.Wait()
		require.Empty(t, woken)
		publish(t, l, testTopic, "a")
		require.NoError(t, <-woken)
	})
}
