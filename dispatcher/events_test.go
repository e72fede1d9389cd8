package dispatcher

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
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

// watched is a consumer that tells of everything.
func watched(g Guest) Consumer {
	c := consumerOf("c", g)
	c.Events = Events{Pickup: "audit/pickup", Success: "audit/success", Death: "audit/death"}
	return c
}

// eventsTo returns what was told to a topic.
func (r *rig) eventsTo(topicName string) (told []substrate.Message) {
	r.queue.look(func() {
		for _, m := range append(append([]substrate.Message(nil), r.queue.published...), r.queue.alone...) {
			if m.Topic == topicName {
				told = append(told, m)
			}
		}
	})
	return told
}

// outcomes returns what the observer was told of events of a kind: "" for each that was published.
func (r *rig) outcomes(k EventKind) (failures []string) {
	r.seen.mu.Lock()
	defer r.seen.mu.Unlock()
	for _, e := range r.seen.events {
		if e.Kind == k {
			failures = append(failures, e.Failure)
		}
	}
	return failures
}

func dataOf(t *testing.T, m substrate.Message) eventData {
	t.Helper()
	var e eventEnvelope
	require.NoError(t, json.Unmarshal(m.Payload, &e))
	return e.Data
}

func TestEvents(t *testing.T) {
	secret := "s3cret of the guest"
	fails := ends(runtime.Outcome{Class: runtime.GuestError, Detail: "other", GuestText: secret, FuelUsed: 7, Wall: time.Millisecond})

	t.Run("SuccessIsInTheCommitOfTheAcknowledgement", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, watched(ends(runtime.Outcome{Class: runtime.OK, FuelUsed: 5})))
			ids := r.publish(1)
			inCommit := 0
			r.queue.fail = func(call string, published int) error {
				if call == "settle" {
					inCommit = published
				}
				return nil
			}
			r.runFor(time.Second)
			require.Equal(t, 1, inCommit)
			told := r.eventsTo("audit/success")
			require.Len(t, told, 1)
			data := dataOf(t, told[0])
			require.Equal(t, eventData{
				Tenant: tenant, Topic: topic, Message: ids[0], Consumer: "c", Attempt: 1, Verdict: "ack", Module: "d1ge57", Version: "v1", Fuel: 5,
			}, data)
			require.Empty(t, r.eventsTo("audit/death"))
			require.Equal(t, []string{""}, r.outcomes(EventSuccess))
			require.Zero(t, r.seen.list()[0].Published, "an event is none of the guest's")
		})
	})
	t.Run("DeathIsInTheCommitOfTheBurial", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, watched(fails))
			r.publish(1)
			r.runFor(time.Minute)
			require.Len(t, r.queue.buried, 1)
			told := r.eventsTo("audit/death")
			require.Len(t, told, 1)
			data := dataOf(t, told[0])
			require.Equal(t, "bury", data.Verdict)
			require.Equal(t, "guest-error: other", data.Reason)
			require.Equal(t, 3, data.Attempt)
			require.EqualValues(t, 7, data.Fuel)
			require.Equal(t, time.Millisecond, data.Wall)
			require.Empty(t, r.eventsTo("audit/success"))
		})
	})
	t.Run("PickupIsOfEachAttempt", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, watched(fails))
			r.publish(1)
			r.runFor(time.Minute)
			var attempts []int
			for _, m := range r.eventsTo("audit/pickup") {
				data := dataOf(t, m)
				require.Empty(t, data.Verdict)
				require.Equal(t, "d1ge57", data.Module)
				attempts = append(attempts, data.Attempt)
			}
			require.Equal(t, []int{1, 2, 3}, attempts)
		})
	})
	t.Run("PickupIsThereBeforeTheAttemptIsSettled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, watched(ends(ok())))
			r.publish(1)
			slow := slowPublish{r.queue}
			r.options.Queue = slow
			before := -1
			r.queue.fail = func(call string, _ int) error {
				if call == "settle" {
					before = len(r.queue.alone)
				}
				return nil
			}
			r.runFor(time.Minute)
			require.Equal(t, 1, before)
		})
	})
	t.Run("NothingIsPickedUpThatDoesNotRun", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, watched(ends(ok())))
			r.options.Hooks = []Hook{{Before: func(m *substrate.Message, _ *signedctx.Verified) error {
				if m.ContentType == "rejected" {
					return errors.New("no")
				}
				return nil
			}}}
			late, stale, rejected := r.message(topic, "late"), r.message(topic, "stale"), r.message(topic, "rejected")
			late.Options.Deadline = time.Now().Add(-time.Second)
			stale.Options.Fence = substrate.Fence{Key: "k", Token: 1}
			rejected.ContentType = "rejected"
			r.queue.fences["k"] = 2
			for _, m := range []substrate.Message{late, stale, rejected} {
				r.queue.publish(sealed(t, r.context, m))
			}
			r.runFor(time.Minute)
			require.Empty(t, r.eventsTo("audit/pickup"))
			var reasons []string
			for _, m := range r.eventsTo("audit/death") {
				reasons = append(reasons, dataOf(t, m).Reason)
			}
			require.ElementsMatch(t, []string{ReasonDeadline, ReasonRejected}, reasons)
			require.Empty(t, r.eventsTo("audit/success"), "what is passed over is no success")
		})
	})
	t.Run("OfWhatIsUndecodable", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, watched(ends(ok())))
			m := r.message(topic, "payload")
			m.Envelope = []byte("no envelope")
			r.queue.publish(m)
			r.runFor(time.Minute)
			told := r.eventsTo("audit/death")
			require.Len(t, told, 1)
			require.Equal(t, ReasonDecodeFailed, dataOf(t, told[0]).Reason)
		})
	})
	t.Run("AreSealedAsTheConsumerAndCountAsAHop", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, watched(fails))
			m := r.message(topic, "payload")
			m.Parent, m.Hops = "0946684800000-0000000000000001", 4
			r.queue.publish(sealed(t, r.context, m))
			r.runFor(time.Minute)
			for kind, name := range map[EventKind]string{EventPickup: "audit/pickup", EventDeath: "audit/death"} {
				told := r.eventsTo(name)
				require.NotEmpty(t, told)
				require.Equal(t, m.ID, told[0].Parent)
				require.EqualValues(t, 5, told[0].Hops)
				who, err := r.context.Verify(told[0].Envelope, Binding(told[0]))
				require.NoError(t, err)
				require.Equal(t, tenant, who.Tenant)
				require.Equal(t, "consumer:c", who.Subject)
				require.Equal(t, []signedctx.Claim{{Key: "event", Value: string(kind)}}, who.Claims)
			}
		})
	})
	t.Run("PastSixteenHopsAreRefusedAndCounted", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, watched(ends(ok())))
			for _, hops := range []uint32{limits.Hops - 1, limits.Hops} {
				m := r.message(topic, "payload")
				m.Hops = hops
				r.queue.publish(sealed(t, r.context, m))
			}
			r.runFor(time.Minute)
			require.Len(t, r.queue.acked, 2)
			require.Len(t, r.eventsTo("audit/pickup"), 1)
			require.Len(t, r.eventsTo("audit/success"), 1)
			require.ElementsMatch(t, []string{"", "hop-limit"}, r.outcomes(EventPickup))
			require.ElementsMatch(t, []string{"", "hop-limit"}, r.outcomes(EventSuccess))
		})
	})
	t.Run("OfAnEventAreNone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, watched(fails))
			m := r.message(topic, "payload")
			envelope, err := r.context.Seal(signedctx.Principal{
				Tenant: tenant, Subject: "consumer:other", Claims: []signedctx.Claim{{Key: "event", Value: "death"}},
			}, Binding(m))
			require.NoError(t, err)
			m.Envelope = envelope
			r.queue.publish(m)
			r.runFor(time.Minute)
			require.Len(t, r.queue.buried, 1)
			require.Empty(t, r.queue.published)
			require.Empty(t, r.queue.alone)
			require.Empty(t, r.seen.events, "it is no failure either")
		})
	})
	t.Run("AProducerCannotHideItsMessagesAsEvents", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, watched(ends(ok())))
			m := r.message(topic, "payload")
			m.ContentType = eventContentType
			envelope, err := r.context.Seal(signedctx.Principal{
				Tenant: tenant, Subject: "idp:mallory", Claims: []signedctx.Claim{{Key: "event", Value: "death"}},
			}, Binding(m))
			require.NoError(t, err)
			m.Envelope = envelope
			r.queue.publish(m)
			r.runFor(time.Minute)
			require.Len(t, r.eventsTo("audit/success"), 1)
		})
	})
	t.Run("HoldNothingOfGuestOrPayload", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, watched(fails))
			m := r.message(topic, "p4yload")
			m.Metadata = []substrate.Pair{{Key: "m3tadata", Value: "m3tadata"}}
			r.queue.publish(sealed(t, r.context, m))
			r.runFor(time.Minute)
			all := append(r.eventsTo("audit/pickup"), r.eventsTo("audit/death")...)
			require.Len(t, all, 4)
			for _, m := range all {
				for _, text := range []string{secret, "p4yload", "m3tadata"} {
					require.NotContains(t, string(m.Payload), text)
				}
			}
		})
	})
	t.Run("FitWhateverTheirStringsHold", func(t *testing.T) {
		long := strings.Repeat("\\", labelBytes)
		r := Receipt{
			Consumer: long, Tenant: strings.Repeat("t", limits.TenantBytes), Topic: strings.Repeat("t", limits.TopicBytes),
			Lane: strings.Repeat("g", limits.GroupBytes), Message: "0946684800000-0000000000000001", Attempt: 1 << 30, Verdict: "bury",
			Reason: strings.Repeat("\\", limits.ReasonBytes), Module: strings.Repeat("f", 64), Version: long, Fuel: 1 << 60, Wall: 1 << 60, At: time.Now(),
		}
		got := cloudEvent(EventDeath, "0946684800000-0000000000000002", r)
		require.LessOrEqual(t, len(got), limits.ReceiptBytes)
		require.True(t, json.Valid(got))
	})
}

