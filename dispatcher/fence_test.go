package dispatcher

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

// fenced makes a message that carries a token of the fence key "role".
func (r *rig) fenced(token uint64) substrate.Message {
	r.t.Helper()
	m := r.message(topic, "payload")
	m.Options.Fence = substrate.Fence{Key: "role", Token: token}
	return sealed(r.t, r.context, m)
}

func TestFence(t *testing.T) {
	t.Run("ALowerTokenIsAcknowledgedUnrunAndEqualPasses", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var ran []string
			r := newRig(t, consumerOf("c", guestFunc(func(_ context.Context, call *messaging.Call) runtime.Outcome {
				ran = append(ran, "run")
				return ok()
			})))
			first, stale, equal := r.fenced(7), r.fenced(6), r.fenced(7)
			r.queue.publish(first, stale, equal)
			r.runFor(time.Second)
			require.Len(t, ran, 2)
			require.ElementsMatch(t, []string{first.ID, stale.ID, equal.ID}, r.queue.acked)
			for _, got := range r.seen.list() {
				want := ""
				if got.Message == stale.ID {
					want = "stale-fence"
				}
				require.Equal(t, want, got.Reason)
				require.Equal(t, "ack", got.Verdict)
			}
		})
	})
	t.Run("TheMarkRisesBeforeTheGuestRuns", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var r *rig
			r = newRig(t, consumerOf("c", guestFunc(func(context.Context, *messaging.Call) runtime.Outcome {
				r.queue.look(func() { require.EqualValues(t, 7, r.queue.fences["role"]) })
				return trap()
			})))
			r.queue.publish(r.fenced(7))
			r.runFor(time.Minute)
			require.Len(t, r.queue.buried, 1)
		})
	})
	t.Run("OneThatBecameStaleWhileItRanHasNoEffect", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var r *rig
			r = newRig(t, consumerOf("c", guestFunc(func(context.Context, *messaging.Call) runtime.Outcome {
				r.queue.look(func() { r.queue.fences["role"] = 8 })
				return ok()
			})))
			m := r.fenced(7)
			r.queue.publish(m)
			r.runFor(time.Second)
			require.Equal(t, []string{m.ID}, r.queue.acked)
			require.Empty(t, r.queue.published)
			require.Len(t, r.seen.list(), 1)
			require.Equal(t, "stale-fence", r.seen.list()[0].Reason)
		})
	})
	t.Run("ItCountsUnderAVerifiedContextOnly", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := consumerOf("c", ends(ok()))
			c.ContextOptional = true
			r := newRig(t, c)
			m := r.fenced(9)
			m.Envelope = nil
			r.queue.publish(m, r.fenced(7))
			r.runFor(time.Second)
			require.Len(t, r.queue.acked, 2)
			require.EqualValues(t, 7, r.queue.fences["role"])
			for _, got := range r.seen.list() {
				require.Empty(t, got.Reason)
			}
		})
	})
	t.Run("WithoutRoomForItsKeyAMessageWaitsUncharged", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, consumerOf("c", ends(ok())))
			full := 3
			r.queue.fail = func(call string, _ int) error {
				if call == "fence" && full > 0 {
					full--
					return &limits.Error{Name: limits.NameFenceMarks, Limit: limits.FenceMarks, Actual: limits.FenceMarks + 1}
				}
				return nil
			}
			m := r.fenced(1)
			r.queue.publish(m)
			r.runFor(10 * time.Second)
			require.Equal(t, []string{m.ID}, r.queue.acked)
			require.Len(t, r.queue.released, 3)
			last := r.seen.list()[3]
			require.Equal(t, 1, last.Attempt)
			require.Equal(t, "fence-limit", r.seen.list()[0].Reason)
		})
	})
	t.Run("AMarkOutlivesTheDispatcherThatRaisedIt", func(t *testing.T) {
		h := newHouse(t)
		guest := ends(ok())
		publish := func(token uint64) {
			m := substrate.Message{ID: h.log.MintID(), Tenant: tenant, Topic: topic, Options: substrate.MessageOptions{Fence: substrate.Fence{Key: "role", Token: token}}}
			_, err := h.log.Publish(t.Context(), sealed(t, h.context, m))
			require.NoError(t, err)
		}
		for _, round := range []struct {
			token  uint64
			reason string
		}{{5, ""}, {4, "stale-fence"}, {5, ""}, {6, ""}, {5, "stale-fence"}} {
			publish(round.token)
			stop := h.run(h.log, realConsumer("c", topic, guest))
			got := h.next(func(Receipt) bool { return true })
			require.Equal(t, "ack", got.Verdict)
			require.Equal(t, round.reason, got.Reason, "token %d", round.token)
			stop()
		}
	})
}
