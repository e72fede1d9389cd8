package dispatcher

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

// batches is a guest that notes the payloads of each call, and answers by a function of them.
type batches struct {
	mu    sync.Mutex
	calls [][]string
	ends  func(ctx context.Context, payloads []string) runtime.Outcome
}

func (b *batches) guest() guestFunc {
	return func(ctx context.Context, call *messaging.Call) runtime.Outcome {
		var payloads []string
		for _, m := range call.Messages() {
			payloads = append(payloads, string(m.Data))
		}
		b.mu.Lock()
		b.calls = append(b.calls, payloads)
		b.mu.Unlock()
		return b.ends(ctx, payloads)
	}
}

func batchConsumer(g Guest, n int) Consumer {
	c := consumerOf("c", g)
	c.Batch = Batch{Max: n, Window: 20 * time.Millisecond}
	c.Limits.CallDuration = time.Second
	return c
}

// payloads publishes messages with the payloads "0" to n-1, and returns their ids.
func (r *rig) payloads(n int) []string {
	r.t.Helper()
	var ids []string
	var all []substrate.Message
	for i := range n {
		m := r.message(topic, fmt.Sprint(i))
		ids, all = append(ids, m.ID), append(all, m)
	}
	r.queue.publish(all...)
	return ids
}

func allAcked(context.Context, []string) runtime.Outcome { return ok() }

func TestBatch(t *testing.T) {
	t.Run("AClaimWaitsForTheWindowAndNoLonger", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := &batches{ends: allAcked}
			r := newRig(t, batchConsumer(b.guest(), 10))
			r.run()
			synctest.Wait()
			r.queue.publish(r.message(topic, "a"))
			time.Sleep(15 * time.Millisecond)
			r.queue.publish(r.message(topic, "b"))
			synctest.Wait()
			r.queue.look(func() { require.Zero(t, r.queue.claims, "no lease runs while it waits") })
			time.Sleep(6 * time.Millisecond)
			synctest.Wait()
			r.halt()
			require.Equal(t, [][]string{{"a", "b"}}, b.calls)
		})
	})
	t.Run("NoCallHasMoreThanTheMost", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := &batches{ends: allAcked}
			r := newRig(t, batchConsumer(b.guest(), 3))
			ids := r.payloads(7)
			r.runFor(time.Second)
			require.Equal(t, [][]string{{"0", "1", "2"}, {"3", "4", "5"}, {"6"}}, b.calls)
			require.ElementsMatch(t, ids, r.queue.acked)
			sizes := map[int]int{}
			for _, one := range r.seen.list() {
				sizes[one.Batch]++
			}
			require.Equal(t, map[int]int{3: 6, 0: 1}, sizes, "messages by how many were handled together")
		})
	})
	t.Run("EachMessageGetsTheAnswerThatIsItsOwn", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			later := time.Hour
			b := &batches{ends: func(context.Context, []string) runtime.Outcome {
				return runtime.Outcome{Answers: []messaging.Answer{
					{Case: messaging.AnswerAck}, {Case: messaging.AnswerRetry, Delay: &later}, {Case: messaging.AnswerReject}, {Case: messaging.AnswerSkip},
				}}
			}}
			c := batchConsumer(b.guest(), 10)
			c.Retry = Retry{Base: time.Hour, Cap: time.Hour}
			r := newRig(t, c)
			ids := r.payloads(5) // the last one gets no answer: that is a skip
			r.runFor(time.Second)
			came := map[string]string{}
			for _, one := range r.seen.list() {
				came[one.Message] = one.Verdict + " " + one.Reason
			}
			require.Equal(t, map[string]string{
				ids[0]: "ack ", ids[1]: "retry guest-error: retry", ids[2]: "bury rejected", ids[3]: "release skipped 1", ids[4]: "release skipped 1",
			}, came)
		})
	})
	t.Run("AnErrorOfTheHandlerRetriesAllChargedAndDividesNothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := &batches{ends: func(context.Context, []string) runtime.Outcome {
				return runtime.Outcome{Class: runtime.GuestError, Detail: "other"}
			}}
			c := batchConsumer(b.guest(), 4)
			c.Retry = Retry{Base: time.Hour, Cap: time.Hour}
			r := newRig(t, c)
			r.payloads(4)
			r.runFor(time.Second)
			require.Len(t, b.calls, 1)
			require.Len(t, r.queue.retried, 4)
		})
	})
	t.Run("WhatIsNotGenuineIsNotInTheCall", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := &batches{ends: allAcked}
			r := newRig(t, batchConsumer(b.guest(), 4))
			forged := r.message(topic, "x")
			forged.Payload = []byte("forged")
			r.queue.publish(r.message(topic, "a"), forged, r.message(topic, "b"))
			r.runFor(time.Second)
			require.Equal(t, [][]string{{"a", "b"}}, b.calls)
			require.Len(t, r.queue.buried, 1)
			require.Len(t, r.queue.acked, 2)
		})
	})
	t.Run("AShutdownGivesBackWhatIsNotDone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := &batches{ends: func(ctx context.Context, _ []string) runtime.Outcome {
				<-ctx.Done()
				return runtime.Outcome{Class: runtime.Interrupted}
			}}
			r := newRig(t, batchConsumer(b.guest(), 4))
			r.payloads(4)
			r.runFor(time.Second)
			require.Len(t, r.queue.released, 4)
			for _, m := range r.queue.messages {
				require.Zero(t, m.attempts)
			}
		})
	})
	t.Run("WhatCannotBeIsRefused", func(t *testing.T) {
		c := batchConsumer(ends(ok()), limits.CallMessages+1)
		c.Batch.Window = limits.BatchWindow + 1
		c.Lease = 2 * time.Second
		_, err := New(newRig(t, c).options)
		for _, text := range []string{"batch of 65: want 1 to 64", "batch window of 1.000000001s", "more than 3 times"} {
			require.ErrorContains(t, err, text)
		}
	})
}

