package dispatcher

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

func ok() runtime.Outcome { return runtime.Outcome{Class: runtime.OK} }

func trap() runtime.Outcome { return runtime.Outcome{Class: runtime.Trap, Detail: "unreachable"} }

func TestDeliver(t *testing.T) {
	t.Run("SuccessIsAcknowledgedOnce", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var calls atomic.Int64
			r := newRig(t, consumerOf("c", guestFunc(func(context.Context, *messaging.Call) runtime.Outcome {
				calls.Add(1)
				return ok()
			})))
			ids := r.publish(100)
			r.runFor(time.Second)
			require.ElementsMatch(t, ids, r.queue.acked)
			require.EqualValues(t, 100, calls.Load())
			require.Len(t, r.seen.list(), 100)
		})
	})
	t.Run("FailureIsRetriedWithBackoffAndThenBuried", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var at []time.Duration
			start := time.Now()
			r := newRig(t, consumerOf("c", guestFunc(func(context.Context, *messaging.Call) runtime.Outcome {
				at = append(at, time.Since(start))
				return trap()
			})))
			r.publish(1)
			r.runFor(time.Minute)
			require.Len(t, at, 3, "a consumer with 3 attempts runs 3 times")
			require.InDelta(t, 180*time.Millisecond, at[1]-at[0], float64(20*time.Millisecond))
			require.InDelta(t, 360*time.Millisecond, at[2]-at[1], float64(40*time.Millisecond))
			require.Len(t, r.queue.retried, 2)
			require.Len(t, r.queue.buried, 1)
			require.Equal(t, "guest-trap: unreachable", r.queue.buried[0].Reason)
		})
	})
	t.Run("WhatDoesNotCheckIsReportedWhetherItIsQuarantinedOrSkipped", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, consumerOf("c", ends(ok())))
			r.queue.putAside = substrate.ClaimResult{
				Quarantined: []substrate.QuarantineEntry{{ID: "position-7", Reason: substrate.ReasonCorrupt, Error: "the checksum does not match"}},
				Skipped:     []substrate.QuarantineEntry{{ID: "position-8", Reason: substrate.ReasonMissing, Error: "no such record"}},
			}
			r.publish(1)
			r.runFor(time.Second)
			seen := r.seen.list()
			require.Len(t, seen, 2)
			require.Equal(t, "position-7", seen[0].Message)
			require.Equal(t, VerdictQuarantine, seen[0].Verdict)
			require.Equal(t, ReasonCorrupt, seen[0].Reason)
			require.Equal(t, 1, r.logs.FilterMessage("delivery").FilterField(zap.Error(errors.New("the checksum does not match"))).Len())
			skipped := r.logs.FilterField(zap.String("message", "position-8")).All()
			require.Len(t, skipped, 1)
			require.Equal(t, zap.ErrorLevel, skipped[0].Level)
		})
	})
	t.Run("ADeadLetterKeepsTheReceiptOfItsLastRun", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := consumerOf("c", ends(runtime.Outcome{
				Class: runtime.OutOfFuel, FuelUsed: 100, Wall: time.Millisecond, PeakMemoryBytes: 65536, HostCalls: 7,
			}))
			c.MaxAttempts = 1
			r := newRig(t, c)
			ids := r.publish(1)
			r.runFor(time.Second)
			require.Len(t, r.queue.buried, 1)
			var got Receipt
			require.NoError(t, json.Unmarshal(r.queue.buried[0].Receipt, &got))
			require.False(t, got.At.IsZero())
			got.At = time.Time{}
			require.Equal(t, Receipt{
				Consumer: "c", Tenant: tenant, Topic: topic, Message: ids[0], Attempt: 1, Verdict: "bury", Reason: "out-of-fuel",
				Module: "d1ge57", Version: "v1", Fuel: 100, Wall: time.Millisecond, PeakMemoryBytes: 65536, HostCalls: 7,
			}, got)
		})
	})
	t.Run("APanicFailsOneDeliveryNotTheHost", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var calls atomic.Int64
			r := newRig(t, consumerOf("c", guestFunc(func(context.Context, *messaging.Call) runtime.Outcome {
				if calls.Add(1) == 1 {
					panic("a defect\x1b[31m")
				}
				return ok()
			})))
			r.publish(2)
			r.runFor(time.Minute)
			require.Len(t, r.queue.acked, 2)
			require.Len(t, r.queue.retried, 1)
			require.Equal(t, "host-panic", r.queue.retried[0].Reason)
			require.Equal(t, 1, r.logs.FilterMessage("the host panicked in a delivery").Len())
		})
	})
	t.Run("AttemptsThatWereUsedUpElsewhereAreReported", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, consumerOf("c", ends(ok())))
			ids := r.publish(1)
			r.queue.messages[0].attempts = 3 // as after crashes
			r.runFor(time.Second)
			got := r.seen.list()
			require.Len(t, got, 1)
			require.Equal(t, ids[0], got[0].Message)
			require.Equal(t, "max-attempts", got[0].Reason)
			require.Equal(t, "bury", got[0].Verdict)
		})
	})
	t.Run("TheTextOfAGuestGoesToItsTenantsLogAndNowhereElse", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := consumerOf("c", ends(runtime.Outcome{Class: runtime.GuestError, Detail: "other", GuestText: "no\x1b[31m such order"}))
			c.MaxAttempts = 1
			r := newRig(t, c)
			r.publish(1)
			r.runFor(time.Second)
			require.Equal(t, "guest-error: other", r.queue.buried[0].Reason)
			lines := r.logs.FilterMessage("guest wrote").All()
			require.Len(t, lines, 1)
			require.Equal(t, `no\x1b[31m such order`, lines[0].ContextMap()["line"])
			require.NotContains(t, string(r.queue.buried[0].Receipt), "such order")
		})
	})
	t.Run("OneLineForEachOutcome", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, consumerOf("c", ends(runtime.Outcome{Class: runtime.Trap, Detail: "unreachable", FuelUsed: 42})))
			ids := r.publish(1)
			r.runFor(time.Minute)
			lines := r.logs.FilterMessage("delivery").All()
			require.Len(t, lines, 3)
			got := lines[2].ContextMap()
			for key, want := range map[string]any{
				"consumer": "c", "tenant": tenant, "topic": topic, "message": ids[0], "attempt": int64(3), "verdict": "bury",
				"reason": "guest-trap: unreachable", "fuel": int64(42),
			} {
				require.Equal(t, want, got[key], key)
			}
		})
	})
}