// slowPublish takes a second for what is published by itself.
type slowPublish struct{ *memQueue }

// Publish implements Queue.
func (q slowPublish) Publish(ctx context.Context, msgs ...substrate.Message) ([]substrate.Receipt, error) {
	time.Sleep(time.Second)
	return q.memQueue.Publish(ctx, msgs...)
}

func TestCloudEvent(t *testing.T) {
	got := cloudEvent(EventDeath, "0946684800000-0000000000000002", Receipt{
		Consumer: "a/b c", Tenant: "acme", Topic: "orders", Lane: "g", Message: "0946684800000-0000000000000001", Attempt: 3, Verdict: "bury",
		Reason: "guest-trap: <unreachable>", Module: "d1ge57", Version: "v1", Fuel: 5, Wall: time.Second, At: time.Unix(946684800, 5000).In(time.FixedZone("x", 3600)),
	})
	require.Equal(t, `{"specversion":"1.0","id":"0946684800000-0000000000000002","source":"/tenants/acme/consumers/a%2Fb%20c",`+
		`"type":"longshore.delivery.death","subject":"0946684800000-0000000000000001","time":"2000-01-01T00:00:00.000005Z",`+
		`"datacontenttype":"application/json","data":{"tenant":"acme","topic":"orders","message":"0946684800000-0000000000000001",`+
		`"consumer":"a/b c","group":"g","attempt":3,"verdict":"bury","reason":"guest-trap: <unreachable>","module":"d1ge57","version":"v1",`+
		`"fuel":5,"wall_ns":1000000000}}`, string(got))
}

