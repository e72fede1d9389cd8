package dispatcher

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

// prices is the topic of requests.
const prices = "prices"

// calls is a guest of Go code that the host functions end as they end a module.
func calls(h func(ctx context.Context, call *messaging.Call) runtime.Outcome) guestFunc {
	return func(ctx context.Context, call *messaging.Call) (out runtime.Outcome) {
		defer func() {
			err, isError := recover().(error)
			switch {
			case errors.Is(err, messaging.ErrInterrupted):
				out = runtime.Outcome{Class: runtime.Interrupted, Err: err}
			case errors.Is(err, messaging.ErrTimeout):
				out = runtime.Outcome{Class: runtime.Timeout, Err: err}
			case isError:
				panic(err)
			}
		}()
		return h(call.Start(ctx, nil), call)
	}
}

// answerTo is what a request came to.
type answerTo struct {
	replies []messaging.Message
	refused *messaging.PublishError
	after   time.Duration
}

func (a answerTo) texts() (texts []string) {
	for _, r := range a.replies {
		texts = append(texts, string(r.Data))
	}
	return texts
}

// asks is a guest that makes one request and is content with whatever comes of it, which it sends to got.
func asks(got chan<- answerTo, topicName string, timeout time.Duration, replies int) guestFunc {
	return calls(func(ctx context.Context, call *messaging.Call) runtime.Outcome {
		began := time.Now()
		all, refused := call.Request(ctx, topicName, messaging.Message{Data: []byte("how much?")}, timeout, replies)
		got <- answerTo{all, refused, time.Since(began)}
		return ok()
	})
}

// replies is a guest that works for a while, replies with each text to each message, and ends.
func replies(d time.Duration, end runtime.Outcome, texts ...string) guestFunc {
	return calls(func(ctx context.Context, call *messaging.Call) runtime.Outcome {
		if !sleep(ctx, d) {
			return runtime.Outcome{Class: runtime.Interrupted}
		}
		for _, m := range call.Messages() {
			for _, text := range texts {
				if refused := call.Reply(m, messaging.Message{Data: []byte(text)}); refused != nil {
					return runtime.Outcome{Class: runtime.GuestError, Detail: "other", GuestText: refused.Error()}
				}
			}
		}
		return end
	})
}

// priced is the consumer that replies.
func priced(name string, g Guest) Consumer {
	c := consumerOf(name, g)
	c.Topic = prices
	return c
}

// asking is a rig with a consumer that makes one request for each message, with a call time of a second, and others.
func asking(t *testing.T, timeout time.Duration, want int, others ...Consumer) (*rig, chan answerTo) {
	t.Helper()
	got := make(chan answerTo, 1_000)
	return newRig(t, append([]Consumer{consumerOf("shop", asks(got, prices, timeout, want))}, others...)...), got
}