func TestVerify(t *testing.T) {
	other := signedctx.Principal{Tenant: tenant, Subject: "local:1000"}
	for name, c := range map[string]struct {
		reason string
		forge  func(r *rig, m substrate.Message) substrate.Message
	}{
		"Missing": {"context-missing", func(_ *rig, m substrate.Message) substrate.Message {
			m.Envelope = nil
			return m
		}},
		"Malformed": {"decode-failed", func(_ *rig, m substrate.Message) substrate.Message {
			m.Envelope = []byte("rubbish")
			return m
		}},
		"Forged": {"context-forged", func(_ *rig, m substrate.Message) substrate.Message {
			envelope := append([]byte(nil), m.Envelope...)
			envelope[len(envelope)-1] ^= 1
			m.Envelope = envelope
			return m
		}},
		"OfAnotherMessage": {"context-mismatch", func(r *rig, m substrate.Message) substrate.Message {
			m.ID = r.queue.MintID()
			return m
		}},
		"ChangedPayload": {"context-mismatch", func(_ *rig, m substrate.Message) substrate.Message {
			m.Payload = []byte("changed")
			return m
		}},
		"ChangedMetadata": {"context-mismatch", func(_ *rig, m substrate.Message) substrate.Message {
			m.Metadata = []substrate.Pair{{Key: "k", Value: "w"}}
			return m
		}},
		"ChangedContentType": {"context-mismatch", func(_ *rig, m substrate.Message) substrate.Message {
			m.ContentType = "text/html"
			return m
		}},
		"ChangedHops": {"context-mismatch", func(_ *rig, m substrate.Message) substrate.Message {
			m.Hops++
			return m
		}},
		"ChangedParent": {"context-mismatch", func(_ *rig, m substrate.Message) substrate.Message {
			m.Parent = m.ID
			return m
		}},
		"OfAnotherTopic": {"context-mismatch", func(r *rig, _ substrate.Message) substrate.Message {
			moved := r.message("elsewhere", "payload")
			moved.Topic = topic
			return moved
		}},
	} {
		t.Run(name+"IsBuriedUnrun", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls atomic.Int64
				consumer := consumerOf("c", guestFunc(func(context.Context, *messaging.Call) runtime.Outcome {
					calls.Add(1)
					return ok()
				}))
				r := newRig(t, consumer)
				r.queue.publish(c.forge(r, r.message(topic, "payload")))
				good := r.publish(1)
				r.runFor(time.Second)
				require.Len(t, r.queue.buried, 1)
				require.Equal(t, c.reason, r.queue.buried[0].Reason)
				require.True(t, r.queue.buried[0].Unrun, "it is no attempt")
				require.Equal(t, good, r.queue.acked)
				require.EqualValues(t, 1, calls.Load(), "only the good one is run")
			})
		})
	}
	t.Run("ARefusedMessageHoldsNoWorkerWhileItIsSettled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ran := make(chan struct{})
			r := newRig(t, consumerOf("c", guestFunc(func(context.Context, *messaging.Call) runtime.Outcome {
				close(ran)
				return ok()
			})))
			bad := r.message(topic, "payload")
			bad.Envelope = nil
			r.queue.publish(bad)
			good := r.publish(1)
			r.options.Queue = buryLast{r.queue, ran}
			r.runFor(time.Second)
			require.Len(t, r.queue.buried, 1)
			require.Equal(t, good, r.queue.acked)
		})
	})
	t.Run("OptionalAdmitsMissingOnly", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := consumerOf("c", ends(ok()))
			c.ContextOptional = true
			r := newRig(t, c)
			missing, mismatch := r.message(topic, "a"), r.message(topic, "b")
			missing.Envelope, mismatch.Payload = nil, []byte("c")
			r.queue.publish(missing, mismatch)
			r.runFor(time.Second)
			require.Equal(t, []string{missing.ID}, r.queue.acked)
			require.Len(t, r.queue.buried, 1)
			require.Equal(t, "context-mismatch", r.queue.buried[0].Reason)
		})
	})
	t.Run("AnUnknownKeyReleasesUnchargedAndPauses", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, consumerOf("c", ends(ok())))
			stranger := newContext(t)
			m := r.message(topic, "payload")
			envelope, err := stranger.Seal(other, Binding(m))
			require.NoError(t, err)
			m.Envelope = envelope
			r.queue.publish(m)
			r.run()
			time.Sleep(time.Minute)
			require.Equal(t, StatePaused, r.state().State)
			require.Equal(t, "context-unknown-key", r.state().Reason)
			r.queue.look(func() {
				require.Len(t, r.queue.released, 1)
				require.Zero(t, r.queue.messages[0].attempts, "not charged")
			})
			r.halt()
		})
	})
}

