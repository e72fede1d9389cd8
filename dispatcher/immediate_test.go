package dispatcher

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/examples/misbehaving"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

// atOnce is a consumer that publishes at once.
func atOnce(g Guest) Consumer {
	c := consumerOf("c", g)
	c.Immediate = true
	c.Retry = Retry{Base: time.Second, Cap: time.Second}
	return c
}

// line is what guests publish to "lines".
var line = messaging.Message{Data: []byte("line")}

// publishes is a guest that publishes to "lines" and then ends.
func publishes(end runtime.Outcome) guestFunc {
	return calls(func(ctx context.Context, call *messaging.Call) runtime.Outcome {
		if _, refused := call.Publish(ctx, "lines", line); refused != nil {
			return runtime.Outcome{Class: runtime.GuestError, Detail: "other", GuestText: refused.Error()}
		}
		return end
	})
}

// stored returns what is stored of a topic.
func (q *memQueue) stored(topicName string) (all []substrate.Message) {
	q.look(func() {
		for _, s := range q.messages {
			if s.message.Topic == topicName {
				all = append(all, s.message)
			}
		}
	})
	return all
}

func TestPublishAtOnce(t *testing.T) {
	t.Run("ItIsStoredBeforeTheGuestGoesOnAndIsAChildOfItsMessage", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var r *rig
			r = newRig(t, atOnce(calls(func(ctx context.Context, call *messaging.Call) runtime.Outcome {
				p, refused := call.Publish(ctx, "lines", line)
				require.Nil(t, refused)
				all := r.queue.stored("lines")
				require.Len(t, all, 1)
				require.Equal(t, all[0].ID, p.ID)
				return ok()
			})))
			m := r.message(topic, "payload")
			m.Hops = 3
			m = sealed(t, r.context, m)
			r.queue.publish(m)
			r.runFor(time.Second)
			child := r.queue.stored("lines")[0]
			requireChild(t, r.context, child, m)
			who, err := r.context.Verify(child.Envelope, Binding(child))
			require.NoError(t, err)
			require.Equal(t, "consumer:c", who.Subject)
			require.Empty(t, r.queue.published, "nothing comes with the acknowledgement")
			require.Equal(t, 1, r.seen.list()[0].Published)
		})
	})
	t.Run("ItStaysPublishedWhateverBecomesOfTheMessageAndIsRepeatedByEachRetry", func(t *testing.T) {
		for _, end := range []runtime.Outcome{
			{Class: runtime.GuestError, Detail: "other"},
			{Class: runtime.Trap, Detail: "unreachable"},
			{Class: runtime.Timeout},
			{Answers: []messaging.Answer{{Case: messaging.AnswerRetry}}},
		} {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, atOnce(publishes(end)))
				r.publish(1)
				r.runFor(time.Minute)
				require.Len(t, r.queue.buried, 1)
				require.Len(t, r.queue.stored("lines"), 3, "once for each attempt")
				for _, one := range r.seen.list() {
					require.Equal(t, 1, one.Published)
				}
			})
		}
	})
	t.Run("ALostLeasePublishesNothingAndStopsTheGuest", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, atOnce(calls(func(ctx context.Context, call *messaging.Call) runtime.Outcome {
				sleep(ctx, 10*time.Millisecond)
				_, refused := call.Publish(ctx, "lines", line)
				t.Error("the guest went on", refused)
				return ok()
			})))
			r.publish(1)
			r.run()
			time.Sleep(5 * time.Millisecond)
			r.queue.look(func() { r.queue.messages[0].token++ }) // it is another's
			time.Sleep(time.Second)
			r.halt()
			require.Equal(t, "discard lease-lost", r.seen.list()[0].Verdict+" "+r.seen.list()[0].Reason)
			require.Empty(t, r.queue.stored("lines"))
			require.Empty(t, r.queue.acked)
		})
	})
	t.Run("OneLostLeaseOfABatchPublishesNothingForAnyOfIt", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := atOnce(calls(func(ctx context.Context, call *messaging.Call) runtime.Outcome {
				sleep(ctx, 10*time.Millisecond)
				_, _ = call.Publish(ctx, "lines", line)
				t.Error("the guest went on")
				return ok()
			}))
			c.Batch = Batch{Max: 2, Window: time.Millisecond}
			r := newRig(t, c)
			r.publish(2)
			r.run()
			time.Sleep(5 * time.Millisecond)
			r.queue.look(func() { r.queue.messages[1].token++ })
			time.Sleep(5500 * time.Microsecond)
			require.Empty(t, r.queue.stored("lines"))
			r.stop()
			require.NoError(t, <-r.ended)
			require.Empty(t, r.queue.acked)
		})
	})
	t.Run("TheChainEndsAfterSixteenHops", func(t *testing.T) {
		for hops, want := range map[uint32]int{limits.Hops - 1: 1, limits.Hops: 0} {
			synctest.Test(t, func(t *testing.T) {
				c := atOnce(publishes(ok()))
				c.MaxAttempts = 1
				r := newRig(t, c)
				m := r.message(topic, "")
				m.Hops = hops
				r.queue.publish(sealed(t, r.context, m))
				r.runFor(time.Second)
				require.Len(t, r.queue.stored("lines"), want)
			})
		}
	})
	t.Run("AMessageOfABatchIsTheParentOfWhatItCaused", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := atOnce(calls(func(ctx context.Context, call *messaging.Call) runtime.Outcome {
				second := line
				second.Options = &messaging.PublishOptions{Cause: call.Messages()[1].Info.ID}
				for _, m := range []messaging.Message{second, second, line} {
					_, refused := call.Publish(ctx, "lines", m)
					require.Nil(t, refused)
				}
				return runtime.Outcome{Answers: []messaging.Answer{{Case: messaging.AnswerReject}, {Case: messaging.AnswerAck}}}
			}))
			c.Batch = Batch{Max: 2, Window: time.Millisecond}
			r := newRig(t, c)
			ids := r.publish(2)
			r.runFor(time.Second)
			var parents []string
			for _, m := range r.queue.stored("lines") {
				parents = append(parents, m.Parent)
			}
			require.Equal(t, []string{ids[1], ids[1], ids[0]}, parents, "a cause changes nothing but the parent")
			published := map[string]int{}
			for _, one := range r.seen.list() {
				published[one.Message] = one.Published
			}
			require.Equal(t, map[string]int{ids[0]: 1, ids[1]: 2}, published)
		})
	})
}

