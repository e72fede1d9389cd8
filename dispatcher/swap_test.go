package dispatcher

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

// held is a guest that has to be closed, and notes when that was.
type held struct {
	guestFunc
	running atomic.Int64
	closed  atomic.Int64
	hasty   atomic.Bool // it was closed while it ran, or ran after it was closed
}

func holds(f guestFunc) *held { return &held{guestFunc: f} }

func (h *held) Invoke(ctx context.Context, call *messaging.Call) runtime.Outcome {
	h.running.Add(1)
	defer h.running.Add(-1)
	if h.closed.Load() > 0 {
		h.hasty.Store(true)
	}
	return h.guestFunc(ctx, call)
}

func (h *held) Close(context.Context) error {
	h.closed.Add(1)
	if h.running.Load() > 0 {
		h.hasty.Store(true)
	}
	return nil
}

// versionOf is a consumer of a version.
func versionOf(version string, g Guest) Consumer {
	c := consumerOf("c", g)
	c.Version = version
	return c
}

// swap swaps, and fails the test if that fails or takes time.
func (r *rig) swap(consumers ...Consumer) {
	r.t.Helper()
	start := time.Now()
	require.NoError(r.t, r.d.Swap(r.t.Context(), consumers))
	require.Zero(r.t, time.Since(start))
}

// versions returns how many messages were acknowledged by each version.
func (r *rig) versions() map[string]int {
	out := map[string]int{}
	for _, one := range r.seen.list() {
		if one.Verdict == "ack" {
			out[one.Version]++
		}
	}
	return out
}