func TestRequest(t *testing.T) {
	t.Run("TheReplyReachesWhoAskedOnOneWorker", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var request substrate.Message
			r, got := asking(t, 0, 1, priced("clerk", replies(50*time.Millisecond, ok(), "42")))
			r.options.Hooks = []Hook{{After: func(m *substrate.Message, _ Receipt) {
				if m.Topic == prices {
					request = *m
				}
			}}}
			id := r.publish(1)[0]
			began := time.Now()
			r.runFor(time.Second)
			a := <-got
			require.Nil(t, a.refused)
			require.Equal(t, []string{"42"}, a.texts())
			require.Equal(t, 50*time.Millisecond, a.after)
			require.Len(t, r.queue.acked, 2)

			require.Equal(t, id, request.Parent)
			require.EqualValues(t, 1, request.Hops)
			require.NotEmpty(t, request.Options.ReplyTo)
			require.Equal(t, began.Add(900*time.Millisecond), request.Options.Deadline, "after that nobody waits")
			who, err := r.context.Verify(request.Envelope, Binding(request))
			require.NoError(t, err)
			require.Equal(t, "consumer:shop", who.Subject)
			request.Options.ReplyTo += "x"
			_, err = r.context.Verify(request.Envelope, Binding(request))
			require.Error(t, err, "the seal is of the reply-to as well")

			info := a.replies[0].Info
			require.Equal(t, request.ID, info.Parent)
			require.EqualValues(t, 2, info.Hops)
			require.Equal(t, "consumer:clerk", info.Claims.Subject)
			require.Equal(t, RequestStats{Answered: 1}, r.d.Requests())
		})
	})
	t.Run("GuestsThatWaitHoldNoWorker", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, got := asking(t, 0, 1, priced("clerk", replies(20*time.Millisecond, ok(), "42")))
			r.publish(20)
			r.runFor(2 * time.Second)
			for range 20 {
				require.Equal(t, []string{"42"}, (<-got).texts())
			}
			require.Equal(t, RequestStats{Answered: 20}, r.d.Requests())
		})
	})
	t.Run("ItWaitsForAsManyRepliesAsAreExpected", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, got := asking(t, 0, 3, priced("clerk", replies(50*time.Millisecond, ok(), "1", "2", "3", "4")))
			r.publish(1)
			r.runFor(time.Second)
			a := <-got
			require.Equal(t, []string{"1", "2", "3"}, a.texts())
			require.Equal(t, 50*time.Millisecond, a.after)
			require.Equal(t, RequestStats{Answered: 1, Dropped: 1}, r.d.Requests())
		})
	})
	t.Run("FewerAreReturnedWhenTheTimeIsOver", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, got := asking(t, 300*time.Millisecond, 3, priced("clerk", replies(50*time.Millisecond, ok(), "1", "2")))
			r.publish(1)
			r.runFor(time.Second)
			a := <-got
			require.Equal(t, []string{"1", "2"}, a.texts())
			require.Equal(t, 300*time.Millisecond, a.after)
		})
	})
	t.Run("WithoutAReplyItTimesOutAndTheCallGoesOn", func(t *testing.T) {
		for asked, waits := range map[time.Duration]time.Duration{
			0: 900 * time.Millisecond, time.Hour: 900 * time.Millisecond, 950 * time.Millisecond: 900 * time.Millisecond,
			300 * time.Millisecond: 300 * time.Millisecond,
		} {
			synctest.Test(t, func(t *testing.T) {
				silent := priced("clerk", works(0))
				silent.Limits.CallDuration = 10 * time.Second
				r, got := asking(t, asked, 1, silent)
				r.publish(1)
				r.runFor(2 * time.Second)
				a := <-got
				require.Equal(t, messaging.Timeout, a.refused.Case)
				require.Equal(t, waits, a.after, "some time of the call is left")
				require.Equal(t, RequestStats{Unanswered: 1}, r.d.Requests())
				require.Len(t, r.queue.acked, 2)
			})
		}
	})
	t.Run("ARequestThatNobodyBeganInTimeIsNotHandled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ran := 0
			clerk := priced("clerk", calls(func(ctx context.Context, _ *messaging.Call) runtime.Outcome {
				ran++
				sleep(ctx, time.Second)
				return ok()
			}))
			clerk.Concurrency = 1
			r, _ := asking(t, 300*time.Millisecond, 1, clerk)
			r.options.Workers = 3
			r.publish(2)
			r.runFor(3 * time.Second)
			require.Equal(t, 1, ran)
			require.Equal(t, ReasonDeadline, r.queue.buried[0].Reason)
		})
	})
}

