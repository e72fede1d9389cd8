package dispatcher

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
)

// embedder is a pair of hooks that note what they are asked and told of each payload.
type embedder struct {
	mu    sync.Mutex
	asked []string
	told  []string
}

func (e *embedder) hook() Hook {
	return Hook{
		Before: func(m *substrate.Message, _ *signedctx.Verified) error {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.asked = append(e.asked, string(m.Payload))
			return nil
		},
		After: func(m *substrate.Message, r Receipt) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.told = append(e.told, string(m.Payload)+" "+r.Verdict+" "+r.Reason)
		},
	}
}

func TestHookBefore(t *testing.T) {
	t.Run("IsAskedOnceForEachDeliveryOfAMessageAlsoOfABatchThatIsTakenApart", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := &embedder{}
			b := &batches{ends: func(_ context.Context, payloads []string) runtime.Outcome {
				if slices.Contains(payloads, "2") {
					return trap()
				}
				return ok()
			}}
			c := batchConsumer(b.guest(), 4)
			c.MaxAttempts = 2
			r := newRig(t, c)
			r.options.Hooks = []Hook{e.hook()}
			r.payloads(4)
			r.runFor(time.Minute)
			require.Greater(t, len(b.calls), 4)
			require.Equal(t, []string{"0", "1", "2", "3", "2"}, e.asked, "the retry is a delivery of its own")
		})
	})
	t.Run("IsNotAskedOfWhatWasRefusedBefore", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := &embedder{}
			r := newRig(t, consumerOf("c", ends(ok())))
			r.options.Hooks = []Hook{e.hook()}
			forged, late, target := r.message(topic, "forged"), r.message(topic, "late"), r.message(topic, "target")
			forged.Envelope = nil
			late.Options.Deadline, target.Options.Target = time.Now(), "other"
			r.queue.publish(forged, sealed(t, r.context, late), sealed(t, r.context, target))
			r.runFor(time.Second)
			require.Empty(t, e.asked)
			require.ElementsMatch(t, []string{
				"forged bury context-missing", "late bury deadline-exceeded", "target ack other-target",
			}, e.told, "but told of")
		})
	})
}

func TestHookAfter(t *testing.T) {
	t.Run("IsToldInTheOrderOfTheHooksAndOfAllOfThem", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var order []string
			named := func(name string) Hook {
				return Hook{After: func(*substrate.Message, Receipt) { order = append(order, name) }}
			}
			r := newRig(t, consumerOf("c", ends(ok())))
			r.options.Hooks = []Hook{named("first"), {}, named("second")}
			r.publish(2)
			r.runFor(time.Second)
			require.Equal(t, []string{"first", "second", "first", "second"}, order)
		})
	})
	t.Run("IsToldOfWhatIsGivenBackAtAStopWhetherItRanOrWaited", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := &embedder{}
			c := consumerOf("c", works(10*time.Second))
			c.Limits.CallDuration = 20 * time.Second
			r := newRig(t, c)
			r.options.Hooks, r.options.Grace = []Hook{e.hook()}, time.Second
			r.payloads(2)
			r.run()
			time.Sleep(time.Second)
			r.halt()
			require.ElementsMatch(t, []string{"0 release interrupted", "1 release interrupted"}, e.told)
			require.Equal(t, []string{"0"}, e.asked, "the other one was not to run yet")
		})
	})
	t.Run("IsToldOfALeaseThatWasLostWhileItRan", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := &embedder{}
			r := newRig(t, consumerOf("c", works(10*time.Second)))
			r.options.Consumers[0].Limits.CallDuration, r.options.Consumers[0].Lease = 20*time.Second, 21*time.Second
			r.options.Hooks = []Hook{e.hook()}
			r.payloads(1)
			r.run()
			time.Sleep(time.Second)
			r.queue.look(func() { r.queue.messages[0].token++ })
			time.Sleep(15 * time.Second)
			r.halt()
			require.Equal(t, []string{"0 discard lease-lost"}, e.told)
		})
	})
	t.Run("IsToldOfWhatIsAcknowledgedUnrunBecauseItIsStale", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := &embedder{}
			c := batchConsumer(ends(ok()), 10)
			c.Batch.Latest = true
			r := newRig(t, c)
			r.options.Hooks = []Hook{e.hook()}
			older, newer, stale := r.message(topic, "older"), r.message(topic, "newer"), r.message(topic, "stale")
			for _, m := range []*substrate.Message{&older, &newer, &stale} {
				m.Options.OrderingKey = "k"
			}
			stale.Options.OrderingKey, stale.Options.Fence = "", substrate.Fence{Key: "role", Token: 1}
			r.queue.fences["role"] = 2
			r.queue.publish(sealed(t, r.context, older), sealed(t, r.context, newer), sealed(t, r.context, stale))
			r.runFor(time.Second)
			require.ElementsMatch(t, []string{"older ack stale", "newer ack ", "stale ack stale-fence"}, e.told)
			require.Equal(t, []string{"newer"}, e.asked)
		})
	})
	t.Run("IsToldWhenTheSettlementCannotBeStored", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e := &embedder{}
			r := newRig(t, consumerOf("c", ends(ok())))
			r.options.Hooks = []Hook{e.hook()}
			r.queue.fail = func(call string, _ int) error {
				if call == "settle" {
					return substrate.ErrClosed
				}
				return nil
			}
			r.payloads(1)
			r.runFor(time.Second)
			require.Equal(t, "0 discard storage-error", e.told[0])
		})
	})
}