func TestPublishAtOnceRefusal(t *testing.T) {
	t.Run("ThatOfTheStorageIsTheGuestsErrorAndNoVerdict", func(t *testing.T) {
		for name, c := range map[string]struct {
			err  error
			want messaging.PublishCase
		}{
			"full":    {substrate.ErrStorageFull, messaging.StorageFull},
			"depth":   {&substrate.DepthError{Topic: "lines", Limit: 1, Actual: 2}, messaging.DepthExceeded},
			"fault":   {errors.New("disk on fire"), messaging.Unavailable},
			"deleted": {substrate.ErrNotFound, messaging.Unavailable},
			"large":   {&limits.Error{Name: limits.NameBatchBytes, Limit: 1, Actual: 2}, messaging.TooLarge},
		} {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, atOnce(calls(func(ctx context.Context, call *messaging.Call) runtime.Outcome {
					_, refused := call.Publish(ctx, "lines", line)
					require.Equal(t, c.want, refused.Case, name)
					return ok() // it doesn't mind
				})))
				r.queue.fail = func(call string, _ int) error {
					if call == "publish" {
						return c.err
					}
					return nil
				}
				r.publish(1)
				r.runFor(time.Second)
				require.Len(t, r.queue.acked, 1)
				require.Zero(t, r.seen.list()[0].Published)
			})
		}
	})
	t.Run("AGuestThatGivesUpBecauseOfItIsNotCharged", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, atOnce(publishes(ok())))
			full := true
			r.queue.fail = func(call string, _ int) error {
				if call == "publish" && full {
					return substrate.ErrStorageFull
				}
				return nil
			}
			r.publish(1)
			r.run()
			time.Sleep(10 * time.Millisecond)
			require.Equal(t, "outbox-refused: storage-full", r.seen.list()[0].Reason)
			require.Equal(t, StateHolding, r.state().State)
			r.queue.look(func() { require.Zero(t, r.queue.messages[0].attempts); full = false })
			time.Sleep(time.Second)
			r.halt()
			require.Len(t, r.queue.acked, 1)
			require.Len(t, r.queue.stored("lines"), 1)
			require.Equal(t, 0, r.d.consumers[0].condition.refusals, "it got through")
		})
	})
	t.Run("GrantsAreLookedAt", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := atOnce(calls(func(ctx context.Context, call *messaging.Call) runtime.Outcome {
				_, refused := call.Publish(ctx, "lines", line)
				require.Equal(t, messaging.Unauthorized, refused.Case)
				return ok()
			}))
			c.Publish = []string{"other"}
			r := newRig(t, c)
			r.publish(1)
			r.runFor(time.Second)
			require.Empty(t, r.queue.stored("lines"))
		})
	})
}

