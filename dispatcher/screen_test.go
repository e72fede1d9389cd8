package dispatcher

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

// screened publishes messages made with the options, lets a consumer have them, and returns what each came to, by its id,
// with how many guests ran.
func screened(t *testing.T, c Consumer, hooks []Hook, options ...substrate.MessageOptions) (ids []string, came map[string]string, runs int64) {
	t.Helper()
	var calls atomic.Int64
	c.Guest = guestFunc(func(context.Context, *messaging.Call) runtime.Outcome {
		calls.Add(1)
		return ok()
	})
	r := newRig(t, c)
	r.options.Hooks = hooks
	for _, o := range options {
		m := r.message(topic, "payload")
		m.Options = o
		r.queue.publish(sealed(t, r.context, m))
		ids = append(ids, m.ID)
	}
	r.runFor(time.Minute)
	came = map[string]string{}
	for _, one := range r.seen.list() {
		came[one.Message] += one.Verdict + " " + one.Reason + ";"
	}
	return ids, came, calls.Load()
}

func TestTarget(t *testing.T) {
	t.Run("OnlyTheOneThatIsNamedTakesIt", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ids, came, runs := screened(t, consumerOf("c", nil), nil,
				substrate.MessageOptions{Target: "c"}, substrate.MessageOptions{Target: "d"}, substrate.MessageOptions{})
			require.EqualValues(t, 2, runs)
			require.Equal(t, map[string]string{ids[0]: "ack ;", ids[1]: "ack other-target;", ids[2]: "ack ;"}, came)
		})
	})
}

func TestFilter(t *testing.T) {
	t.Run("WhatItDoesNotTakeIsAcknowledgedUnrun", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			for source, reason := range map[string]string{
				`metadata.k == "v" and subject == "local:1000" and topic == "orders"`: "",
				`content_type != "text/plain"`:                                        "filtered",
				`claims.role == "admin"`:                                              "filtered",
			} {
				c := consumerOf("c", nil)
				c.Filter = source
				ids, came, runs := screened(t, c, nil, substrate.MessageOptions{})
				require.Equal(t, reason == "", runs == 1, source)
				require.Equal(t, map[string]string{ids[0]: "ack " + reason + ";"}, came, source)
			}
		})
	})
	t.Run("OneThatCannotBeComputedBuries", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := consumerOf("c", nil)
			c.Filter = `int(metadata.k) > 1`
			ids, came, runs := screened(t, c, nil, substrate.MessageOptions{})
			require.Zero(t, runs)
			require.Equal(t, map[string]string{ids[0]: "bury filter-failed;"}, came)
		})
	})
	t.Run("AFaultyOneIsRefusedAtOnce", func(t *testing.T) {
		c := consumerOf("c", ends(ok()))
		c.Filter = `all(claims, true)`
		_, err := New(newRig(t, c).options)
		require.ErrorContains(t, err, "filter: at character")
	})
	t.Run("TheFirstOfSeveralValuesCounts", func(t *testing.T) {
		m := forFilter(&substrate.Message{Metadata: []substrate.Pair{{Key: "a", Value: "1"}, {Key: "b", Value: "2"}, {Key: "a", Value: "3"}}}, nil)
		require.Equal(t, map[string]string{"a": "1", "b": "2"}, m.Metadata)
	})
}

func TestRequiredFeatures(t *testing.T) {
	t.Run("OneThatIsNotDeclaredBuriesUnrun", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := consumerOf("c", nil)
			c.Features = []string{"gzip", "v2"}
			ids, came, runs := screened(t, c, nil,
				substrate.MessageOptions{RequiredFeatures: []string{"v2", "gzip"}}, substrate.MessageOptions{RequiredFeatures: []string{"gzip", "v3"}})
			require.EqualValues(t, 1, runs)
			require.Equal(t, map[string]string{ids[0]: "ack ;", ids[1]: "bury unsupported-feature;"}, came)
		})
	})
	t.Run("WhatTheFilterDoesNotTakeMayRequireAnything", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := consumerOf("c", nil)
			c.Filter = "false"
			_, came, _ := screened(t, c, nil, substrate.MessageOptions{RequiredFeatures: []string{"v3"}, Fence: substrate.Fence{Key: "k", Token: 1}})
			for _, one := range came {
				require.Equal(t, "ack filtered;", one)
			}
		})
	})
}

func TestDeadline(t *testing.T) {
	t.Run("OneThatPassedWhileTheMessageWaitedForAWorkerBuriesUnrun", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var calls atomic.Int64
			r := newRig(t, consumerOf("c", guestFunc(func(ctx context.Context, _ *messaging.Call) runtime.Outcome {
				calls.Add(1)
				sleep(ctx, time.Second)
				return ok()
			})))
			first, second := r.message(topic, "a"), r.message(topic, "b")
			first.Options.Deadline = time.Now().Add(500 * time.Millisecond)
			second.Options.Deadline = time.Now().Add(time.Second)
			r.queue.publish(sealed(t, r.context, first), sealed(t, r.context, second))
			r.runFor(time.Minute)
			require.Equal(t, []string{first.ID}, r.queue.acked, "one that runs is not cut")
			require.EqualValues(t, 1, calls.Load())
			require.Len(t, r.queue.buried, 1)
			require.Equal(t, "deadline-exceeded", r.queue.buried[0].Reason)
		})
	})
}

func TestHooks(t *testing.T) {
	t.Run("AreAskedInOrderOnceForEachDeliveryUntilOneRejects", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var said []string
			before := func(name string, err error) Hook {
				return Hook{Before: func(m *substrate.Message, who *signedctx.Verified) error {
					require.Equal(t, topic, m.Topic)
					require.Equal(t, "local:1000", who.Subject)
					said = append(said, name)
					return err
				}}
			}
			hooks := []Hook{before("first", nil), {}, before("second", errors.New("no\x1b[31m")), before("third", nil)}
			ids, came, runs := screened(t, consumerOf("c", nil), hooks, substrate.MessageOptions{})
			require.Equal(t, []string{"first", "second"}, said)
			require.Zero(t, runs)
			require.Equal(t, map[string]string{ids[0]: "bury rejected;"}, came)
		})
	})
	t.Run("AreToldWhatEachAttemptCameTo", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var told []Receipt
			r := newRig(t, consumerOf("c", ends(trap())))
			r.options.Hooks = []Hook{{After: func(m *substrate.Message, one Receipt) {
				require.Equal(t, m.ID, one.Message)
				told = append(told, one)
			}}}
			r.publish(1)
			r.runFor(time.Minute)
			require.Equal(t, r.seen.list(), told)
			require.Len(t, told, 3)
			require.Equal(t, "guest-trap: unreachable", told[0].Reason)
		})
	})
	t.Run("APanicOfOneFailsOneDelivery", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			first := true
			hooks := []Hook{{Before: func(*substrate.Message, *signedctx.Verified) error {
				if first {
					first = false
					panic("before")
				}
				return nil
			}, After: func(*substrate.Message, Receipt) { panic("after") }}}
			ids, came, runs := screened(t, consumerOf("c", nil), hooks, substrate.MessageOptions{})
			require.EqualValues(t, 1, runs)
			require.Equal(t, map[string]string{ids[0]: "retry host-panic;ack ;"}, came)
		})
	})
}