func TestDivide(t *testing.T) {
	poison := func(bad ...string) func(context.Context, []string) runtime.Outcome {
		return func(_ context.Context, payloads []string) runtime.Outcome {
			for _, p := range payloads {
				for _, b := range bad {
					if p == b {
						return trap()
					}
				}
			}
			return ok()
		}
	}
	t.Run("OnlyThePoisonIsCharged", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			n := rapid.IntRange(1, limits.CallMessages).Draw(rt, "messages")
			bad := rapid.IntRange(0, n-1).Draw(rt, "poison")
			synctest.Test(t, func(t *testing.T) {
				b := &batches{ends: poison(fmt.Sprint(bad))}
				c := batchConsumer(b.guest(), n)
				c.MaxAttempts = 1
				r := newRig(t, c)
				ids := r.payloads(n)
				r.runFor(time.Second)
				require.Len(t, r.queue.buried, 1)
				require.Equal(t, "guest-trap: unreachable", r.queue.buried[0].Reason)
				require.Len(t, r.queue.acked, n-1)
				require.NotContains(t, r.queue.acked, ids[bad])
				levels := 1
				for size := n; size > 1; size = (size + 1) / 2 {
					levels++
				}
				ran := 0
				for _, call := range b.calls {
					for _, p := range call {
						if p == fmt.Sprint(bad) {
							ran++
						}
					}
				}
				require.LessOrEqual(t, ran, levels, "log₂ n + 1 levels")
			})
		})
	})
	t.Run("SeveralPoisonsAreFound", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := &batches{ends: poison("1", "6", "7")}
			c := batchConsumer(b.guest(), 8)
			c.MaxAttempts = 1
			r := newRig(t, c)
			r.payloads(8)
			r.runFor(time.Second)
			require.Len(t, r.queue.buried, 3)
			require.Len(t, r.queue.acked, 5)
		})
	})
	t.Run("WhatThereIsNoTimeToTellApartGoesAloneTheNextTime", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := &batches{}
			b.ends = func(ctx context.Context, payloads []string) runtime.Outcome {
				for _, p := range payloads {
					if p == "9" {
						sleep(ctx, time.Second)
						return runtime.Outcome{Class: runtime.Timeout}
					}
				}
				return ok()
			}
			c := batchConsumer(b.guest(), 16)
			c.MaxAttempts = 1
			r := newRig(t, c)
			r.payloads(16)
			r.run()
			time.Sleep(2900 * time.Millisecond)
			r.queue.look(func() { require.Empty(t, r.queue.buried) })
			time.Sleep(200 * time.Millisecond)
			r.queue.look(func() {
				require.NotEmpty(t, r.queue.released, "three times the time of a call is over")
				for _, s := range r.queue.released {
					require.Equal(t, "batch-divided", s.Reason)
				}
			})
			time.Sleep(10 * time.Second)
			r.halt()
			require.Len(t, r.queue.acked, 15)
			require.Len(t, r.queue.buried, 1)
			require.Contains(t, b.calls, []string{"9"}, "alone")
			require.Equal(t, "timeout", r.queue.buried[0].Reason)
		})
	})
	t.Run("HalvesAreAll", func(t *testing.T) {
		for n := 2; n < 70; n++ {
			all := make([]int, n)
			first, second := halves(all)
			require.Equal(t, n, len(first)+len(second))
			require.Contains(t, []int{0, 1}, len(first)-len(second))
		}
	})
}