// slowDisk makes each publish of a guest take as long as it says.
type slowDisk struct {
	*memQueue
	takes func() time.Duration
}

func (q slowDisk) PublishHeld(ctx context.Context, held []substrate.Lease, msgs ...substrate.Message) ([]substrate.Receipt, error) {
	if !sleep(ctx, q.takes()) {
		return nil, ctx.Err()
	}
	return q.memQueue.PublishHeld(ctx, held, msgs...)
}

func TestWhileAGuestPublishesAtOnce(t *testing.T) {
	taking := func(t *testing.T, d time.Duration, c Consumer) *rig {
		t.Helper()
		r := newRig(t, c)
		r.options.Queue = slowDisk{r.queue, func() time.Duration { return d }}
		return r
	}
	t.Run("OthersUseItsWorker", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := taking(t, 500*time.Millisecond, atOnce(publishes(ok())))
			r.publish(10)
			r.run()
			time.Sleep(501 * time.Millisecond)
			require.Len(t, r.queue.stored("lines"), 10, "they were all published beside each other, with one worker")
			r.halt()
		})
	})
	t.Run("AtMostSoManyLeaveTheirWorker", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := atOnce(publishes(ok()))
			c.Concurrency = 2 * limits.PublishingGuests
			r := taking(t, 500*time.Millisecond, c)
			r.publish(2 * limits.PublishingGuests)
			r.run()
			time.Sleep(501 * time.Millisecond)
			require.Len(t, r.queue.stored("lines"), limits.PublishingGuests+1, "the next one kept its worker")
			time.Sleep(time.Minute)
			r.halt()
			require.Len(t, r.queue.acked, 2*limits.PublishingGuests)
			require.Zero(t, r.d.shared.workers.publishing)
		})
	})
	t.Run("NothingRunsBesideOneThatIsAlone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := taking(t, 500*time.Millisecond, atOnce(publishes(ok())))
			r.publish(3)
			r.queue.messages[0].suspect = true
			r.run()
			time.Sleep(501 * time.Millisecond)
			require.Len(t, r.queue.stored("lines"), 1)
			time.Sleep(500 * time.Millisecond)
			require.Len(t, r.queue.stored("lines"), 3)
			r.halt()
		})
	})
	t.Run("TheTimeOfItsCallGoesOnAndEndsIt", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := atOnce(publishes(ok()))
			c.MaxAttempts = 1
			r := taking(t, time.Hour, c)
			r.publish(1)
			r.run()
			time.Sleep(1100 * time.Millisecond)
			r.halt()
			require.Equal(t, "timeout", r.queue.buried[0].Reason)
		})
	})
	t.Run("ItIsNotNotedAsRunning", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := taking(t, 500*time.Millisecond, atOnce(calls(func(ctx context.Context, call *messaging.Call) runtime.Outcome {
				_, _ = call.Publish(ctx, "lines", line)
				sleep(ctx, 100*time.Millisecond)
				return ok()
			})))
			noted := func() (n int) {
				r.queue.look(func() { n = len(r.queue.running) })
				return n
			}
			r.publish(1)
			r.run()
			time.Sleep(200 * time.Millisecond)
			require.Zero(t, noted(), "a crash charges what runs")
			time.Sleep(350 * time.Millisecond)
			require.Equal(t, 1, noted())
			r.halt()
			require.Empty(t, r.queue.hasty)
		})
	})
	t.Run("AStopLetsItGoOnForTheGracePeriod", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := taking(t, 500*time.Millisecond, atOnce(publishes(ok())))
			r.publish(1)
			r.run()
			time.Sleep(100 * time.Millisecond)
			r.halt()
			require.Len(t, r.queue.acked, 1)
			require.Len(t, r.queue.stored("lines"), 1)
		})
	})
	t.Run("TheEndOfTheGracePeriodGivesItBackUncharged", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := atOnce(publishes(ok()))
			c.Limits.CallDuration = 25 * time.Second
			r := taking(t, time.Hour, c)
			r.options.Grace = 100 * time.Millisecond
			r.publish(1)
			r.run()
			time.Sleep(100 * time.Millisecond)
			r.halt()
			require.Equal(t, "release interrupted", r.seen.list()[0].Verdict+" "+r.seen.list()[0].Reason)
		})
	})
}

