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
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

// WouldReserve makes memQueue a RehearsalQueue.
func (q *memQueue) WouldReserve(_ string, wanted ...substrate.Room) error {
	for _, w := range wanted {
		if err := q.reserve(w.Topic, w.PayloadBytes); err != nil {
			return err
		}
	}
	return nil
}

// FenceMark makes memQueue a RehearsalQueue.
func (q *memQueue) FenceMark(_, _, _, key string) (substrate.FenceMark, bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	token, known := q.fences[key]
	return substrate.FenceMark{Key: key, Token: token}, known, nil
}

// rehearsed is the deliveries of messages, as whoever reads them for a rehearsal makes them.
func rehearsed(msgs ...substrate.Message) (all []substrate.Delivery) {
	for i, m := range msgs {
		all = append(all, substrate.Delivery{
			Message: m, Attempt: 1, Lease: substrate.Lease{Tenant: m.Tenant, Topic: m.Topic, Position: uint64(i) + 1},
		})
	}
	return all
}

// rehearse runs messages on a version, and on what runs on the rig.
func (r *rig) rehearse(next Consumer, msgs ...substrate.Message) (now, then []Rehearsed) {
	r.t.Helper()
	r.run()
	defer r.halt()
	synctest.Wait()
	one, err := r.d.NewRehearsal(next)
	require.NoError(r.t, err)
	defer one.Close(r.t.Context())
	now, then, err = one.Run(r.t.Context(), rehearsed(msgs...))
	require.NoError(r.t, err)
	return now, then
}

// endings are the verdicts and reasons of what was rehearsed.
func endings(all []Rehearsed) (out []string) {
	for _, one := range all {
		text := one.Receipt.Verdict
		if one.Receipt.Reason != "" {
			text += " " + one.Receipt.Reason
		}
		out = append(out, text)
	}
	return out
}

// byPayload is a guest that traps on the payload "bad".
func byPayload(_ context.Context, call *messaging.Call) runtime.Outcome {
	for _, m := range call.Messages() {
		if string(m.Data) == "bad" {
			return trap()
		}
	}
	return runtime.Outcome{FuelUsed: 7}
}

