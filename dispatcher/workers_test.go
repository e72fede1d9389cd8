package dispatcher

import (
	"context"
	"fmt"
	goruntime "runtime"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// order ends the turns one after another and returns the labels in the order in which they were granted.
func order(turns map[string]*turn) []string {
	var out []string
	for len(turns) > 0 {
		var now string
		for label, t := range turns {
			if t.state == turnGranted {
				now = label
			}
		}
		if now == "" {
			return append(out, "stuck")
		}
		out = append(out, now)
		turns[now].done()
		delete(turns, now)
	}
	return out
}

func TestWorkers(t *testing.T) {
	t.Run("ConsumersTakeTurns", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { // nobody runs for any time
			w := newWorkers(1, nil, nil, &crew{})
			turns := map[string]*turn{}
			for _, consumer := range []string{"a", "b", "c"} {
				for i := range 3 {
					turns[fmt.Sprint(consumer, i)] = w.enqueue("t", consumer, false)
				}
			}
			require.Equal(t, []string{"a0", "b0", "c0", "a1", "b1", "c1", "a2", "b2", "c2"}, order(turns))
		})
	})
	t.Run("ATenantWithManyConsumersGetsNoMoreThanOneWithOne", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { // nobody runs for any time
			w := newWorkers(1, nil, nil, &crew{})
			turns := map[string]*turn{"x": w.enqueue("z", "x", false)}
			for _, consumer := range []string{"a", "b", "c"} {
				for i := range 2 {
					turns[fmt.Sprint(consumer, i)] = w.enqueue("many", consumer, false)
				}
			}
			for i := range 3 {
				turns[fmt.Sprint("solo", i)] = w.enqueue("one", "solo", false)
			}
			require.Equal(t, []string{"x", "a0", "solo0", "b0", "solo1", "c0", "solo2", "a1", "b1", "c1"}, order(turns))
		})
	})
	t.Run("WhoComesNowAndThenWaitsForNobodysBurst", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { // nobody runs for any time
			w := newWorkers(1, nil, nil, &crew{})
			turns := map[string]*turn{}
			for i := range 4 {
				turns[fmt.Sprint("loud", i)] = w.enqueue("t", "loud", false)
			}
			turns["loud0"].done()
			delete(turns, "loud0")
			turns["quiet"] = w.enqueue("t", "quiet", false)
			require.Equal(t, []string{"loud1", "quiet", "loud2", "loud3"}, order(turns))
		})
	})
	t.Run("ATenantRunsNoMoreGuestsThanItMay", func(t *testing.T) {
		w := newWorkers(3, nil, map[string]Caps{"small": {Running: 1}}, &crew{})
		is := func(want turnState, turns ...*turn) {
			t.Helper()
			for _, o := range turns {
				require.Equal(t, want, o.state)
			}
		}
		first, second := w.enqueue("small", "a", false), w.enqueue("small", "b", false)
		is(turnGranted, first)
		is(turnWaiting, second)
		running, held := w.ofTenant("small")
		require.Equal(t, 1, running)
		require.Positive(t, held)
		one, two := w.enqueue("large", "c", false), w.enqueue("large", "c", false)
		is(turnGranted, one, two)
		three := w.enqueue("large", "c", false)
		one.done()
		is(turnGranted, three)
		is(turnWaiting, second)
		first.done()
		is(turnGranted, second)
	})
	t.Run("WhoLeavesTheQueueTakesNoWorker", func(t *testing.T) {
		w := newWorkers(1, nil, nil, newCrew(t))
		running := w.enqueue("t", "a", false)
		leaving, staying := w.enqueue("t", "b", false), w.enqueue("t", "c", false)
		stopped, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, leaving.perform(stopped, t.Context(), func() { t.Error("it left") }), context.Canceled)
		leaving.done()
		running.done()
		require.NoError(t, staying.perform(t.Context(), t.Context(), func() {}))
		staying.done()
		staying.done()
		require.Equal(t, 1, w.free, "done twice gives one worker back")
	})
	t.Run("AStopBeatsATurnThatHasCome", func(t *testing.T) {
		w := newWorkers(1, nil, nil, newCrew(t))
		granted := w.enqueue("t", "a", false)
		held, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, granted.perform(t.Context(), held, func() { t.Error("it was stopped") }), context.Canceled)
	})
	t.Run("OneThatIsAloneWaitsForAllAndHoldsUpAll", func(t *testing.T) {
		w := newWorkers(3, nil, nil, &crew{})
		is := func(o *turn, want turnState) {
			t.Helper()
			require.Equal(t, want, o.state)
		}
		first, second := w.enqueue("t", "a", false), w.enqueue("t", "a", false)
		alone, next := w.enqueue("t", "a", true), w.enqueue("t", "a", false)
		first.done()
		is(alone, turnWaiting)
		is(next, turnWaiting)
		second.done()
		is(alone, turnGranted)
		is(next, turnWaiting)
		alone.done()
		is(next, turnGranted)

		leaves, last := w.enqueue("t", "a", true), w.enqueue("t", "a", false)
		is(last, turnWaiting)
		leaves.done()
		is(last, turnGranted)
	})
	t.Run("NobodyIsForgottenAndNoWorkerIsLost", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			total := rapid.IntRange(1, 4).Draw(t, "workers")
			w := newWorkers(total, nil, nil, &crew{})
			var open []*turn
			for range rapid.IntRange(1, 200).Draw(t, "steps") {
				if len(open) == 0 || rapid.Bool().Draw(t, "enqueue") {
					name := rapid.StringMatching("[ab]").Draw(t, "tenant")
					consumer := rapid.StringMatching("[xyz]").Draw(t, "consumer")
					open = append(open, w.enqueue(name, consumer, rapid.IntRange(0, 9).Draw(t, "alone") == 0))
				} else {
					i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
					open[i].done()
					open = append(open[:i], open[i+1:]...)
				}
				granted, alone := 0, false
				for _, o := range open {
					if o.state == turnGranted {
						granted++
						alone = alone || o.alone
					}
				}
				if w.alone == nil && granted != min(total, len(open)) || w.free != total-granted || granted == 0 && len(open) > 0 {
					t.Fatalf("%d open, %d workers: %d granted, %d free", len(open), total, granted, w.free)
				}
				if alone && granted != 1 {
					t.Fatalf("%d granted beside one that is alone", granted-1)
				}
			}
			for range len(open) {
				i := slices.IndexFunc(open, func(o *turn) bool { return o.state == turnGranted })
				if i < 0 {
					t.Fatalf("%d wait for ever", len(open))
				}
				open[i].done()
				open = slices.Delete(open, i, i+1)
			}
		})
	})
}