func TestLease(t *testing.T) {
	t.Run("IsExtendedWhileTheGuestRuns", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := consumerOf("c", works(9500*time.Millisecond))
			c.Lease, c.Limits.CallDuration = 2*time.Second, time.Second
			r := newRig(t, c)
			ids := r.publish(1)
			r.runFor(20 * time.Second)
			require.Equal(t, ids, r.queue.acked)
			require.Equal(t, 9, r.queue.extended, "each second, of a lease of two")
			require.Equal(t, 1, r.seen.list()[0].Attempt)
		})
	})
	t.Run("IsExtendedWhileTheMessageWaitsForAWorker", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := consumerOf("c", works(3*time.Second))
			c.Lease, c.Limits.CallDuration = 2*time.Second, time.Second
			r := newRig(t, c)
			ids := r.publish(4)
			r.runFor(20 * time.Second)
			require.ElementsMatch(t, ids, r.queue.acked)
			for _, got := range r.seen.list() {
				require.Equal(t, 1, got.Attempt)
			}
		})
	})
	for name, fail := range map[string]error{
		"TheQueueSaysItIsLost": substrate.ErrLeaseLost,
		"ItCannotBeExtended":   errors.New("network down"),
	} {
		t.Run("GuestIsStoppedAndItsResultDiscardedWhen"+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var stopped atomic.Int64
				var calls atomic.Int64
				start := time.Now()
				c := consumerOf("c", guestFunc(func(ctx context.Context, _ *messaging.Call) runtime.Outcome {
					if calls.Add(1) > 1 {
						return ok()
					}
					<-ctx.Done()
					stopped.Store(int64(time.Since(start)))
					return ok() // a result in spite of it
				}))
				c.Lease, c.Limits.CallDuration = 2*time.Second, time.Second
				r := newRig(t, c)
				r.queue.fail = func(call string, _ int) error {
					if call == "extend" {
						return fail
					}
					return nil
				}
				r.publish(1)
				r.runFor(10 * time.Second)
				require.LessOrEqual(t, time.Duration(stopped.Load()), 2*time.Second, "stopped before the lease is over")
				got := r.seen.list() // the worker is free before the first is told of
				slices.SortFunc(got, func(a, b Receipt) int { return a.Attempt - b.Attempt })
				require.Equal(t, "discard", got[0].Verdict)
				require.Equal(t, "lease-lost", got[0].Reason)
				require.Equal(t, "ack", got[1].Verdict)
				require.Equal(t, 2, got[1].Attempt)
			})
		})
	}
	t.Run("AStorageErrorOfOneExtensionIsTriedAgain", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := consumerOf("c", works(5*time.Second))
			c.Lease, c.Limits.CallDuration = 2*time.Second, time.Second
			r := newRig(t, c)
			n := 0
			r.queue.fail = func(call string, _ int) error {
				if call == "extend" {
					if n++; n%2 == 1 {
						return errors.New("busy")
					}
				}
				return nil
			}
			ids := r.publish(1)
			r.runFor(10 * time.Second)
			require.Equal(t, ids, r.queue.acked)
		})
	})
}