func TestRehearse(t *testing.T) {
	t.Run("EachVersionGivesItsVerdictAndNothingIsSettled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, consumerOf("c", guestFunc(byPayload)))
			now, next := r.rehearse(consumerOf("c", ends(runtime.Outcome{FuelUsed: 9})), r.message(topic, "good"), r.message(topic, "bad"))
			require.Equal(t, []string{"ack", "retry guest-trap: unreachable"}, endings(now))
			require.Equal(t, []string{"ack", "ack"}, endings(next))
			require.True(t, now[0].Handled && !now[1].Handled && next[1].Handled)
			require.EqualValues(t, 7, now[0].Receipt.Fuel)
			require.EqualValues(t, 9, next[0].Receipt.Fuel)
			require.Empty(t, r.seen.list(), "nobody is told of a delivery")
			require.Empty(t, r.queue.acked)
			require.Empty(t, r.queue.retried)
			require.Zero(t, r.queue.started)
			require.Zero(t, r.queue.extended)
		})
	})
	t.Run("WithoutAVersionThatRunsOnlyTheNextIsRun", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			other := consumerOf("c", ends(ok()))
			other.Topic = "elsewhere"
			for _, runs := range [][]Consumer{nil, {consumerOf("other", ends(ok()))}, {other}} {
				now, next := newRig(t, runs...).rehearse(consumerOf("c", ends(ok())), substrate.Message{Tenant: tenant, Topic: topic})
				require.Nil(t, now)
				require.Equal(t, []string{"bury context-missing"}, endings(next))
			}
		})
	})
	t.Run("TheStepsBeforeTheGuestAreThoseOfADelivery", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.options.Hooks = []Hook{{
				Before: func(m *substrate.Message, _ *signedctx.Verified) error {
					if string(m.Payload) == "rejected" {
						return errors.New("no")
					}
					return nil
				},
				After: func(*substrate.Message, Receipt) { require.Fail(t, "told of a delivery that is none") },
			}}
			r.options.MaxAge = func(string, string) time.Duration { return time.Hour }
			change := func(f func(m *substrate.Message)) substrate.Message {
				m := r.message(topic, "x")
				f(&m)
				return sealed(t, r.context, m)
			}
			forged := r.message(topic, "x")
			forged.Payload = []byte("y")
			old := r.message(topic, "old")
			time.Sleep(2 * time.Hour)
			c := consumerOf("c", guestFunc(byPayload))
			c.Filter = `metadata["k"] == "v"`
			_, next := r.rehearse(c, forged, old,
				change(func(m *substrate.Message) { m.Options.Target = "another" }),
				change(func(m *substrate.Message) { m.Metadata = nil }),
				change(func(m *substrate.Message) { m.Options.RequiredFeatures = []string{"f"} }),
				change(func(m *substrate.Message) { m.Options.Deadline = time.Now().Add(-time.Second) }),
				r.message(topic, "rejected"), r.message(topic, "fine"))
			require.Equal(t, []string{
				"bury context-mismatch", "bury context-expired", "ack other-target", "ack filtered", "bury unsupported-feature",
				"bury deadline-exceeded", "bury rejected", "ack",
			}, endings(next))
		})
	})
	t.Run("ARedriveThatIsSealedMakesAnOldMessageYoung", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.options.MaxAge = func(string, string) time.Duration { return time.Hour }
			old := r.message(topic, "old")
			time.Sleep(2 * time.Hour)
			r.run()
			defer r.halt()
			synctest.Wait()
			one, err := r.d.NewRehearsal(consumerOf("c", ends(ok())))
			require.NoError(t, err)
			defer one.Close(t.Context())
			of := rehearsed(old)
			of[0].Operator, err = r.context.SealOperator(signedctx.Operator{Act: "local:1000", At: time.Now()}, old.Envelope, Binding(old))
			require.NoError(t, err)
			_, next, err := one.Run(t.Context(), of)
			require.NoError(t, err)
			require.Equal(t, []string{"ack"}, endings(next))
		})
	})
	t.Run("FencesAreComparedAndNotRaised", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.queue.fences["role"] = 5
			_, next := r.rehearse(consumerOf("c", ends(ok())), r.fenced(4), r.fenced(7), r.fenced(6), r.fenced(7))
			require.Equal(t, []string{"ack stale-fence", "ack", "ack stale-fence", "ack"}, endings(next))
			require.EqualValues(t, 5, r.queue.fences["role"])
		})
	})
	t.Run("ABatchIsDividedAndTheMessageThatBreaksItIsFound", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var sizes []int
			c := consumerOf("c", guestFunc(func(ctx context.Context, call *messaging.Call) runtime.Outcome {
				sizes = append(sizes, len(call.Messages()))
				return byPayload(ctx, call)
			}))
			c.Batch, c.Lease = Batch{Max: 4}, time.Minute
			r := newRig(t)
			_, next := r.rehearse(c, r.message(topic, "a"), r.message(topic, "b"), r.message(topic, "bad"), r.message(topic, "d"), r.message(topic, "e"))
			require.Equal(t, []string{"ack", "ack", "retry guest-trap: unreachable", "ack", "ack"}, endings(next))
			require.Equal(t, []int{4, 2, 2, 1, 1, 1}, sizes)
		})
	})
	t.Run("OlderMessagesOfAKeyShareTheEndOfTheNewest", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			keyed := func(r *rig, payload, key string) substrate.Message {
				m := r.message(topic, payload)
				m.Options.OrderingKey = key
				return sealed(t, r.context, m)
			}
			c := consumerOf("c", guestFunc(byPayload))
			c.Batch, c.Lease = Batch{Max: 8, Latest: true}, time.Minute
			r := newRig(t)
			_, next := r.rehearse(c, keyed(r, "1", "a"), keyed(r, "2", "b"), keyed(r, "3", "a"), keyed(r, "bad", "b"))
			require.Equal(t, []string{"ack stale", "retry guest-trap: unreachable", "ack", "retry guest-trap: unreachable"}, endings(next))
			require.False(t, next[0].Handled)
		})
	})
	t.Run("ARequestIsRefusedAndCounted", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			got := make(chan answerTo, 1)
			r := newRig(t, priced("clerk", replies(0, ok(), "42")))
			_, next := r.rehearse(consumerOf("c", asks(got, prices, 0, 1)), r.message(topic, "x"))
			require.Equal(t, []string{"ack"}, endings(next), "the guest was content with that")
			require.Equal(t, 1, next[0].Refused)
			require.Equal(t, messaging.Unavailable, (<-got).refused.Case)
			require.Zero(t, r.d.Requests(), "it counts for nothing")
			require.Empty(t, r.queue.messages)
		})
	})
	t.Run("WhatIsPublishedAtOnceIsShownWhateverBecomesOfTheMessage", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			full := false
			r.queue.reserve = func(string, int) error {
				if full {
					return &substrate.DepthError{Topic: "lines", Limit: 1, Actual: 2}
				}
				return nil
			}
			c := consumerOf("c", calls(func(ctx context.Context, call *messaging.Call) runtime.Outcome {
				for _, text := range []string{"1", "2"} {
					p, refused := call.Publish(ctx, "lines", messaging.Message{Data: []byte(text)})
					require.Nil(t, refused)
					require.NotEmpty(t, p.ID)
				}
				full = true
				_, refused := call.Publish(ctx, "lines", messaging.Message{Data: []byte("3")})
				require.Equal(t, messaging.DepthExceeded, refused.Case)
				full = false
				return runtime.Outcome{Class: runtime.OutOfFuel}
			}))
			for _, immediate := range []bool{true, false} {
				c.Immediate = immediate
				_, next := r.rehearse(c, r.message(topic, "x"))
				require.Equal(t, []string{"retry out-of-fuel"}, endings(next))
				require.Empty(t, r.queue.messages)
				if !immediate {
					require.Empty(t, next[0].Outputs)
					require.Zero(t, next[0].Receipt.Published)
					continue
				}
				require.Len(t, next[0].Outputs, 2)
				require.Equal(t, 2, next[0].Receipt.Published)
				require.Equal(t, "2", string(next[0].Outputs[1].Payload))
			}
		})
	})
	t.Run("AReplyIsShownAndNotSent", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			request := r.message(prices, "how much?")
			request.Options.ReplyTo = "somebody"
			envelope, err := r.context.Seal(signedctx.Principal{Tenant: tenant, Subject: "consumer:shop"}, Binding(request))
			require.NoError(t, err)
			request.Envelope = envelope
			_, next := r.rehearse(priced("clerk", replies(0, ok(), "42")), request)
			require.Len(t, next[0].Replies, 1)
			require.Equal(t, "42", string(next[0].Replies[0].Data))
			require.Equal(t, 1, next[0].Receipt.Published)
			require.Zero(t, r.d.Requests())
		})
	})
	t.Run("WhatPausesAConsumerPausesNone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			fault := ends(runtime.Outcome{Class: runtime.ModuleFault, Err: errors.New("no memory")})
			r := newRig(t, consumerOf("c", ends(ok())))
			r.run()
			defer r.halt()
			synctest.Wait()
			one, err := r.d.NewRehearsal(consumerOf("c", fault))
			require.NoError(t, err)
			defer one.Close(t.Context())
			_, next, err := one.Run(t.Context(), rehearsed(r.message(topic, "x")))
			require.NoError(t, err)
			require.Equal(t, []string{"release module-fault"}, endings(next))
			require.True(t, next[0].Pauses)
			require.EqualError(t, next[0].Cause, "no memory")
			require.Equal(t, StateRunning, r.state().State)
			require.Len(t, r.d.Consumers(), 1)
		})
	})
	t.Run("WhatTheGuestSaysIsKeptAndNotLogged", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			says := ends(runtime.Outcome{Class: runtime.GuestError, Detail: "other", GuestText: "secret"})
			_, next := r.rehearse(consumerOf("c", says), r.message(topic, "x"))
			require.Equal(t, "secret", next[0].Text)
			require.Zero(t, r.logs.FilterMessage("guest wrote").Len())
		})
	})
}