func TestSwap(t *testing.T) {
	t.Run("ARunningDeliveryFinishesOnTheVersionThatStartedIt", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			old, next := holds(works(10*time.Second)), holds(works(time.Second))
			r := newRig(t, versionOf("v1", old))
			r.options.Workers = 2
			r.publish(1)
			r.run()
			time.Sleep(time.Second)
			r.swap(versionOf("v2", next))
			require.Equal(t, ConsumerStatus{
				Name: "c", Tenant: tenant, Topic: topic, Module: "d1ge57", Version: "v2",
				State: r.state().State, Since: r.state().Since, Draining: 1,
			}, r.state())
			r.publish(1)
			time.Sleep(2 * time.Second)
			require.Equal(t, map[string]int{"v2": 1}, r.versions(), "the new version doesn't wait for the old one")
			require.Zero(t, old.closed.Load(), "it still runs")
			time.Sleep(8 * time.Second)
			require.Equal(t, map[string]int{"v1": 1, "v2": 1}, r.versions())
			require.Zero(t, r.state().Draining)
			require.EqualValues(t, 1, old.closed.Load(), "its last delivery has ended")
			r.halt()
			require.False(t, old.hasty.Load())
			require.Zero(t, next.closed.Load(), "what is there at the end is its maker's")
			require.Len(t, r.queue.acked, 2)
			require.Empty(t, r.queue.retried)
		})
	})
	t.Run("WhatWasClaimedAndNotBegunGoesToTheNewVersionUncharged", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, versionOf("v1", holds(works(time.Second))))
			r.publish(5) // for one worker
			r.run()
			time.Sleep(500 * time.Millisecond)
			require.Equal(t, 5, r.state().InFlight)
			r.swap(versionOf("v2", holds(works(time.Second))))
			time.Sleep(10 * time.Second)
			r.halt()
			require.Equal(t, map[string]int{"v1": 1, "v2": 4}, r.versions())
			for _, one := range r.seen.list() {
				require.Equal(t, 1, one.Attempt)
			}
		})
	})
	t.Run("AConsumerThatIsAsItWasIsNotTouched", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			same := versionOf("v1", holds(works(10*time.Second)))
			r := newRig(t, same)
			r.publish(3)
			r.run()
			time.Sleep(time.Second)
			before, is := r.d.consumers[0], r.state()
			other := consumerOf("other", holds(ends(ok())))
			other.Topic = "others"
			r.swap(other, same)
			require.Same(t, before, r.d.consumers[1])
			require.Equal(t, is, r.d.Consumers()[1])
			r.swap(same)
			require.Equal(t, is, r.state())
			time.Sleep(time.Minute)
			r.halt()
			require.Empty(t, r.queue.released, "not even what waited")
			require.Len(t, r.queue.acked, 3)
		})
	})
	t.Run("ARemovedConsumerStopsAndANewOneStarts", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			old := holds(ends(ok()))
			r := newRig(t, versionOf("v1", old))
			r.run()
			synctest.Wait()
			added := consumerOf("added", holds(ends(ok())))
			added.Topic = "others"
			r.swap(added)
			r.publish(1)
			r.queue.publish(r.message("others", "x"))
			time.Sleep(time.Minute)
			require.Len(t, r.d.Consumers(), 1)
			require.Equal(t, "added", r.state().Name)
			require.Len(t, r.queue.acked, 1)
			require.Len(t, r.queue.messages, 1, "nobody takes it")
			require.EqualValues(t, 1, old.closed.Load())
			r.swap()
			require.Empty(t, r.d.Consumers())
			r.halt()
		})
	})
	t.Run("AGuestThatAnotherConsumerHasStaysOpen", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := holds(ends(ok()))
			one, two := consumerOf("one", g), consumerOf("two", g)
			two.Topic = "others"
			r := newRig(t, one, two)
			r.run()
			synctest.Wait()
			r.swap(two)
			changed := two
			changed.MaxAttempts = 7
			r.swap(changed)
			synctest.Wait()
			require.Zero(t, g.closed.Load())
			r.swap()
			synctest.Wait()
			require.EqualValues(t, 1, g.closed.Load())
			r.halt()
		})
	})
	t.Run("AFailureLeavesTheOldPlanRunning", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := holds(works(time.Second))
			r := newRig(t, versionOf("v1", g))
			r.publish(2)
			r.run()
			time.Sleep(500 * time.Millisecond)
			bad, twin := versionOf("v2", nil), versionOf("v2", nil)
			bad.Lease = time.Nanosecond
			err := r.d.Swap(t.Context(), []Consumer{bad, twin})
			require.ErrorContains(t, err, `two consumers are named "c"`)
			require.ErrorContains(t, err, "no guest")
			require.ErrorContains(t, err, "lease 1ns")
			time.Sleep(5 * time.Second)
			r.halt()
			require.Equal(t, map[string]int{"v1": 2}, r.versions())
			require.Zero(t, g.closed.Load())
		})
	})
	t.Run("BothVersionsTogetherKeepTheConcurrency", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var now, most atomic.Int64
			counts := func() Guest {
				return holds(func(ctx context.Context, call *messaging.Call) runtime.Outcome {
					most.Store(max(most.Load(), now.Add(1)))
					defer now.Add(-1)
					return works(10*time.Second)(ctx, call)
				})
			}
			one := versionOf("v1", counts())
			one.Concurrency = 1
			r := newRig(t, one)
			r.options.Workers = 8
			r.publish(20)
			r.run()
			time.Sleep(time.Second)
			two := versionOf("v2", counts())
			two.Concurrency = 1
			r.swap(two)
			time.Sleep(30 * time.Second)
			require.EqualValues(t, 1, most.Load())
			three := versionOf("v3", counts())
			three.Concurrency = 3
			r.swap(three)
			time.Sleep(time.Minute)
			require.EqualValues(t, 3, most.Load(), "and a new one holds at once")
			most.Store(0)
			four := versionOf("v4", counts())
			four.Concurrency = 2
			r.swap(four)
			time.Sleep(time.Minute)
			r.halt()
			require.Equal(t, room{messages: 2, bytes: limits.InFlightBytes}, r.d.consumers[0].slots.left())
			require.Len(t, r.queue.acked, 20)
		})
	})
	t.Run("ANewVersionOfAPausedConsumerGoesOn", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, versionOf("v1", holds(ends(runtime.Outcome{Class: runtime.ModuleFault}))))
			ids := r.publish(2)
			r.run()
			time.Sleep(time.Second)
			require.Equal(t, StatePaused, r.state().State)
			r.swap(versionOf("v2", holds(ends(ok()))))
			time.Sleep(time.Second)
			require.Equal(t, StateRunning, r.state().State)
			r.halt()
			require.ElementsMatch(t, ids, r.queue.acked)
		})
	})
	t.Run("KeysThatWereHandledAreStillKnown", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			one := versionOf("v1", holds(ends(ok())))
			one.Batch = Batch{Max: 4, Latest: true}
			one.Lease = time.Hour
			r := newRig(t, one)
			r.run()
			synctest.Wait()
			before := r.d.consumers[0].newest
			two := one
			two.Version = "v2"
			r.swap(two)
			require.Same(t, before, r.d.consumers[0].newest)
			elsewhere := two
			elsewhere.Topic = "others"
			r.swap(elsewhere)
			require.NotSame(t, before, r.d.consumers[0].newest)
			r.halt()
		})
	})
	t.Run("StoppingWaitsForOldVersionsToo", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			old := holds(works(time.Hour))
			r := newRig(t, versionOf("v1", old))
			r.publish(1)
			r.run()
			time.Sleep(time.Second)
			r.swap(versionOf("v2", holds(ends(ok()))))
			start := time.Now()
			r.halt()
			require.Equal(t, r.options.Grace, time.Since(start))
			require.EqualValues(t, 1, old.closed.Load())
			require.False(t, old.hasty.Load())
			require.Zero(t, r.queue.messages[0].attempts)
			require.ErrorIs(t, r.d.Swap(t.Context(), nil), ErrStopped)
		})
	})
	t.Run("ItReturnsWhenNothingMoreIsClaimedForTheOldVersion", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, versionOf("v1", holds(ends(ok()))))
			r.options.Queue = lateClaims{r.queue}
			r.publish(1)
			r.run()
			time.Sleep(300 * time.Millisecond)
			start := time.Now()
			require.NoError(t, r.d.Swap(t.Context(), []Consumer{versionOf("v2", holds(ends(ok())))}))
			require.Equal(t, 700*time.Millisecond, time.Since(start), "the claim that was under way")
			time.Sleep(time.Minute)
			r.halt()
			require.Equal(t, map[string]int{"v2": 1}, r.versions())
		})
	})
	t.Run("BeforeRunItSaysWithWhatThatBegins", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			old := holds(ends(ok()))
			r := newRig(t, versionOf("v1", old))
			d, err := New(r.options)
			require.NoError(t, err)
			require.NoError(t, d.Swap(t.Context(), []Consumer{versionOf("v2", holds(ends(ok())))}))
			require.EqualValues(t, 1, old.closed.Load())
			r.publish(1)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			require.NoError(t, d.Run(ctx))
			require.Equal(t, map[string]int{"v2": 1}, r.versions())
		})
	})
	t.Run("OneWaitsForAnotherAndForNoLongerThanItsContext", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.run()
			synctest.Wait()
			r.d.swapping <- struct{}{}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			require.ErrorIs(t, r.d.Swap(ctx, nil), context.DeadlineExceeded)
			<-r.d.swapping
			r.swap()
			r.halt()
		})
	})
	t.Run("ManyUnderLoadLoseAndDoubleNothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var guests []*held
			next := func(i int) Consumer {
				g := holds(works(time.Duration(i%7) * time.Millisecond))
				guests = append(guests, g)
				return versionOf(fmt.Sprint(i), g)
			}
			r := newRig(t, next(0))
			r.options.Workers = 4
			r.run()
			var ids []string
			for i := range 50 {
				ids = append(ids, r.publish(20)...)
				time.Sleep(time.Duration(i%5) * time.Millisecond)
				r.swap(next(i + 1))
			}
			time.Sleep(time.Minute)
			for i, g := range guests {
				require.Equal(t, i < 50, g.closed.Load() == 1, i)
				require.False(t, g.hasty.Load())
			}
			r.halt()
			slices.Sort(r.queue.acked)
			require.Equal(t, ids, r.queue.acked)
			require.Equal(t, room{messages: limits.HostInFlightMsgs, bytes: limits.HostInFlightBytes}, r.d.shared.hostSlots.left())
			require.Greater(t, len(r.versions()), 10)
		})
	})
}