func TestBudget(t *testing.T) {
	t.Run("GivesWhatIsFreeAtMostWhatIsWanted", func(t *testing.T) {
		b := newBudget(room{messages: 10, bytes: 100})
		got, err := b.take(t.Context(), room{messages: 4, bytes: 1000})
		require.NoError(t, err)
		require.Equal(t, room{messages: 4, bytes: 100}, got)
		b.give(room{messages: 4, bytes: 60})
		got, err = b.take(t.Context(), room{messages: 100, bytes: 1000})
		require.NoError(t, err)
		require.Equal(t, room{messages: 10, bytes: 60}, got)
	})
	t.Run("AMessageLargerThanTheRoomIsPaidBackFirst", func(t *testing.T) {
		b := newBudget(room{messages: 10, bytes: 100})
		got, err := b.take(t.Context(), room{messages: 10, bytes: 100})
		require.NoError(t, err)
		b.give(got.less(room{messages: 1, bytes: 150}))
		require.Equal(t, room{messages: 9, bytes: -50}, b.free)
		stopped, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = b.take(stopped, room{messages: 1, bytes: 1})
		require.ErrorIs(t, err, context.Canceled)
		b.give(room{messages: 1, bytes: 150})
		require.Equal(t, room{messages: 10, bytes: 100}, b.free)
	})
	t.Run("WaitersAreServedInTheirOrder", func(t *testing.T) {
		b := newBudget(room{messages: 1, bytes: 1})
		first, err := b.take(t.Context(), room{messages: 1, bytes: 1})
		require.NoError(t, err)
		served := make(chan int)
		for i := range 3 {
			go func() {
				got, _ := b.take(t.Context(), room{messages: 1, bytes: 1})
				served <- i
				b.give(got)
			}()
			waitUntil(func() bool {
				b.mu.Lock()
				defer b.mu.Unlock()
				return len(b.waiters) == i+1
			})
		}
		b.give(first)
		for i := range 3 {
			require.Equal(t, i, <-served)
		}
	})
	t.Run("NothingIsLostWhateverWaitersDo", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			total := room{messages: rapid.IntRange(1, 5).Draw(t, "messages"), bytes: rapid.Int64Range(1, 50).Draw(t, "bytes")}
			b := newBudget(total)
			var held []room
			for range rapid.IntRange(1, 50).Draw(t, "steps") {
				if len(held) > 0 && rapid.Bool().Draw(t, "give") {
					b.give(held[0])
					held = held[1:]
					continue
				}
				ctx, cancel := context.WithCancel(context.Background())
				cancel() // takes only what is free now, or nothing
				want := room{messages: rapid.IntRange(1, 9).Draw(t, "m"), bytes: rapid.Int64Range(1, 99).Draw(t, "b")}
				if got, err := b.take(ctx, want); err == nil {
					held = append(held, got)
				}
			}
			for _, h := range held {
				b.give(h)
			}
			if b.free != total || len(b.waiters) != 0 {
				t.Fatalf("%+v of %+v is left, %d wait", b.free, total, len(b.waiters))
			}
		})
	})
}

// waitUntil spins on a condition that another goroutine is about to make true.
func waitUntil(ready func() bool) {
	for !ready() {
		goruntime.Gosched()
	}
}