func TestRehearsal(t *testing.T) {
	t.Run("GuestsStayUntilItIsClosedThoughTheyAreSwapped", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			before, next := holds(ends(ok())), holds(ends(ok()))
			r := newRig(t, consumerOf("c", before))
			r.run()
			defer r.halt()
			synctest.Wait()
			one, err := r.d.NewRehearsal(consumerOf("c", next))
			require.NoError(t, err)
			require.NoError(t, r.d.Swap(t.Context(), nil))
			synctest.Wait()
			require.Zero(t, before.closed.Load())
			now, _, err := one.Run(t.Context(), rehearsed(r.message(topic, "x")))
			require.NoError(t, err)
			require.Equal(t, []string{"ack"}, endings(now))
			one.Close(t.Context())
			one.Close(t.Context())
			require.EqualValues(t, 1, before.closed.Load())
			require.EqualValues(t, 1, next.closed.Load())
		})
	})
	t.Run("AGuestThatAConsumerHasIsNotClosedWithIt", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			guest := holds(ends(ok()))
			r := newRig(t, consumerOf("c", guest))
			r.rehearse(consumerOf("c", guest), r.message(topic, "x"))
			require.Zero(t, guest.closed.Load())
		})
	})
	t.Run("ItIsCutWhenTheDispatcherStopsWhichWaitsForIt", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.run()
			synctest.Wait()
			one, err := r.d.NewRehearsal(consumerOf("c", works(900*time.Millisecond)))
			require.NoError(t, err)
			go func() {
				time.Sleep(100 * time.Millisecond)
				r.stop()
			}()
			began := time.Now()
			_, _, err = one.Run(t.Context(), rehearsed(r.message(topic, "x")))
			require.ErrorIs(t, err, ErrStopped)
			require.Equal(t, 100*time.Millisecond, time.Since(began))
			synctest.Wait()
			require.Empty(t, r.ended, "it waits")
			one.Close(t.Context())
			require.NoError(t, <-r.ended)
			_, err = r.d.NewRehearsal(consumerOf("c", ends(ok())))
			require.ErrorIs(t, err, ErrStopped)
		})
	})
	t.Run("ItIsCutWhenWhoeverAskedIsGone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.run()
			defer r.halt()
			synctest.Wait()
			one, err := r.d.NewRehearsal(consumerOf("c", works(900*time.Millisecond)))
			require.NoError(t, err)
			defer one.Close(t.Context())
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, _, err = one.Run(ctx, rehearsed(r.message(topic, "x")))
			require.ErrorIs(t, err, context.DeadlineExceeded)
		})
	})
	t.Run("ItTakesTurnsWithTheDeliveriesOfItsConsumer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := consumerOf("c", works(100*time.Millisecond))
			c.Concurrency = 1
			r := newRig(t, c) // one worker
			r.publish(50)
			r.run()
			defer r.halt()
			time.Sleep(50 * time.Millisecond)
			one, err := r.d.NewRehearsal(consumerOf("c", works(100*time.Millisecond)))
			require.NoError(t, err)
			defer one.Close(t.Context())
			var msgs []substrate.Message
			for range 5 {
				msgs = append(msgs, r.message(topic, "x"))
			}
			done := len(r.seen.list())
			began := time.Now()
			_, _, err = one.Run(t.Context(), rehearsed(msgs...))
			require.NoError(t, err)
			worked := int(time.Since(began) / (100 * time.Millisecond))
			require.GreaterOrEqual(t, len(r.seen.list())-done, worked/2-1, "for each of its messages one was delivered")
			require.GreaterOrEqual(t, worked, 18, "the worker ran one at a time")
		})
	})
	t.Run("NothingIsRememberedOfAConsumerThatNeverRan", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.rehearse(consumerOf("c", ends(ok())), r.message(topic, "x"))
			require.Empty(t, r.d.shared.workers.tenants[tenant].consumers)
			require.Empty(t, r.d.ending)
		})
	})
	t.Run("AConsumerThatIsNotValidIsRefused", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.run()
			defer r.halt()
			synctest.Wait()
			c := consumerOf("c", ends(ok()))
			c.Lease = limits.CallDuration
			_, err := r.d.NewRehearsal(c)
			require.ErrorContains(t, err, "lease")
		})
	})
	t.Run("AQueueThatCannotBeLookedAtIsRefused", func(t *testing.T) {
		r := newRig(t)
		r.options.Queue = struct{ Queue }{r.queue}
		d, err := New(r.options)
		require.NoError(t, err)
		_, err = d.NewRehearsal(consumerOf("c", ends(ok())))
		require.ErrorIs(t, err, ErrNoRehearsal)
	})
}

// TestWhatARehearsalReads calls each method of a Queue by which something would change.
func TestWhatARehearsalReads(t *testing.T) {
	q := &unwritten{of: newMemQueue(), marks: map[string]uint64{}}
	ctx := t.Context()
	_, publish := q.Publish(ctx)
	_, held := q.PublishHeld(ctx, nil)
	_, dead := q.DeadMessage(ctx, substrate.DeadLetter{})
	_, claim := q.Claim(ctx, substrate.ClaimRequest{})
	for name, err := range map[string]error{
		"Publish": publish, "PublishHeld": held, "DeadMessage": dead, "Claim": claim, "WaitReady": q.WaitReady(ctx, "", "", ""),
		"Settle": q.Settle(ctx, nil, nil), "SettleValues": q.SettleValues(ctx, nil, nil, substrate.ValueChanges{}),
	} {
		require.ErrorIs(t, err, errUnwritten, name)
	}
}
