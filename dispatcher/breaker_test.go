package dispatcher

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/wasi/messaging"
)

func TestBreaker(t *testing.T) {
	t.Run("HoldsTheConsumerTriesOneMessageAndGoesOnByItself", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var calls atomic.Int64
			var mended atomic.Bool
			c := consumerOf("c", guestFunc(func(context.Context, *messaging.Call) runtime.Outcome {
				if calls.Add(1); mended.Load() {
					return ok()
				}
				return trap()
			}))
			c.Breaker = Breaker{Percent: 50, Calls: 10}
			c.Concurrency = 10
			c.MaxAttempts = 1000
			c.Retry = Retry{Base: time.Millisecond, Cap: time.Millisecond}
			r := newRig(t, c)
			r.publish(100)
			r.run()
			time.Sleep(4 * time.Second)
			require.Equal(t, StateHolding, r.state().State)
			require.Equal(t, "circuit-open", r.state().Reason)
			begun := calls.Load()
			require.LessOrEqual(t, begun, int64(20), "those in flight when it tripped")
			time.Sleep(4 * time.Second)
			require.Equal(t, begun+1, calls.Load(), "one is tried after 5 s")
			time.Sleep(5 * time.Second)
			require.Equal(t, begun+1, calls.Load(), "it failed: twice as long")
			time.Sleep(5 * time.Second)
			require.Equal(t, begun+2, calls.Load())
			mended.Store(true)
			time.Sleep(time.Minute)
			require.Equal(t, StateRunning, r.state().State)
			r.halt()
			require.Len(t, r.queue.acked, 100)
		})
	})
	t.Run("FewFailuresAmongManyAreNone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := &circuit{Breaker: Breaker{Percent: 50, Window: time.Minute, Calls: 10}}
			for i := range 1000 {
				require.Zero(t, b.record(i%3 == 0))
			}
		})
	})
	t.Run("NothingIsSaidBeforeEnoughWereHandled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := &circuit{Breaker: Breaker{Percent: 50, Window: time.Minute, Calls: 10}}
			for range 9 {
				require.Zero(t, b.record(true))
			}
			require.Equal(t, limits.BreakerHoldMin, b.record(true))
			require.Zero(t, b.record(true), "begun before it was open")
		})
	})
	t.Run("WhatIsOlderThanTheWindowIsForgotten", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := &circuit{Breaker: Breaker{Percent: 50, Window: time.Minute, Calls: 10}}
			for range 9 {
				require.Zero(t, b.record(true))
			}
			time.Sleep(time.Minute)
			require.Zero(t, b.record(true))
		})
	})
	t.Run("TheHoldDoublesUpToItsMost", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := &circuit{Breaker: Breaker{Percent: 1, Window: time.Minute, Calls: 1}}
			for _, want := range []time.Duration{5, 10, 20, 40, 80, 160, 300, 300} {
				require.Equal(t, want*time.Second, b.record(true))
				time.Sleep(want * time.Second)
			}
			require.Zero(t, b.record(false))
			require.Equal(t, 5*time.Second, b.record(true))
		})
	})
	t.Run("WithoutOneNothingIsHeld", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, consumerOf("c", ends(trap())))
			r.publish(100)
			r.runFor(time.Minute)
			require.Len(t, r.queue.buried, 100)
		})
	})
	t.Run("OneThatCannotBeIsRefused", func(t *testing.T) {
		c := consumerOf("c", ends(ok()))
		c.Breaker = Breaker{Percent: 101, Calls: -1}
		_, err := New(newRig(t, c).options)
		require.ErrorContains(t, err, "breaker at 101%: want 0 to 100")
		require.ErrorContains(t, err, "breaker over -1 messages")
	})
}
