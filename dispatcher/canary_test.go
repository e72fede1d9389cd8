package dispatcher

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/substrate"
)

// withCanary is a consumer with another version beside it.
func withCanary(percent int, stable, canary Consumer) Consumer {
	stable.Canary = &Canary{Percent: percent, Consumer: canary}
	return stable
}

func TestCanary(t *testing.T) {
	t.Run("ItGetsItsShareAndEveryAttemptOfAMessage", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			fails := runtime.Outcome{Class: runtime.GuestError, Detail: "other"}
			r := newRig(t, withCanary(30, versionOf("v1", holds(ends(ok()))), versionOf("v2", holds(ends(fails)))))
			r.publish(1000)
			r.run()
			time.Sleep(time.Hour)
			versions := map[string]map[string]bool{}
			for _, one := range r.seen.list() {
				require.Equal(t, one.Version == "v2", one.Canary)
				if versions[one.Message] == nil {
					versions[one.Message] = map[string]bool{}
				}
				versions[one.Message][one.Version] = true
			}
			r.halt()
			for _, v := range versions {
				require.Len(t, v, 1)
			}
			require.InDelta(t, 300, len(r.queue.buried), 60)
			require.Len(t, r.queue.acked, 1000-len(r.queue.buried))
			require.Len(t, r.seen.list(), len(r.queue.acked)+3*len(r.queue.buried), "three attempts")
		})
	})
	t.Run("MessagesOfAnOrderingKeyStayTogether", func(t *testing.T) {
		first := substrate.Message{ID: "1", Options: substrate.MessageOptions{OrderingKey: "k"}}
		for _, id := range []string{"2", "3", "4", "5", "6", "7"} {
			m := first
			m.ID = id
			require.Equal(t, canaryTakes(first, 50), canaryTakes(m, 50))
		}
	})
	t.Run("OneThatPausesGetsNoMoreAndNothingIsLost", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			broken := versionOf("v2", holds(ends(runtime.Outcome{Class: runtime.ModuleFault})))
			r := newRig(t, withCanary(50, versionOf("v1", holds(ends(ok()))), broken))
			ids := r.publish(100)
			r.run()
			time.Sleep(time.Hour)
			require.Equal(t, StateRunning, r.state().State)
			require.Equal(t, StatePaused, r.state().Canary.State)
			require.Equal(t, "module-fault", r.state().Canary.Reason)
			require.Equal(t, 1, r.d.Resume(func(ConsumerStatus) bool { return true }))
			require.Equal(t, StateRunning, r.state().Canary.State)
			r.halt()
			require.ElementsMatch(t, ids, r.queue.acked)
		})
	})
	t.Run("EndingItFreesWhatIsNotUsedAnyMore", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			stable, canary := holds(ends(ok())), holds(ends(ok()))
			r := newRig(t, withCanary(50, versionOf("v1", stable), versionOf("v2", canary)))
			r.run()
			synctest.Wait()
			before := r.d.consumers[0]
			r.swap(withCanary(50, versionOf("v1", stable), versionOf("v2", canary)))
			require.Same(t, before, r.d.consumers[0], "nothing changed")
			r.swap(withCanary(60, versionOf("v1", stable), versionOf("v2", canary)))
			synctest.Wait()
			require.Zero(t, stable.closed.Load()+canary.closed.Load())
			r.swap(versionOf("v2", canary))
			synctest.Wait()
			require.EqualValues(t, 1, stable.closed.Load())
			require.Zero(t, canary.closed.Load())
			r.publish(10)
			time.Sleep(time.Second)
			r.halt()
			require.Equal(t, map[string]int{"v2": 10}, r.versions())
		})
	})
	t.Run("BothTogetherKeepTheConcurrency", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			stable, canary := versionOf("v1", holds(works(time.Second))), versionOf("v2", holds(works(time.Second)))
			stable.Concurrency, canary.Concurrency = 2, 2
			r := newRig(t, withCanary(50, stable, canary))
			r.options.Workers = 8
			r.publish(20)
			r.run()
			time.Sleep(500 * time.Millisecond)
			require.Equal(t, 2, r.state().InFlight+r.state().Canary.InFlight)
			time.Sleep(10 * time.Second)
			r.halt()
			require.Len(t, r.queue.acked, 20)
		})
	})
	t.Run("WhatCannotBeIsRefused", func(t *testing.T) {
		bad := versionOf("v2", holds(ends(ok())))
		bad.Topic, bad.Lease = "others", time.Hour
		bad = withCanary(5, bad, bad)
		r := newRig(t, withCanary(100, versionOf("v1", holds(ends(ok()))), bad))
		_, err := New(r.options)
		for _, want := range []string{"canary of 100%: want 1 to 99", "a canary has a canary", "takes from another lane", "another concurrency"} {
			require.ErrorContains(t, err, want)
		}
	})
}
