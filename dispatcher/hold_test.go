package dispatcher

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

func TestHold(t *testing.T) {
	full := &substrate.DepthError{Topic: "lines", Limit: 1, Actual: 2}
	t.Run("LastsUntilTheTopicTakesAMessageAgain", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var calls atomic.Int64
			r := newRig(t, consumerOf("c", guestFunc(func(context.Context, *messaging.Call) runtime.Outcome {
				calls.Add(1)
				return ok()
			})))
			var open atomic.Bool
			var asked atomic.Int64
			r.queue.reserve = func(topic string, _ int) error {
				require.Equal(t, "lines", topic)
				if asked.Add(1); open.Load() {
					return nil
				}
				return full
			}
			r.run()
			synctest.Wait()
			c := r.d.consumers[0]
			c.condition.outboxRefused("lines")
			c.condition.hold(50*time.Millisecond, "outbox-refused: depth-exceeded")
			r.publish(10)
			time.Sleep(time.Minute)
			require.Zero(t, calls.Load(), "no guest runs for nothing")
			require.Equal(t, StateHolding, r.state().State)
			require.Equal(t, "outbox-refused: depth-exceeded", r.state().Reason)
			require.LessOrEqual(t, asked.Load(), int64(66), "about once a second")
			open.Store(true)
			time.Sleep(2 * time.Second)
			require.EqualValues(t, 10, calls.Load())
			require.Equal(t, StateRunning, r.state().State)
			r.halt()
		})
	})
	t.Run("GoesOnWithOneMessageAndThenTwiceAsMany", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var now, most atomic.Int64
			var steps []int64
			r := newRig(t, consumerOf("c", guestFunc(func(ctx context.Context, _ *messaging.Call) runtime.Outcome {
				most.Store(max(most.Load(), now.Add(1)))
				sleep(ctx, time.Second)
				now.Add(-1)
				return ok()
			})))
			r.options.Workers = 100
			r.run()
			synctest.Wait()
			c := r.d.consumers[0]
			c.condition.outboxRefused("")
			c.condition.hold(time.Millisecond, "outbox-refused: storage-full")
			r.publish(50)
			for range 3 {
				time.Sleep(time.Second)
				synctest.Wait()
				steps = append(steps, most.Load())
			}
			require.Equal(t, []int64{1, 2, 8}, steps, "each of two that went well doubles it")
			time.Sleep(10 * time.Second)
			r.halt()
			require.Len(t, r.queue.acked, 50)
		})
	})
	t.Run("RefusalsThatRanAtTheSameTimeCountAsOne", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCondition()
			require.Equal(t, 0, c.outboxRefused("a"))
			c.hold(time.Second, "x")
			require.Equal(t, 0, c.outboxRefused("a"))
			time.Sleep(time.Second)
			require.Equal(t, 1, c.outboxRefused("a"))
			c.progressed(1, 10)
			require.Equal(t, 0, c.outboxRefused("a"))
		})
	})
	t.Run("AQueueThatCannotNoteWhatRunsIsNotHammered", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, consumerOf("c", ends(ok())))
			var tries atomic.Int64
			var broken atomic.Bool
			broken.Store(true)
			r.queue.start = func() error {
				if broken.Load() {
					tries.Add(1)
					return errors.New("i/o error")
				}
				return nil
			}
			r.publish(1)
			r.run()
			time.Sleep(time.Minute)
			require.LessOrEqual(t, tries.Load(), int64(66), "one a second")
			require.GreaterOrEqual(t, tries.Load(), int64(50))
			require.Equal(t, StateUnhealthy, r.state().State, "though it claims without a fault")
			r.queue.look(func() { require.Zero(t, r.queue.messages[0].attempts, "not charged") })
			broken.Store(false)
			time.Sleep(2 * time.Second)
			r.halt()
			require.Len(t, r.queue.acked, 1)
		})
	})
}

func TestResume(t *testing.T) {
	t.Run("APausedConsumerGoesOnWithoutARestart", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var mended atomic.Bool
			r := newRig(t, consumerOf("c", guestFunc(func(context.Context, *messaging.Call) runtime.Outcome {
				if mended.Load() {
					return ok()
				}
				return runtime.Outcome{Class: runtime.ModuleFault}
			})))
			ids := r.publish(3)
			r.run()
			time.Sleep(time.Second)
			all := func(ConsumerStatus) bool { return true }
			require.Equal(t, StatePaused, r.state().State)
			require.Zero(t, r.d.Resume(func(s ConsumerStatus) bool { return s.Topic != topic }))
			require.Equal(t, 1, r.d.Resume(all))
			time.Sleep(time.Second)
			require.Equal(t, StatePaused, r.state().State, "the cause is still there")
			require.Equal(t, "module-fault", r.state().Reason)
			mended.Store(true)
			require.Equal(t, 1, r.d.Resume(all))
			time.Sleep(time.Second)
			require.Equal(t, StateRunning, r.state().State)
			require.Empty(t, r.state().Reason)
			require.Zero(t, r.d.Resume(all), "it is not paused")
			r.halt()
			require.ElementsMatch(t, ids, r.queue.acked)
			require.Equal(t, StateStopped, r.state().State)
		})
	})
	t.Run("BadABIIsCountedAnew", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, consumerOf("c", ends(runtime.Outcome{Class: runtime.BadABI})))
			r.publish(3)
			r.run()
			time.Sleep(time.Second)
			require.Equal(t, StatePaused, r.state().State)
			r.queue.look(func() { require.Len(t, r.queue.retried, 2) })
			require.Equal(t, 1, r.d.Resume(func(ConsumerStatus) bool { return true }))
			time.Sleep(300 * time.Millisecond)
			synctest.Wait()
			r.queue.look(func() { require.Greater(t, len(r.queue.retried), 2, "the first two count as theirs again") })
			r.halt()
		})
	})
}