// lateClaims is a queue whose claims take a second, whatever their context says.
type lateClaims struct{ *memQueue }

func (q lateClaims) Claim(ctx context.Context, r substrate.ClaimRequest) (substrate.ClaimResult, error) {
	time.Sleep(time.Second)
	return q.memQueue.Claim(ctx, r)
}

func TestSwapOfRealModules(t *testing.T) {
	h := newHouse(t)
	versions := make([]*runtime.Module, 6)
	for i := range versions {
		versions[i] = h.module("relay", relay(), limits.DefaultGuest()) // all of the same bytes
	}
	of := func(i int) Consumer {
		c := realConsumer("c", topic, versions[i])
		c.Version = fmt.Sprint(i)
		return c
	}
	d, err := New(Options{Queue: h.log, Context: h.context, Consumers: []Consumer{of(0)}, Observer: h, Grace: time.Second})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	for i := range versions {
		require.NoError(t, d.Swap(t.Context(), []Consumer{of(i)}))
		h.publish(topic, 20)
	}
	last := ""
	for acked := 0; acked < 20*len(versions); {
		r := h.next(func(r Receipt) bool { return r.Verdict == "ack" })
		require.Equal(t, 1, r.Attempt)
		last = r.Version
		acked++
	}
	require.Equal(t, "5", last)
	cancel()
	require.NoError(t, <-ended)
	require.EqualValues(t, 20*len(versions), h.stats(relayTopic).Published)
	for i, m := range versions {
		out := m.Invoke(t.Context(), messaging.NewCall(messaging.CallOptions{Limits: limits.DefaultGuest()}))
		require.Equal(t, i < 5, out.Class == runtime.ModuleFault, "version %d: %v", i, out.Err)
	}
}