func TestAFailedEvent(t *testing.T) {
	depth := &substrate.DepthError{Topic: "audit/success", Limit: 1, Actual: 2}

	t.Run("ForWhichThereIsNoRoomFailsNothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, watched(ends(ok())))
			r.queue.reserve = func(string, int) error { return depth }
			ids := r.publish(1)
			r.runFor(time.Minute)
			require.Equal(t, ids, r.queue.acked)
			require.Equal(t, 1, r.seen.list()[0].Attempt)
			require.Equal(t, []string{"depth-exceeded"}, r.outcomes(EventPickup))
			require.Equal(t, []string{"depth-exceeded"}, r.outcomes(EventSuccess))
			require.Empty(t, append(r.queue.published, r.queue.alone...))
		})
	})
	t.Run("BecauseOfWhichACommitIsRefusedIsLeftOut", func(t *testing.T) {
		for name, guest := range map[string]Guest{
			"OfAnAcknowledgement": ends(ok()), "OfABurial": ends(runtime.Outcome{Class: runtime.OK, Answers: []messaging.Answer{{Case: messaging.AnswerReject}}}),
		} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, watched(guest))
					r.queue.fail = func(call string, published int) error {
						if call == "settle" && published > 0 {
							return substrate.ErrStorageFull
						}
						return nil
					}
					r.publish(1)
					r.runFor(time.Minute)
					require.Equal(t, 1, len(r.queue.acked)+len(r.queue.buried))
					require.Empty(t, r.queue.released)
					require.Equal(t, []string{"storage-full"}, append(r.outcomes(EventSuccess), r.outcomes(EventDeath)...))
				})
			})
		}
	})
	t.Run("DoesNotExcuseAnOutboxThatIsRefused", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.queue.fail = func(call string, published int) error {
				if call == "settle" && published > 0 {
					return substrate.ErrStorageFull
				}
				return nil
			}
			deliverOnce(r, watched(ends(ok())))
			require.Empty(t, r.queue.acked)
			require.Len(t, r.queue.released, 1)
			require.Equal(t, "outbox-refused: storage-full", r.seen.list()[0].Reason)
		})
	})
	t.Run("OfAPickupKeepsNoGuestFromRunning", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, watched(ends(ok())))
			r.queue.fail = func(call string, _ int) error {
				if call == "publish" {
					return substrate.ErrStorageFull
				}
				return nil
			}
			ids := r.publish(1)
			r.runFor(time.Minute)
			require.Equal(t, ids, r.queue.acked)
			require.Equal(t, []string{"storage-full"}, r.outcomes(EventPickup))
			require.Equal(t, []string{""}, r.outcomes(EventSuccess))
		})
	})
	t.Run("GivesItsRoomBack", func(t *testing.T) {
		for call, events := range map[string]Events{"publish": {Pickup: "audit/events"}, "settle": {Success: "audit/events"}} {
			t.Run("IfTheCallToRefuseItIs"+call, func(t *testing.T) {
				h := newHouse(t)
				one := int64(1)
				require.NoError(t, h.log.SetDefaults(map[substrate.TopicName]substrate.Policy{{Tenant: tenant, Topic: "audit/events"}: {MaxDepth: &one}}))
				c := watched(ends(ok()))
				c.Events = events
				h.publish(topic, 1)
				stop := h.run(refusingQueue{h.log, call}, c)
				require.Equal(t, "ack", h.next(func(Receipt) bool { return true }).Verdict)
				stop()
				room, err := h.log.Reserve(tenant, "audit/events", 1)
				require.NoError(t, err)
				room.Release()
			})
		}
	})
	t.Run("IsForgottenOnceItsOutboxIsRefused", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			settles := 0
			r.queue.fail = func(call string, published int) error {
				if call != "settle" {
					return nil
				}
				if settles++; settles <= 2 { // the acknowledgement with its event, and without
					return &limits.Error{Name: limits.NameBatchBytes, Limit: 1, Actual: 2}
				}
				return nil
			}
			c := watched(ends(ok()))
			c.MaxAttempts = 1
			deliverOnce(r, c)
			require.Len(t, r.queue.buried, 1)
			require.Len(t, r.eventsTo("audit/death"), 1, "that of the burial is another")
			require.Equal(t, []string{"too-large"}, r.outcomes(EventSuccess))
		})
	})
}