func TestRequestRefusal(t *testing.T) {
	refusals := map[string]struct {
		topic   string
		grants  []string
		hops    uint32
		want    messaging.PublishCase
		waiting bool
	}{
		"ATopicThatIsNotGranted":      {topic: prices, grants: []string{"other"}, want: messaging.Unauthorized},
		"ATopicWithoutAConsumer":      {topic: "nobody", grants: []string{"*"}, want: messaging.Unavailable},
		"ATopicThatCanNotBe":          {topic: "a//b", grants: []string{"*"}, want: messaging.Invalid},
		"AChainWithoutRoomForAReply":  {topic: prices, grants: []string{"*"}, hops: limits.Hops - 1, want: messaging.HopLimit},
		"AChainWithoutRoomForItself":  {topic: prices, grants: []string{"*"}, hops: limits.Hops, want: messaging.HopLimit},
		"TheLongestChainWithAReplyIs": {topic: prices, grants: []string{"*"}, hops: limits.Hops - 2, waiting: true},
	}
	for name, c := range refusals {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := make(chan answerTo, 1)
				shop := consumerOf("shop", asks(got, c.topic, 0, 1))
				shop.Publish = c.grants
				r := newRig(t, shop, priced("clerk", replies(0, ok(), "42")))
				m := r.message(topic, "payload")
				m.Hops = c.hops
				r.queue.publish(sealed(t, r.context, m))
				r.runFor(2 * time.Second)
				a := <-got
				if c.waiting {
					require.Nil(t, a.refused)
					return
				}
				require.Equal(t, c.want, a.refused.Case, a.refused)
				require.EqualValues(t, 1, r.queue.position, "nothing was published")
				require.Zero(t, r.d.Requests())
			})
		})
	}
	t.Run("ALeaseThatIsLostPublishesNothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			shop := consumerOf("shop", calls(func(ctx context.Context, call *messaging.Call) runtime.Outcome {
				sleep(ctx, 10*time.Millisecond)
				_, refused := call.Request(ctx, prices, messaging.Message{}, 0, 1)
				t.Error("the guest went on", refused)
				return ok()
			}))
			r := newRig(t, shop, priced("clerk", replies(0, ok(), "42")))
			r.publish(1)
			r.run()
			time.Sleep(5 * time.Millisecond)
			r.queue.look(func() { r.queue.messages[0].token++ }) // it is another's
			time.Sleep(time.Second)
			r.halt()
			require.Equal(t, "discard", r.seen.list()[0].Verdict)
			require.Equal(t, ReasonLeaseLost, r.seen.list()[0].Reason)
			require.EqualValues(t, 1, r.queue.position, "nothing was published")
		})
	})
	t.Run("AFaultOfTheStorageChargesNobody", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			shop := consumerOf("shop", calls(func(ctx context.Context, call *messaging.Call) runtime.Outcome {
				_, refused := call.Request(ctx, prices, messaging.Message{}, 0, 1)
				require.Equal(t, messaging.Unavailable, refused.Case)
				return runtime.Outcome{Class: runtime.GuestError, Detail: "connection"}
			}))
			r := newRig(t, shop, priced("clerk", replies(0, ok(), "42")))
			r.queue.fail = func(call string, _ int) error {
				if call == "publish" {
					return errors.New("disk on fire")
				}
				return nil
			}
			r.publish(1)
			r.runFor(time.Second)
			require.Equal(t, "outbox-refused: unavailable", r.seen.list()[0].Reason)
			require.Zero(t, r.queue.messages[0].attempts)
		})
	})
	t.Run("ATenantThatMayRunOneGuestHasNoneThatWaits", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			for running, want := range map[int]*messaging.PublishError{1: {Case: messaging.QuotaExceeded, Actual: 1}, 2: nil} {
				r, got := asking(t, 0, 1, priced("clerk", replies(0, ok(), "42")))
				r.options.Workers, r.options.Caps = 4, map[string]Caps{tenant: {Running: running}}
				r.publish(1)
				r.runFor(2 * time.Second)
				require.Equal(t, want, (<-got).refused)
			}
		})
	})
	t.Run("MoreThanATenantMayHaveWaitAreGivenBackUncharged", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			shop := consumerOf("shop", calls(func(ctx context.Context, call *messaging.Call) runtime.Outcome {
				_, refused := call.Request(ctx, prices, messaging.Message{}, 500*time.Millisecond, 1)
				if refused == nil {
					return ok()
				}
				require.Equal(t, messaging.PublishError{
					Case: messaging.QuotaExceeded, Limit: limits.TenantWaiting, Actual: limits.TenantWaiting + 1,
				}, *refused)
				return runtime.Outcome{Class: runtime.GuestError, Detail: "other"}
			}))
			shop.Concurrency = limits.TenantWaiting + 10
			shop.MaxAttempts = 1
			most := 0
			var r *rig
			clerk := priced("clerk", calls(func(ctx context.Context, call *messaging.Call) runtime.Outcome {
				sleep(ctx, 100*time.Millisecond)
				waiting := r.d.Requests().Waiting
				r.queue.look(func() { most = max(most, waiting) })
				return unless(ok(), call.Reply(call.Messages()[0], messaging.Message{}))
			}))
			clerk.Concurrency = limits.InFlightMessages
			r = newRig(t, shop, clerk)
			r.options.Workers = limits.InFlightMessages
			r.publish(limits.TenantWaiting + 10)
			r.runFor(time.Minute)
			require.Equal(t, limits.TenantWaiting, most)
			require.Empty(t, r.queue.messages)
			require.Empty(t, r.queue.buried)
			require.NotEmpty(t, r.queue.released)
		})
	})
}

// unless returns o unless a reply was refused.
func unless(o runtime.Outcome, refused *messaging.PublishError) runtime.Outcome {
	if refused != nil {
		return runtime.Outcome{Class: runtime.GuestError, Detail: "other", GuestText: refused.Error()}
	}
	return o
}

