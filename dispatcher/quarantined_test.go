package dispatcher

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/substrate"
)

// damaged makes the next claim quarantine a message that those lanes were owed.
func (r *rig) damaged(lanes ...string) {
	r.queue.putAside = substrate.ClaimResult{Quarantined: []substrate.QuarantineEntry{{
		ID: "position-7", Tenant: tenant, Topic: topic, Position: 7, Reason: substrate.ReasonCorrupt, Error: "the checksum does not match",
		Lanes: lanes,
	}}}
}

func TestDeathsOfWhatIsQuarantined(t *testing.T) {
	t.Run("AreToldOfWithWhatIsKnown", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, watched(ends(ok())))
			r.damaged("")
			r.publish(1)
			r.runFor(time.Second)
			told := r.eventsTo("audit/death")
			require.Len(t, told, 1)
			require.Equal(t, eventData{
				Tenant: tenant, Topic: topic, Message: "position-7", Consumer: "c", Verdict: VerdictQuarantine, Reason: ReasonCorrupt,
			}, dataOf(t, told[0]))
			require.Empty(t, told[0].Parent, "which message it was isn't known")
			require.Zero(t, told[0].Hops)
			who, err := r.context.Verify(told[0].Envelope, Binding(told[0]))
			require.NoError(t, err)
			require.True(t, isEvent(&who))
			require.Equal(t, []string{""}, r.outcomes(EventDeath))
		})
	})
	t.Run("AreToldOnceByEachLaneThatLostIt", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			twin, group, done, elsewhere := watched(ends(ok())), watched(ends(ok())), watched(ends(ok())), watched(ends(ok()))
			twin.Name, group.Name, group.Lane, done.Name, done.Lane = "twin", "group", "g", "done", "d"
			elsewhere.Name, elsewhere.Topic = "elsewhere", "other"
			silent := consumerOf("silent", ends(ok()))
			silent.Lane = "s"
			r := newRig(t, watched(ends(ok())), twin, group, done, elsewhere, silent)
			r.damaged("", "g", "s")
			r.publish(1)
			r.runFor(time.Second)
			var by []string
			for _, m := range r.eventsTo("audit/death") {
				by = append(by, dataOf(t, m).Consumer)
			}
			require.ElementsMatch(t, []string{"c", "group"}, by)
		})
	})
	t.Run("OfWhatMayBeAnEventAreNot", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			source := consumerOf("source", ends(ok()))
			source.Topic, source.Events.Success = "source", topic
			r := newRig(t, watched(ends(ok())), source)
			r.damaged("")
			r.publish(1)
			r.runFor(time.Second)
			require.Empty(t, r.eventsTo("audit/death"))
			require.Len(t, r.queue.acked, 1)
		})
	})
	t.Run("ThatCannotBePublishedFailNothingAndAreCounted", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, watched(ends(ok())))
			r.queue.reserve = func(topicName string, _ int) error {
				if topicName == "audit/death" {
					return &substrate.DepthError{Topic: topicName, Limit: 1, Actual: 2}
				}
				return nil
			}
			r.damaged("")
			r.publish(1)
			r.runFor(time.Second)
			require.Equal(t, []string{"depth-exceeded"}, r.outcomes(EventDeath))
			require.Len(t, r.queue.acked, 1)
		})
	})
}