// refusingQueue refuses to publish messages in one of its calls.
type refusingQueue struct {
	*substrate.Log
	call string
}

// Publish implements Queue.
func (q refusingQueue) Publish(ctx context.Context, msgs ...substrate.Message) ([]substrate.Receipt, error) {
	if q.call == "publish" {
		return nil, substrate.ErrStorageFull
	}
	return q.Log.Publish(ctx, msgs...)
}

// Settle implements Queue.
func (q refusingQueue) Settle(ctx context.Context, s []substrate.Settlement, outbox []substrate.Message) error {
	if q.call == "settle" && len(outbox) > 0 {
		return substrate.ErrStorageFull
	}
	return q.Log.Settle(ctx, s, outbox)
}

func TestAnAttemptThatRunsAgainBecauseOfAConflictIsPickedUpOnce(t *testing.T) {
	h := newHouse(t)
	h.put("n", "1")
	h.publish(topic, 1)
	var runs atomic.Int64
	c := keeper(keeps(func(s messaging.Store, _ *messaging.Call) runtime.Outcome {
		seen := read(s, "n")
		if runs.Add(1) == 1 {
			h.put("n", seen+"x")
		}
		write(s, "n", seen+"!")
		return ok()
	}))
	c.Events.Pickup = "audit/pickup"
	stop := h.run(h.log, c)
	require.Equal(t, "ack", h.next(any1).Verdict)
	stop()
	require.EqualValues(t, 2, runs.Load())
	require.EqualValues(t, 1, h.stats("audit/pickup").Published)
}