func TestRequestWhileStopping(t *testing.T) {
	t.Run("AGuestThatWaitsIsGivenBackAtOnceUncharged", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, _ := asking(t, 0, 1, priced("clerk", ends(ok())))
			r.publish(1)
			r.run()
			time.Sleep(300 * time.Millisecond)
			began := time.Now()
			r.halt()
			require.Zero(t, time.Since(began))
			require.Zero(t, r.queue.messages[0].attempts)
			last := r.seen.list()[1]
			require.Equal(t, "release interrupted", last.Verdict+" "+last.Reason)
			require.Zero(t, r.d.Requests().Waiting)
		})
	})
	t.Run("SoIsOneThatHasItsReplyAndNoWorker", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			busy := consumerOf("busy", works(5*time.Second))
			busy.Topic, busy.Limits.CallDuration = "busy", 10*time.Second
			got := make(chan answerTo, 1)
			shop := consumerOf("shop", asks(got, prices, 0, 1))
			shop.Limits.CallDuration = 20 * time.Second
			r := newRig(t, shop, priced("clerk", replies(50*time.Millisecond, ok(), "42")), busy)
			r.publish(1)
			r.run()
			time.Sleep(10 * time.Millisecond)
			r.queue.publish(r.message("busy", ""))
			time.Sleep(time.Second)
			require.Empty(t, got)
			r.halt()
			require.Empty(t, got)
			require.Len(t, r.queue.acked, 2, "the reply and what was busy")
			require.Zero(t, r.queue.messages[0].attempts)
		})
	})
	t.Run("AConsumerThatIsPausedFinishesWhatWaits", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, got := asking(t, 0, 1, priced("clerk", replies(500*time.Millisecond, ok(), "42")))
			r.publish(1)
			r.run()
			time.Sleep(100 * time.Millisecond)
			r.d.consumers[0].pause(ReasonModuleFault, nil)
			time.Sleep(time.Second)
			require.Equal(t, []string{"42"}, (<-got).texts())
			r.halt()
		})
	})
	t.Run("AVersionThatIsReplacedFinishesWhatWaits", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			clerk := priced("clerk", replies(500*time.Millisecond, ok(), "42"))
			r, got := asking(t, 0, 1, clerk)
			r.publish(1)
			r.run()
			time.Sleep(100 * time.Millisecond)
			require.NoError(t, r.d.Swap(t.Context(), []Consumer{consumerOf("shop", works(0)), clerk}))
			time.Sleep(time.Second)
			require.Equal(t, []string{"42"}, (<-got).texts())
			r.halt()
			require.Len(t, r.queue.acked, 2)
		})
	})
	t.Run("ATopicHasAConsumerOnceASwapAddedOne", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, got := asking(t, 0, 1)
			r.publish(1)
			r.run()
			time.Sleep(time.Second)
			require.Equal(t, messaging.Unavailable, (<-got).refused.Case)
			require.NoError(t, r.d.Swap(t.Context(), append(r.options.Consumers, priced("clerk", replies(0, ok(), "42")))))
			r.publish(1)
			time.Sleep(time.Second)
			require.Equal(t, []string{"42"}, (<-got).texts())
			r.halt()
		})
	})
	t.Run("WhileItWaitsItIsNotNotedAsRunning", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, _ := asking(t, 300*time.Millisecond, 1, priced("clerk", ends(ok())))
			noted := func() (n int) {
				r.queue.look(func() { n = len(r.queue.running) })
				return n
			}
			slow := r.options.Consumers[0].Guest
			r.options.Consumers[0].Guest = guestFunc(func(ctx context.Context, call *messaging.Call) runtime.Outcome {
				defer sleep(ctx, 100*time.Millisecond)
				return slow.Invoke(ctx, call)
			})
			r.publish(1)
			r.run()
			time.Sleep(200 * time.Millisecond)
			require.Zero(t, noted())
			time.Sleep(150 * time.Millisecond)
			require.Equal(t, 1, noted(), "it goes on")
			time.Sleep(time.Second)
			require.Zero(t, noted())
			require.Empty(t, r.queue.hasty)
			r.halt()
		})
	})
	t.Run("ALeaseIsExtendedWhileAGuestWaits", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, got := asking(t, 0, 1, priced("clerk", ends(ok())))
			r.options.Consumers[0].Limits.CallDuration = 10 * time.Second
			r.options.Consumers[0].Lease = 11 * time.Second
			r.publish(1)
			r.runFor(20 * time.Second)
			require.Equal(t, messaging.Timeout, (<-got).refused.Case)
			require.Positive(t, r.queue.extended)
			require.Len(t, r.queue.acked, 2)
		})
	})
}
