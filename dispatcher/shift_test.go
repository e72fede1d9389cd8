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

// shiftRig is a dispatcher whose consumer claims all there is at once, and whose n-th call, from 0, takes durations[n], or
// none. It notes of how many messages each commit was that went well, and when it was made.
type shiftRig struct {
	*rig
	commits *commits
}

// commits is a queue that notes what is settled together.
type commits struct {
	*memQueue
	began time.Time
	all   []commit
}

type commit struct {
	after    time.Duration
	messages int
}

func (q *commits) Settle(ctx context.Context, s []substrate.Settlement, outbox []substrate.Message) error {
	err := q.memQueue.Settle(ctx, s, outbox)
	if err == nil {
		q.look(func() { q.all = append(q.all, commit{time.Since(q.began), len(s)}) })
	}
	return err
}

func newShiftRig(t *testing.T, durations ...time.Duration) *shiftRig {
	t.Helper()
	calls := 0
	r := newRig(t, consumerOf("c", guestFunc(func(ctx context.Context, _ *messaging.Call) runtime.Outcome {
		out := ok()
		if calls++; calls <= len(durations) {
			out.Wall = durations[calls-1]
			sleep(ctx, out.Wall)
		}
		return out
	})))
	q := &commits{memQueue: r.queue, began: time.Now()}
	r.options.Queue = q
	return &shiftRig{rig: r, commits: q}
}

func TestShift(t *testing.T) {
	t.Run("CommitsTogetherWhatIsDoneTogether", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newShiftRig(t)
			ids := r.publish(5)
			r.runFor(time.Second)
			require.Equal(t, []commit{{0, 5}}, r.commits.all, "nobody else is to come")
			require.Equal(t, ids, r.queue.acked)
		})
	})
	t.Run("WaitsForOthersAtMostItsTime", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newShiftRig(t, 0, 0, time.Second/2)
			r.publish(3)
			r.runFor(time.Second)
			require.Equal(t, []commit{{limits.SettleWait, 2}, {time.Second / 2, 1}}, r.commits.all)
		})
	})
	t.Run("WaitsFromTheFirstThatIsDone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			short := limits.SettleWaitCalls / 2
			r := newShiftRig(t, short, short, time.Second/2)
			r.publish(3)
			r.runFor(time.Second)
			require.Equal(t, commit{short + limits.SettleWait, 2}, r.commits.all[0])
		})
	})
	t.Run("DoesNotWaitWhereCallsAreLong", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			long := limits.SettleWaitCalls
			r := newShiftRig(t, long, long, long)
			r.publish(3)
			r.runFor(time.Second)
			require.Equal(t, []commit{{long, 1}, {2 * long, 1}, {3 * long, 1}}, r.commits.all)
		})
	})
	t.Run("ACommitOfItsMostMessagesWaitsForNobody", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			durations := make([]time.Duration, limits.SettleTogether+1)
			durations[limits.SettleTogether] = time.Second / 2
			r := newShiftRig(t, durations...)
			r.publish(len(durations))
			r.runFor(time.Second)
			require.Equal(t, []commit{{0, limits.SettleTogether}, {time.Second / 2, 1}}, r.commits.all)
		})
	})
	t.Run("ACommitOfItsMostBytesWaitsForNobody", func(t *testing.T) {
		p := newPhases(t.Context())
		defer p.end()
		s := (&consumer{}).newShift(p)
		payload := make([]byte, limits.SettleTogetherBytes/2)
		for range 3 {
			s.add(&job{shift: s, runs: []*run{{published: []messaging.Outgoing{{Message: messaging.Message{Data: payload}}}}}})
		}
		s.finish(s.jobs[0])
		jobs, more := s.take()
		require.Empty(t, jobs)
		require.True(t, more)
		s.finish(s.jobs[1])
		jobs, _ = s.take()
		require.Len(t, jobs, 2)
	})
	t.Run("WhatNoGuestIsRunOnWaitsForNobody", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newShiftRig(t, time.Second/2)
			r.publish(1)
			forged := r.message(topic, "payload")
			forged.Payload = []byte("another")
			r.queue.publish(forged)
			r.run()
			synctest.Wait()
			r.queue.look(func() { require.Len(t, r.queue.buried, 1) })
			time.Sleep(time.Second)
			r.halt()
			require.Len(t, r.queue.acked, 1)
		})
	})
	t.Run("WhatOneIsRefusedForMeetsTheOthersNot", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newShiftRig(t, 0, 0, 0, time.Second/2)
			ids := r.publish(4)
			r.run()
			time.Sleep(limits.SettleWait / 2)
			r.queue.look(func() { r.queue.messages[1].token++ }) // another holder has it
			time.Sleep(time.Second)
			r.queue.look(func() { require.Equal(t, []string{ids[0], ids[2], ids[3]}, r.queue.acked) })
			r.halt()
		})
	})
	t.Run("WhatWaitsForAWorkerIsGivenBackAtOnce", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newShiftRig(t, time.Second/2)
			r.publish(3)
			r.run()
			synctest.Wait()
			r.stop()
			synctest.Wait()
			r.queue.look(func() { require.Len(t, r.queue.released, 2) })
			require.NoError(t, <-r.ended)
			require.Len(t, r.queue.acked, 1)
		})
	})
	t.Run("ALostLeaseTakesAMessageFromTheQueueForAWorker", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			c := consumerOf("c", guestFunc(func(ctx context.Context, _ *messaging.Call) runtime.Outcome {
				calls++
				sleep(ctx, 20*time.Second)
				return ok()
			}))
			r := newRig(t, c)
			r.publish(2)
			r.run()
			synctest.Wait()
			r.queue.look(func() { r.queue.messages[1].token++ })
			time.Sleep(16 * time.Second) // it can't be extended at 15
			synctest.Wait()
			require.Equal(t, ReasonLeaseLost, r.seen.list()[0].Reason, "while the other one runs")
			r.stop()
			require.NoError(t, <-r.ended)
			require.Equal(t, 1, calls)
		})
	})
}

func TestDeliver_SettlesShortCallsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 3 * limits.SettleTogether
		r := newShiftRig(t)
		ids := r.publish(n)
		r.runFor(time.Second)
		require.ElementsMatch(t, ids, r.queue.acked)
		require.Less(t, len(r.commits.all), n/4)
	})
}