func TestEventsOfABatch(t *testing.T) {
	t.Run("AreOfEachMessage", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := watched(guestFunc(func(_ context.Context, call *messaging.Call) runtime.Outcome {
				return runtime.Outcome{Class: runtime.OK, Answers: []messaging.Answer{
					{Case: messaging.AnswerAck}, {Case: messaging.AnswerReject}, {Case: messaging.AnswerRetry},
				}}
			}))
			c.Batch, c.MaxAttempts = Batch{Max: 3}, 100
			r := newRig(t, c)
			ids := r.publish(3)
			r.run()
			time.Sleep(time.Millisecond)
			synctest.Wait()
			r.halt()
			require.Len(t, r.eventsTo("audit/pickup"), 3)
			success, death := r.eventsTo("audit/success"), r.eventsTo("audit/death")
			require.Len(t, success, 1)
			require.Equal(t, ids[0], success[0].Parent)
			require.Len(t, death, 1)
			require.Equal(t, ids[1], death[0].Parent)
		})
	})
	t.Run("OlderOnesOfAKeyDieWithTheNewest", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := watched(ends(runtime.Outcome{Class: runtime.OK, Answers: []messaging.Answer{{Case: messaging.AnswerReject}}}))
			c.Batch = Batch{Max: 3, Latest: true}
			r := newRig(t, c)
			for range 2 {
				m := r.message(topic, "payload")
				m.Options.OrderingKey = "k"
				r.queue.publish(sealed(t, r.context, m))
			}
			r.runFor(time.Minute)
			require.Len(t, r.queue.buried, 2)
			require.Len(t, r.eventsTo("audit/pickup"), 1)
			require.Len(t, r.eventsTo("audit/death"), 2)
		})
	})
}

func TestEventsThatCannotBeAreRefused(t *testing.T) {
	for topicName, want := range map[string]string{topic: "want another", "a//b": "a//b"} {
		c := consumerOf("c", ends(ok()))
		c.Events.Death = topicName
		_, err := New(Options{Queue: newMemQueue(), Context: newContext(t), Consumers: []Consumer{c}})
		require.ErrorContains(t, err, "events: death: ")
		require.ErrorContains(t, err, want)
	}
}
