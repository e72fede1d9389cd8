package dispatcher

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

func TestStop(t *testing.T) {
	t.Run("RunningDeliveriesGetTheGracePeriod", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, consumerOf("c", works(8*time.Second)))
			ids := r.publish(3)
			r.run()
			time.Sleep(time.Second)
			start := time.Now()
			r.halt()
			require.Equal(t, 7*time.Second, time.Since(start), "waits for the one that runs and no longer")
			require.Equal(t, ids[:1], r.queue.acked)
			require.Len(t, r.queue.messages, 2)
			for _, m := range r.queue.messages {
				require.Zero(t, m.attempts, "what had not begun is given back, uncharged")
				require.Zero(t, m.token)
			}
		})
	})
	t.Run("ThenTheyAreCutAndReleasedUncharged", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, consumerOf("c", works(time.Hour)))
			r.publish(1)
			r.run()
			time.Sleep(time.Second)
			start := time.Now()
			r.halt()
			require.Equal(t, r.options.Grace, time.Since(start))
			require.Len(t, r.queue.released, 1)
			require.Empty(t, r.queue.released[0].Reason, "a shutdown says nothing about the message")
			require.Zero(t, r.queue.messages[0].attempts)
			require.Equal(t, "interrupted", r.seen.list()[0].Reason)
		})
	})
	t.Run("ADeliveryDoesNotOutliveALogThatIsClosedForGood", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, consumerOf("c", works(time.Second)))
			r.publish(1)
			r.run()
			time.Sleep(500 * time.Millisecond)
			r.queue.mu.Lock()
			r.queue.fail = func(string, int) error { return substrate.ErrClosed }
			r.queue.mu.Unlock()
			start := time.Now()
			r.halt()
			require.Less(t, time.Since(start), 2*time.Second)
			require.Equal(t, ReasonStorageError, r.seen.list()[0].Reason)
		})
	})
	t.Run("NothingIsClaimedAfterTheStop", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, consumerOf("c", works(5*time.Second)))
			r.publish(1)
			r.run()
			time.Sleep(time.Second)
			r.stop()
			synctest.Wait()
			r.publish(1)
			require.NoError(t, <-r.ended)
			require.Equal(t, 1, r.queue.claims)
			require.Equal(t, StateStopped, r.state().State)
		})
	})
	t.Run("ASecondRunIsRefused", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.run()
			synctest.Wait()
			require.ErrorIs(t, r.d.Run(t.Context()), ErrStarted)
			r.halt()
		})
	})
	t.Run("AnIdleDispatcherStopsAtOnce", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, consumerOf("c", ends(ok())))
			start := time.Now()
			r.runFor(time.Second)
			require.Equal(t, time.Second, time.Since(start))
		})
	})
}

func TestConcurrency(t *testing.T) {
	t.Run("OneClaimsTheNextOnlyAfterTheLastWasSettled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := consumerOf("c", works(time.Second))
			c.Concurrency = 1
			r := newRig(t, c)
			r.options.Workers = 4
			ids := r.publish(5)
			r.run()
			time.Sleep(2500 * time.Millisecond)
			require.Equal(t, 1, r.state().InFlight)
			r.queue.look(func() { require.Equal(t, ids[:2], r.queue.acked) })
			time.Sleep(3 * time.Second)
			r.halt()
			require.Equal(t, ids, r.queue.acked, "in order")
		})
	})
	t.Run("NoMoreGuestsRunThanThereAreWorkers", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var now, most atomic.Int64
			r := newRig(t, consumerOf("c", guestFunc(func(ctx context.Context, _ *messaging.Call) runtime.Outcome {
				most.Store(max(most.Load(), now.Add(1)))
				sleep(ctx, time.Second)
				now.Add(-1)
				return ok()
			})))
			r.options.Workers = 3
			r.publish(20)
			r.runFor(time.Minute)
			require.EqualValues(t, 3, most.Load())
			require.Len(t, r.queue.acked, 20)
		})
	})
	t.Run("ABurstOfOneConsumerDoesNotDelayAnothersStart", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var quietAt time.Duration
			start := time.Now()
			quiet := consumerOf("quiet", guestFunc(func(context.Context, *messaging.Call) runtime.Outcome {
				quietAt = time.Since(start)
				return ok()
			}))
			quiet.Topic = "other"
			r := newRig(t, consumerOf("loud", works(time.Second)), quiet)
			r.publish(60)
			r.run()
			time.Sleep(10*time.Second + 500*time.Millisecond)
			r.queue.publish(r.message("other", "x"))
			time.Sleep(2 * time.Minute)
			r.halt()
			require.Equal(t, 11*time.Second, quietAt, "it waits for the one that runs, not for those that wait")
			require.Len(t, r.queue.acked, 61)
		})
	})
	t.Run("InFlightIsBoundedByBytes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, consumerOf("c", works(time.Second)))
			d, err := New(r.options)
			require.NoError(t, err)
			require.Equal(t, room{messages: 128, bytes: 64 << 20}, d.consumers[0].slots.free)
			require.Equal(t, room{messages: 16384, bytes: 256 << 20}, d.consumers[0].hostSlots.free)
			r.publish(5)
			r.d = d
			ctx, cancel := context.WithCancel(t.Context())
			go func() { r.ended <- d.Run(ctx) }()
			synctest.Wait()
			left := d.consumers[0].hostSlots.left()
			require.Equal(t, room{messages: 16384 - 5, bytes: 256<<20 - 5*int64(len("payload"))}, left)
			time.Sleep(10 * time.Second)
			require.Equal(t, room{messages: 16384, bytes: 256 << 20}, d.consumers[0].hostSlots.left(), "all is given back")
			cancel()
			require.NoError(t, <-r.ended)
		})
	})
}

// left returns what is free.
func (b *budget) left() room {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.free
}