func TestModuleFault(t *testing.T) {
	t.Run("ReleasesUnchargedAndPausesLoudly", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := consumerOf("bad", ends(runtime.Outcome{Class: runtime.ModuleFault, Err: errors.New("no memory")}))
			c.Concurrency = limits.ClaimMessages
			r := newRig(t, c)
			r.publish(200)
			r.run()
			time.Sleep(time.Minute)
			require.Equal(t, StatePaused, r.state().State)
			require.Equal(t, "module-fault", r.state().Reason)
			require.Zero(t, r.state().InFlight)
			r.queue.look(func() {
				require.Len(t, r.queue.messages, 200)
				for _, m := range r.queue.messages {
					require.Zero(t, m.attempts)
					require.Zero(t, m.token, "given back")
				}
				require.Equal(t, 1, r.queue.claims)
			})
			require.Equal(t, 1, r.logs.FilterMessageSnippet("consumer is paused").Len())
			r.halt()
			require.Equal(t, StateStopped, r.state().State)
		})
	})
	t.Run("OtherConsumersGoOn", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			good := consumerOf("good", ends(ok()))
			good.Topic = "other"
			r := newRig(t, consumerOf("bad", ends(runtime.Outcome{Class: runtime.ModuleFault})), good)
			r.publish(1)
			for range 50 {
				r.queue.publish(r.message("other", "x"))
			}
			r.runFor(time.Second)
			require.Len(t, r.queue.acked, 50)
		})
	})
	t.Run("ThreeMessagesWithBadABIPause", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, consumerOf("c", ends(runtime.Outcome{Class: runtime.BadABI})))
			r.publish(3)
			r.run()
			time.Sleep(time.Minute)
			require.Equal(t, StatePaused, r.state().State)
			require.Equal(t, "bad-abi", r.state().Reason)
			r.halt()
			require.Len(t, r.queue.messages, 3, "none is buried")
			require.Len(t, r.queue.retried, 2)
			require.Len(t, r.queue.released, 1)
		})
	})
	t.Run("OneMessageWithBadABIIsRetriedAndBuried", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, consumerOf("c", ends(runtime.Outcome{Class: runtime.BadABI})))
			r.publish(1)
			r.run()
			time.Sleep(time.Minute)
			require.Equal(t, StateRunning, r.state().State)
			r.halt()
			require.Len(t, r.queue.buried, 1)
			require.Equal(t, "bad-abi", r.queue.buried[0].Reason)
		})
	})
}