func TestBatchOutbox(t *testing.T) {
	m := func(id string) *delivery {
		return &delivery{Delivery: substrate.Delivery{Message: substrate.Message{ID: id}}}
	}
	t.Run("CommitsWithWhatCausedItAndWhatHasNoCauseWithAll", func(t *testing.T) {
		o := newOutbox(t, newMemQueue(), substrate.Message{}, "*")
		o.parents = []substrate.Message{{ID: "a", Hops: 3}, {ID: "b", Hops: 5}}
		r := &run{deliveries: []*delivery{m("a"), m("b")}, outbox: o}
		for i, cause := range []string{"a", "b", ""} {
			message := messaging.Message{Data: []byte{byte('0' + i)}, Options: &messaging.PublishOptions{Cause: cause}}
			admission, refused := o.admit("out", message)
			require.Nil(t, refused)
			r.published = append(r.published, messaging.Outgoing{ID: admission.ID, Topic: "out", Message: message, Token: admission.Token})
		}
		require.True(t, r.shares())
		for acked, want := range map[string]string{"": "", "a": "0", "b": "1", "ab": "012"} {
			ids := map[string]bool{}
			for _, id := range acked {
				ids[string(id)] = true
			}
			sealed, err := r.seal(ids)
			require.NoError(t, err)
			got := ""
			for _, s := range sealed {
				got += string(s.Payload)
			}
			require.Equal(t, want, got, "acked: %s", acked)
		}
		sealed, err := r.seal(map[string]bool{"a": true, "b": true})
		require.NoError(t, err)
		require.Equal(t, "a", sealed[0].Parent)
		require.EqualValues(t, 4, sealed[0].Hops)
		require.Equal(t, "b", sealed[1].Parent)
		require.EqualValues(t, 6, sealed[2].Hops, "the longest chain of all that may have led there")
	})
}

func TestCoalesce(t *testing.T) {
	keyed := func(r *rig, payload, key string) substrate.Message {
		m := r.message(topic, payload)
		m.Options.OrderingKey = key
		return sealed(r.t, r.context, m)
	}
	latest := func(b *batches) Consumer {
		c := batchConsumer(b.guest(), 10)
		c.Batch.Latest = true
		c.MaxAttempts = 1
		return c
	}
	t.Run("OnlyTheNewestOfAKeyIsHandedOverAndTheOlderOnesShareItsEnd", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := &batches{ends: func(_ context.Context, payloads []string) runtime.Outcome {
				o := runtime.Outcome{}
				for _, p := range payloads {
					a := messaging.Answer{Case: messaging.AnswerAck}
					if p == "y2" {
						a.Case = messaging.AnswerReject
					}
					o.Answers = append(o.Answers, a)
				}
				return o
			}}
			r := newRig(t, latest(b))
			r.queue.publish(keyed(r, "x1", "x"), keyed(r, "y1", "y"), keyed(r, "x2", "x"), keyed(r, "none", ""), keyed(r, "y2", "y"), keyed(r, "x3", "x"))
			r.runFor(time.Second)
			require.Equal(t, [][]string{{"none", "y2", "x3"}}, b.calls)
			require.Len(t, r.queue.acked, 4)
			require.Len(t, r.queue.buried, 2)
			stale := 0
			for _, one := range r.seen.list() {
				if one.Reason == "stale" {
					stale++
				}
			}
			require.Len(t, r.seen.list(), 6)
			require.Equal(t, 2, stale)
		})
	})
	t.Run("OneThatComesLateIsAcknowledgedAsStale", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := &batches{ends: allAcked}
			r := newRig(t, latest(b))
			old, fresh := keyed(r, "old", "x"), keyed(r, "new", "x")
			r.queue.publish(old, fresh)
			r.queue.messages[0].until = time.Now().Add(time.Minute) // as one that is to be tried again later
			r.runFor(2 * time.Minute)
			require.Equal(t, [][]string{{"new"}}, b.calls)
			require.Len(t, r.queue.acked, 2)
			require.Equal(t, "stale", r.seen.list()[1].Reason)
		})
	})
	t.Run("WhatIsRememberedIsBounded", func(t *testing.T) {
		p := newPositions()
		at := func(key string, position uint64) *delivery {
			return &delivery{Delivery: substrate.Delivery{Lease: substrate.Lease{Position: position}, Message: substrate.Message{Options: substrate.MessageOptions{OrderingKey: key}}}}
		}
		for i := range limits.CoalescedKeys + 1 {
			p.handled(at(fmt.Sprint(i), 10))
			p.handled(at("0", 10))
		}
		require.Len(t, p.byKey, limits.CoalescedKeys)
		require.True(t, p.isStale(at("0", 9)))
		require.False(t, p.isStale(at("0", 10)), "the same again is a redelivery")
		require.False(t, p.isStale(at("1", 9)), "used longest ago")
		require.True(t, p.isStale(at("2", 9)))
	})
}
