package dispatcher

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

// settledBatch lets a batch of three end well, each with a message that it caused, one of them published for all if shared,
// and settles it after something happened to the second.
func settledBatch(t *testing.T, shared bool, happens func(r *rig, second *delivery)) *rig {
	t.Helper()
	r := newRig(t, batchConsumer(ends(ok()), 3))
	d, err := New(r.options)
	require.NoError(t, err)
	c := d.consumers[0]
	for range 3 {
		r.queue.publish(r.fenced(5))
	}
	since := time.Now()
	claimed, err := r.queue.Claim(t.Context(), c.claimRequest(room{messages: 3, bytes: 1000}))
	require.NoError(t, err)
	p := newPhases(t.Context())
	defer p.end()
	j := c.newShift(p).newJob(claimed.Deliveries, since)
	j.each(c.verify)
	j.each(c.begin)
	done := c.newRun(j.deliveries)
	for i, one := range j.deliveries {
		o := &messaging.PublishOptions{Cause: one.Message.ID}
		if shared && i == 0 {
			o.Cause = ""
		}
		m := messaging.Message{Options: o}
		admission, refused := done.outbox.admit("lines", m)
		require.Nil(t, refused)
		done.published = append(done.published, messaging.Outgoing{ID: admission.ID, Topic: "lines", Message: m, Token: admission.Token})
	}
	j.runs = append(j.runs, done)
	c.conclude(done)
	happens(r, j.deliveries[1])
	for _, u := range j.appendUnits(nil) {
		c.settle(p, u)
	}
	j.end()
	return r
}

// verdicts returns what each delivery came to, in the order of the messages.
func verdicts(r *rig) (all []string) {
	byMessage := map[string]string{}
	var ids []string
	for _, one := range r.seen.list() {
		byMessage[one.Message] += one.Verdict + " " + one.Reason
		ids = append(ids, one.Message)
	}
	for i := range 3 {
		for _, id := range ids {
			if id[len(id)-1] == byte('1'+i) {
				all = append(all, byMessage[id])
				break
			}
		}
	}
	return all
}

func TestSettleBatch(t *testing.T) {
	taken := func(r *rig, second *delivery) { // by another holder, which our lease doesn't know yet
		r.queue.look(func() { r.queue.holder(second.Lease).token = 99 })
	}
	stale := func(r *rig, second *delivery) {
		second.fence.Key = "other"
		r.queue.look(func() { r.queue.fences["other"] = 6 })
	}
	t.Run("AllGoWellInOneCommit", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := settledBatch(t, true, func(*rig, *delivery) {})
			require.Equal(t, []string{"ack ", "ack ", "ack "}, verdicts(r))
			require.Len(t, r.queue.published, 3)
		})
	})
	t.Run("OneThatIsAnothersIsDroppedWithWhatItCaused", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := settledBatch(t, false, taken)
			require.Equal(t, []string{"ack ", "discard lease-lost", "ack "}, verdicts(r))
			require.Len(t, r.queue.published, 2)
		})
	})
	t.Run("NoneIsDoneWithoutWhatWasPublishedForAll", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := settledBatch(t, true, taken)
			require.Equal(t, []string{"release interrupted", "discard lease-lost", "release interrupted"}, verdicts(r))
			require.Empty(t, r.queue.published)
			require.Empty(t, r.queue.acked)
		})
	})
	t.Run("OneThatBecameStaleHasNoEffectAndTheOthersDo", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := settledBatch(t, false, stale)
			require.Equal(t, []string{"ack ", "ack stale-fence", "ack "}, verdicts(r))
			require.Len(t, r.queue.published, 2)
		})
	})
	t.Run("WhatIsRefusedGivesAllBack", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := settledBatch(t, false, func(r *rig, _ *delivery) {
				r.queue.fail = func(call string, published int) error {
					if call == "settle" && published > 0 {
						return &substrate.DepthError{Topic: "lines", Limit: 1, Actual: 4}
					}
					return nil
				}
			})
			want := "release outbox-refused: depth-exceeded"
			require.Equal(t, []string{want, want, want}, verdicts(r))
			for _, m := range r.queue.messages {
				require.Zero(t, m.attempts)
			}
		})
	})
}