func TestStorageErrors(t *testing.T) {
	broken := func(calls ...string) (func(string, int) error, *atomic.Bool) {
		var on atomic.Bool
		on.Store(true)
		return func(call string, _ int) error {
			for _, c := range calls {
				if c == call && on.Load() {
					return errors.New("i/o error")
				}
			}
			return nil
		}, &on
	}
	for _, call := range []string{"wait", "claim"} {
		t.Run("TenInARowAreUnhealthyAndNothingSpins/"+call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, consumerOf("c", ends(ok())))
				fail, on := broken(call)
				var n atomic.Int64
				r.queue.fail = func(c string, published int) error {
					err := fail(c, published)
					if err != nil {
						n.Add(1)
					}
					return err
				}
				ids := r.publish(1)
				r.run()
				time.Sleep(50 + 100 + 200 + 400 + 800*time.Millisecond)
				synctest.Wait()
				require.Equal(t, StateRunning, r.state().State)
				time.Sleep(time.Minute)
				synctest.Wait()
				require.Equal(t, StateUnhealthy, r.state().State)
				require.Equal(t, "storage-error", r.state().Reason)
				require.Equal(t, 1, r.logs.FilterMessageSnippet("unhealthy").Len())
				require.LessOrEqual(t, n.Load(), int64(67), "one a second")
				on.Store(false)
				time.Sleep(2 * time.Second)
				require.Equal(t, StateRunning, r.state().State)
				r.halt()
				require.Equal(t, ids, r.queue.acked)
			})
		})
	}
	t.Run("AQueueThatWakesForNothingIsNotHammered", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, consumerOf("c", ends(ok())))
			r.options.Queue = eager{r.queue}
			r.run()
			time.Sleep(time.Minute)
			ids := r.publish(1)
			time.Sleep(2 * time.Second)
			r.halt()
			require.Equal(t, ids, r.queue.acked)
			require.LessOrEqual(t, r.queue.claims, 85, "about one a second")
		})
	})
	t.Run("ASettlementIsTriedUntilTheStorageWorks", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var calls atomic.Int64
			r := newRig(t, consumerOf("c", guestFunc(func(context.Context, *messaging.Call) runtime.Outcome {
				calls.Add(1)
				return ok()
			})))
			fail, on := broken("settle")
			r.queue.fail = fail
			ids := r.publish(1)
			r.run()
			time.Sleep(time.Minute)
			require.Equal(t, StateUnhealthy, r.state().State)
			on.Store(false)
			time.Sleep(2 * time.Second)
			r.halt()
			require.Equal(t, ids, r.queue.acked)
			require.EqualValues(t, 1, calls.Load(), "the lease was kept all the while")
		})
	})
	t.Run("ASettlementThatNeverWorksDoesNotKeepTheHostFromStopping", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, consumerOf("c", ends(ok())))
			r.queue.fail, _ = broken("settle")
			r.publish(1)
			r.run()
			time.Sleep(time.Second)
			start := time.Now()
			r.halt()
			require.LessOrEqual(t, time.Since(start), r.options.Grace+limits.SettleAtStop)
			require.Equal(t, "storage-error", r.seen.list()[0].Reason)
			require.Equal(t, "discard", r.seen.list()[0].Verdict)
		})
	})
}

// eager is a queue that says it is ready whether it is or not.
type eager struct{ *memQueue }

func (eager) WaitReady(ctx context.Context, _, _, _ string) error { return ctx.Err() }

// buryLast is a queue that buries only after a guest ran.
type buryLast struct {
	*memQueue
	ran chan struct{}
}

func (q buryLast) Settle(ctx context.Context, s []substrate.Settlement, outbox []substrate.Message) error {
	if s[0].Verdict == substrate.Bury {
		<-q.ran
	}
	return q.memQueue.Settle(ctx, s, outbox)
}
