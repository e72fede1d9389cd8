package dispatcher

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

// rival is a tenant that always has turns waiting, each of which takes so long and uses so much fuel.
type rival struct {
	tenant string
	takes  time.Duration
	fuel   int64
}

// compete lets rivals share one worker for a while, and returns for how long each ran, and how many turns that were.
func compete(shares map[string]Share, d time.Duration, rivals ...rival) (ran map[string]time.Duration, turns map[string]int) {
	w := newWorkers(1, shares, nil, &crew{})
	ran, turns = map[string]time.Duration{}, map[string]int{}
	waiting := map[*turn]rival{}
	for _, r := range rivals {
		waiting[w.enqueue(r.tenant, "c", false)] = r
		waiting[w.enqueue(r.tenant, "c", false)] = r
	}
	for end := time.Now().Add(d); time.Now().Before(end); {
		for t, r := range waiting {
			if t.state != turnGranted {
				continue
			}
			time.Sleep(r.takes)
			ran[r.tenant] += r.takes
			turns[r.tenant]++
			delete(waiting, t)
			waiting[w.enqueue(r.tenant, "c", false)] = r
			t.spent(r.fuel)
			t.done()
			break
		}
	}
	return ran, turns
}

func TestFairness(t *testing.T) {
	t.Run("TenantsGetTheSameExecutionNotTheSameNumberOfMessages", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ran, turns := compete(nil, time.Minute, rival{"slow", 50 * time.Millisecond, 0}, rival{"quick", time.Millisecond, 0})
			require.InEpsilon(t, ran["slow"], ran["quick"], 0.05)
			require.InEpsilon(t, 50*turns["slow"], turns["quick"], 0.05)
		})
	})
	t.Run("ByWeight", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			shares := map[string]Share{"heavy": {Weight: 3}}
			ran, _ := compete(shares, time.Minute, rival{"heavy", 10 * time.Millisecond, 0}, rival{"light", 10 * time.Millisecond, 0})
			require.InEpsilon(t, 3*ran["light"], ran["heavy"], 0.05)
		})
	})
	t.Run("AFloorHoldsWhateverTheWeights", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			shares := map[string]Share{"heavy": {Weight: limits.FairWeight}, "light": {FloorPercent: 20}}
			ran, _ := compete(shares, time.Minute, rival{"heavy", 10 * time.Millisecond, 0}, rival{"light", 10 * time.Millisecond, 0})
			require.InEpsilon(t, 4*ran["light"], ran["heavy"], 0.1)
		})
	})
	t.Run("InstructionsCountWhereTheClockDoesNot", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			busy := rival{"busy", time.Millisecond, limits.FairFuelPerSec / 100} // worth 10 ms
			_, turns := compete(nil, time.Minute, busy, rival{"idle", time.Millisecond, 0})
			require.InEpsilon(t, 10*turns["busy"], turns["idle"], 0.05)
		})
	})
	t.Run("WhatRunsNowCounts", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorkers(2, nil, nil, &crew{})
			long, short := w.enqueue("a", "c", false), w.enqueue("b", "c", false)
			time.Sleep(time.Second)
			other, again := w.enqueue("a", "c", false), w.enqueue("b", "c", false)
			short.done() // after as long as the other has run, of which nothing has ended
			require.Equal(t, turnGranted, other.state, "a tie: it is served first that was first before")
			again.done()
			other.done()
			third := w.enqueue("b", "c", false)
			third.done()
			time.Sleep(3 * time.Second)
			blocker := w.enqueue("z", "c", false)
			a, b := w.enqueue("a", "c", false), w.enqueue("b", "c", false)
			blocker.done()
			require.Equal(t, turnGranted, b.state, "the other has run for seconds")
			require.Equal(t, turnWaiting, a.state)
			long.done()
		})
	})
	t.Run("ItForgets", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorkers(1, nil, nil, &crew{})
			one := w.enqueue("loud", "c", false)
			time.Sleep(10 * time.Second)
			one.done()
			require.InDelta(t, 10, w.tenants["loud"].used.recent(time.Now(), w.seconds(time.Now())), 0.001)
			time.Sleep(3 * limits.FairHalfLife)
			require.InDelta(t, 10.0/8, w.tenants["loud"].used.recent(time.Now(), w.seconds(time.Now())), 0.001)
			require.InDelta(t, 10.0/8, w.used.recent(time.Now(), w.seconds(time.Now())), 0.001)
		})
	})
	t.Run("AQuietNeighbourWaitsForOneCallAtMostHoweverMuchOthersHaveWaiting", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			loud := consumerOf("loud", works(10*time.Millisecond))
			quiet := consumerOf("quiet", works(10*time.Millisecond))
			loud.Concurrency = limits.InFlightMessages
			quiet.Tenant, quiet.Topic = "small", "other"
			r := newRig(t, loud, quiet)
			r.publish(4000)
			r.run()
			time.Sleep(time.Second)
			var worst time.Duration
			for range 50 {
				m := r.message("other", "x")
				m.Tenant = "small"
				r.queue.publish(sealed(t, r.context, m))
				start := time.Now()
				for done := false; !done; {
					time.Sleep(time.Millisecond)
					r.queue.look(func() { done = r.queue.acked[len(r.queue.acked)-1] == m.ID })
				}
				worst = max(worst, time.Since(start))
				time.Sleep(7 * time.Millisecond)
			}
			require.LessOrEqual(t, worst, 21*time.Millisecond, "its own call, and the rest of one of the other's")
			r.halt()
		})
	})
	t.Run("SharesThatCannotBeAreRefused", func(t *testing.T) {
		r := newRig(t, consumerOf("c", ends(ok())))
		r.options.Shares = map[string]Share{"a": {Weight: -1, FloorPercent: 60}, "b": {Weight: limits.FairWeight + 1, FloorPercent: 50}, "c": {FloorPercent: 101}}
		_, err := New(r.options)
		for _, text := range []string{`"a": weight -1`, `"b": weight 1001: want 1 to 1000`, `"c": floor of 101%`, "make 211%: want at most 100"} {
			require.ErrorContains(t, err, text)
		}
	})
}
