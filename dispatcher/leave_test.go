package dispatcher

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

func TestLeave(t *testing.T) {
	is := func(t *testing.T, want turnState, all ...*turn) {
		t.Helper()
		for _, one := range all {
			require.Equal(t, want, one.state)
		}
	}
	t.Run("WhoLeavesLetsAnotherRun", func(t *testing.T) {
		w := newWorkers(1, nil, nil, &crew{})
		first, second := w.enqueue("t", "a", false), w.enqueue("t", "b", false)
		first.leave()
		is(t, turnGranted, second)
		first.queueAgain()
		is(t, turnReturning, first)
		require.Equal(t, 1, w.running)
		second.done()
		is(t, turnGranted, first)
		first.done()
		require.Equal(t, 1, w.free)
		require.Zero(t, w.running)
	})
	t.Run("WhoEndsWhileAwayGivesNoWorkerBackTwice", func(t *testing.T) {
		w := newWorkers(1, nil, nil, &crew{})
		gone := w.enqueue("t", "a", false)
		gone.leave()
		gone.done()
		left := w.enqueue("t", "a", false)
		left.leave()
		other := w.enqueue("t", "a", false)
		left.queueAgain()
		left.done()
		other.done()
		require.Equal(t, 1, w.free)
		require.Zero(t, w.running)
	})
	t.Run("WhoComesBackIsBeforeWhatItsConsumerHasNotBegun", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { // nobody runs for any time
			w := newWorkers(1, nil, nil, &crew{})
			turns := map[string]*turn{"asks": w.enqueue("t", "a", false)}
			turns["asks"].leave()
			turns["other"] = w.enqueue("t", "b", false)
			turns["a1"], turns["a2"] = w.enqueue("t", "a", false), w.enqueue("t", "a", false)
			turns["b1"] = w.enqueue("t", "b", false)
			turns["asks"].queueAgain()
			require.Equal(t, []string{"other", "asks", "b1", "a1", "a2"}, order(turns), "and other consumers have their turns all the same")
		})
	})
	t.Run("WhoIsAloneHoldsNobodyUpWhileAwayAndIsAloneAgain", func(t *testing.T) {
		w := newWorkers(2, nil, nil, &crew{})
		alone, other := w.enqueue("t", "a", true), w.enqueue("t", "b", false)
		is(t, turnWaiting, other)
		alone.leave()
		is(t, turnGranted, other)
		alone.queueAgain()
		next := w.enqueue("t", "b", false)
		is(t, turnReturning, alone)
		is(t, turnWaiting, next)
		other.done()
		is(t, turnGranted, alone)
		is(t, turnWaiting, next)
		alone.done()
		is(t, turnGranted, next)
	})
	t.Run("WhoIsAwayCountsForTheCapOfItsTenantAndMayComeBack", func(t *testing.T) {
		w := newWorkers(4, nil, map[string]Caps{"small": {Running: 2}}, &crew{})
		require.Equal(t, 1, w.mayLeave("small"))
		require.Equal(t, limits.TenantWaiting, w.mayLeave("large"))
		asks, clerk := w.enqueue("small", "a", false), w.enqueue("small", "b", false)
		next := w.enqueue("small", "a", false)
		asks.leave()
		is(t, turnWaiting, next)
		asks.queueAgain()
		is(t, turnGranted, asks, clerk)
		is(t, turnWaiting, next)
		asks.leave()
		clerk.leave()
		is(t, turnWaiting, next)
		asks.queueAgain()
		is(t, turnGranted, asks)
		clerk.done() // while it is away
		is(t, turnGranted, next)
		asks.leave()
		asks.queueAgain()
		asks.done()
		next.done()
		require.Zero(t, w.tenants["small"].away)
		require.Zero(t, w.tenants["small"].used.running)
		require.Equal(t, 4, w.free)
	})
	t.Run("WaitingIsNoExecution", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorkers(2, nil, nil, &crew{})
			asks, runs := w.enqueue("asks", "c", false), w.enqueue("runs", "c", false)
			time.Sleep(10 * time.Millisecond)
			asks.leave()
			time.Sleep(100 * time.Millisecond)
			asks.queueAgain()
			used := func(tenant string) float64 { return w.tenants[tenant].used.recent(time.Now(), w.seconds(time.Now())) }
			require.Less(t, used("asks"), 0.011)
			require.InDelta(t, 0.11, used("runs"), 0.001)
			time.Sleep(10 * time.Millisecond)
			asks.done()
			runs.done()
			require.InDelta(t, 0.02, used("asks"), 0.002)
		})
	})
	t.Run("FuelIsCountedOnce", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorkers(1, nil, nil, &crew{})
			asks := w.enqueue("t", "c", false)
			time.Sleep(10 * time.Millisecond)
			asks.leave()
			asks.queueAgain()
			time.Sleep(10 * time.Millisecond)
			asks.spent(limits.FairFuelPerSec / 10) // of the whole call
			asks.done()
			require.InDelta(t, 0.1, w.used.recent(time.Now(), w.seconds(time.Now())), 0.001)
		})
	})
}