// In a real log, real guests: one publishes at once and then traps, of the other the receipt is that of the log.
func TestPublishAtOnceForReal(t *testing.T) {
	h := newHouse(t)
	var trap misbehaving.Module
	for _, m := range misbehaving.All() {
		if m.Name == "publish-then-trap" {
			trap = m
		}
	}
	trap.Limits.CallDuration = 20 * time.Second
	failing := realConsumer("failing", "in/failing", h.module("trap", trap.Wasm, trap.Limits))
	good := realConsumer("good", "in/good", h.module("relay", relay(), limits.DefaultGuest()))
	again := realConsumer("again", "in/again", calls(func(ctx context.Context, call *messaging.Call) runtime.Outcome {
		once := line
		once.Options = &messaging.PublishOptions{IdempotencyKey: "k"}
		first, refused := call.Publish(ctx, "known", once)
		require.Nil(t, refused)
		second, refused := call.Publish(ctx, "known", once)
		require.Nil(t, refused)
		require.Equal(t, messaging.Published{ID: first.ID, Duplicate: true}, second)
		return ok()
	}))
	consumers := []Consumer{failing, good, again}
	for i := range consumers {
		consumers[i].Immediate = true
		h.publish(consumers[i].Topic, 1)
	}
	stop := h.run(h.log, consumers...)
	for range 4 { // two attempts of the first
		r := h.next(func(Receipt) bool { return true })
		require.Equal(t, 1, r.Published, r.Consumer)
	}
	stop()
	require.EqualValues(t, 2, h.stats(misbehaving.Topic).Published, "once for each attempt")
	require.EqualValues(t, 1, h.stats("in/failing").DeadLetters)
	require.EqualValues(t, 1, h.stats(relayTopic).Published)
	require.EqualValues(t, 1, h.stats("known").Published)
	for _, topicName := range []string{misbehaving.Topic, relayTopic, "known"} {
		_, all := h.claimed(topicName, 1)
		_, err := h.context.Verify(all[0].Envelope, Binding(all[0]))
		require.NoError(t, err)
		require.EqualValues(t, 1, all[0].Hops)
	}
}
