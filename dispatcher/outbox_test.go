package dispatcher

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

func newOutbox(t *testing.T, q Queue, parent substrate.Message, grants ...string) *outbox {
	t.Helper()
	return &outbox{
		queue: q, context: newContext(t), principal: signedctx.Principal{Tenant: tenant, Subject: "consumer:c"},
		grants: grants, parents: []substrate.Message{parent},
	}
}

func TestOutbox(t *testing.T) {
	parent := substrate.Message{ID: "0946684800000-00000000000000ff", Tenant: tenant, Topic: topic, Hops: 3}
	t.Run("WhatIsPublishedIsSealedAsTheConsumerWithItsCause", func(t *testing.T) {
		o := newOutbox(t, newMemQueue(), parent, "*")
		in := messaging.Message{
			ContentType: "application/json", Data: []byte("{}"), Metadata: []messaging.Pair{{Key: "a", Value: "b"}, {Key: "a", Value: "c"}},
		}
		admission, refused := o.admit("lines", in)
		require.Nil(t, refused)
		out, err := o.seal([]messaging.Outgoing{{ID: admission.ID, Topic: "lines", Message: in, Token: admission.Token}})
		require.NoError(t, err)
		require.Len(t, out, 1)
		m := out[0]
		require.Equal(t, admission.ID, m.ID)
		require.Equal(t, tenant, m.Tenant)
		require.Equal(t, "lines", m.Topic)
		require.Equal(t, "application/json", m.ContentType)
		require.Equal(t, []substrate.Pair{{Key: "a", Value: "b"}, {Key: "a", Value: "c"}}, m.Metadata)
		require.Equal(t, parent.ID, m.Parent)
		require.EqualValues(t, 4, m.Hops)
		who, err := o.context.Verify(m.Envelope, Binding(m))
		require.NoError(t, err)
		require.Equal(t, tenant, who.Tenant)
		require.Equal(t, "consumer:c", who.Subject)
	})
	t.Run("OnlyGrantedTopics", func(t *testing.T) {
		for _, c := range []struct {
			grants  []string
			topic   string
			granted bool
		}{
			{nil, "a", false},
			{[]string{"a"}, "a", true},
			{[]string{"a"}, "a/b", false},
			{[]string{"a"}, "ab", false},
			{[]string{"a/*"}, "a/b", true},
			{[]string{"a/*"}, "a/b/c", true},
			{[]string{"a/*"}, "a", false},
			{[]string{"a/*"}, "ab/c", false},
			{[]string{"a*"}, "ab", false},
			{[]string{"*"}, "a/b", true},
			{[]string{"x", "a/*"}, "a/b", true},
		} {
			_, refused := newOutbox(t, newMemQueue(), parent, c.grants...).admit(c.topic, messaging.Message{})
			if c.granted {
				require.Nil(t, refused, "%v %s", c.grants, c.topic)
				continue
			}
			require.NotNil(t, refused, "%v %s", c.grants, c.topic)
			require.Equal(t, messaging.Unauthorized, refused.Case)
		}
	})
	t.Run("ABadTopicIsInvalidWhateverIsGranted", func(t *testing.T) {
		for _, name := range []string{"", "a//b", "../a", "a\x1b[31m"} {
			_, refused := newOutbox(t, newMemQueue(), parent, "*").admit(name, messaging.Message{})
			require.NotNil(t, refused)
			require.Equal(t, messaging.Invalid, refused.Case, "%q", name)
			require.NotContains(t, refused.Text, "\x1b")
		}
	})
	t.Run("SixteenHopsAndNoMore", func(t *testing.T) {
		last, over := parent, parent
		last.Hops, over.Hops = limits.Hops-1, limits.Hops
		_, refused := newOutbox(t, newMemQueue(), last, "*").admit("a", messaging.Message{})
		require.Nil(t, refused)
		_, refused = newOutbox(t, newMemQueue(), over, "*").admit("a", messaging.Message{})
		require.NotNil(t, refused)
		require.Equal(t, messaging.HopLimit, refused.Case)
		require.EqualValues(t, 16, refused.Limit)
		require.EqualValues(t, 17, refused.Actual)
	})
	t.Run("TheGuestSeesWhatTheTopicsPolicySays", func(t *testing.T) {
		after := 3 * time.Second
		for _, c := range []struct {
			err  error
			want messaging.PublishError
		}{
			{&substrate.DepthError{Topic: "a", Limit: 5, Actual: 6}, messaging.PublishError{Case: messaging.DepthExceeded, Limit: 5, Actual: 6}},
			{
				&substrate.RateError{Topic: "a", PerSecond: 9, RetryAfter: after},
				messaging.PublishError{Case: messaging.RateExceeded, Limit: 9, Actual: 10, RetryAfter: &after},
			},
			{
				&limits.Error{Name: limits.NameMessageBytes, Limit: 10, Actual: 11},
				messaging.PublishError{Case: messaging.TooLarge, Limit: 10, Actual: 11},
			},
			{
				fmt.Errorf("wrapped: %w", &limits.Error{Name: limits.NameTopics, Limit: 10, Actual: 11}),
				messaging.PublishError{Case: messaging.QuotaExceeded, Limit: 10, Actual: 11},
			},
			{
				&substrate.TenantError{Tenant: "acme", Name: limits.NameTenantMessages, Limit: 10, Actual: 11},
				messaging.PublishError{Case: messaging.QuotaExceeded, Limit: 10, Actual: 11},
			},
			{
				&substrate.TenantError{Tenant: "acme", Name: limits.NameTenantRate, Limit: 9, Actual: 10, RetryAfter: after},
				messaging.PublishError{Case: messaging.RateExceeded, Limit: 9, Actual: 10, RetryAfter: &after},
			},
			{substrate.ErrStorageFull, messaging.PublishError{Case: messaging.StorageFull}},
			{
				errors.New("secret of the host"),
				messaging.PublishError{Case: messaging.Unavailable, Text: "the queue can't take a message now"},
			},
		} {
			q := newMemQueue()
			q.reserve = func(string, int) error { return c.err }
			_, refused := newOutbox(t, q, parent, "*").admit("a", messaging.Message{})
			require.Equal(t, &c.want, refused)
		}
	})
	t.Run("WhatWasNotAdmittedIsNotSealed", func(t *testing.T) {
		o := newOutbox(t, newMemQueue(), parent, "*")
		_, err := o.seal([]messaging.Outgoing{{ID: "x", Topic: "a"}})
		require.ErrorContains(t, err, "not admitted")
	})
}

// deliverOnce handles one message whose guest succeeded with one published message, on a queue that answers as it likes.
func deliverOnce(r *rig, c Consumer) {
	r.options.Consumers = []Consumer{c}
	d, err := New(r.options)
	require.NoError(r.t, err)
	one := d.consumers[0]
	m := r.message(topic, "payload")
	r.queue.publish(m)
	since := time.Now()
	claimed, err := r.queue.Claim(r.t.Context(), one.claimRequest(room{messages: 1, bytes: 1}))
	require.NoError(r.t, err)
	p := newPhases(r.t.Context())
	defer p.end()
	j := one.newShift(p).newJob(claimed.Deliveries, since)
	done := one.newRun(j.deliveries)
	admission, refused := done.outbox.admit("lines", messaging.Message{Data: []byte("line")})
	require.Nil(r.t, refused)
	done.published = []messaging.Outgoing{{ID: admission.ID, Topic: "lines", Token: admission.Token}}
	j.runs = append(j.runs, done)
	one.conclude(done)
	for _, u := range j.appendUnits(nil) {
		one.settle(p, u)
	}
	j.end()
	r.d = d
}

func TestCommit(t *testing.T) {
	t.Run("AcknowledgementAndOutboxAreOneSettlement", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			deliverOnce(r, consumerOf("c", ends(ok())))
			require.Len(t, r.queue.acked, 1)
			require.Len(t, r.queue.published, 1)
			require.Equal(t, 1, r.seen.list()[0].Published)
		})
	})
	t.Run("ARefusedOutboxReleasesUnchargedAndHoldsTheConsumer", func(t *testing.T) {
		for _, err := range []error{
			fmt.Errorf("settle: %w", substrate.ErrStorageFull), substrate.ErrNotFound,
			&substrate.RateError{Topic: "lines", PerSecond: 1, RetryAfter: 3 * time.Second},
			&substrate.DepthError{Topic: "lines", Limit: 1, Actual: 2},
			&substrate.TenantError{Tenant: "acme", Name: limits.NameTenantBytes, Limit: 1, Actual: 2},
		} {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.queue.fail = func(call string, published int) error {
					if call == "settle" && published > 0 {
						return err
					}
					return nil
				}
				deliverOnce(r, consumerOf("c", ends(ok())))
				require.Empty(t, r.queue.published)
				require.Len(t, r.queue.released, 1)
				require.Positive(t, r.queue.released[0].Delay)
				require.Zero(t, r.queue.messages[0].attempts)
				require.Equal(t, StateHolding, r.state().State)
				got := r.seen.list()
				require.Len(t, got, 1)
				require.Contains(t, got[0].Reason, "outbox-refused: ")
				require.Zero(t, got[0].Published)
			})
		}
	})
	t.Run("AnOutboxThatNeverFitsIsChargedToTheMessage", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.queue.fail = func(call string, published int) error {
				if call == "settle" && published > 0 {
					return &limits.Error{Name: limits.NameBatchBytes, Limit: 1, Actual: 2}
				}
				return nil
			}
			deliverOnce(r, consumerOf("c", ends(ok())))
			require.Len(t, r.queue.retried, 1)
			require.Equal(t, "outbox-refused: too-large", r.queue.retried[0].Reason)
		})
	})
	t.Run("AHeldConsumerClaimsAgainWhenItsTimeIsOver", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, consumerOf("c", ends(ok())))
			r.run()
			synctest.Wait()
			c := r.d.consumers[0]
			c.condition.hold(5*time.Second, "outbox-refused: storage-full")
			ids := r.publish(1)
			time.Sleep(4 * time.Second)
			r.queue.look(func() { require.Empty(t, r.queue.acked) })
			require.Equal(t, StateHolding, r.state().State)
			time.Sleep(2 * time.Second)
			require.Equal(t, StateRunning, r.state().State)
			r.halt()
			require.Equal(t, ids, r.queue.acked)
		})
	})
	t.Run("AStaleHolderPublishesNothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.queue.fail = func(call string, _ int) error {
				if call == "settle" {
					return substrate.ErrLeaseLost
				}
				return nil
			}
			deliverOnce(r, consumerOf("c", ends(ok())))
			require.Empty(t, r.queue.published)
			got := r.seen.list()[0]
			require.Equal(t, "discard", got.Verdict)
			require.Equal(t, "lease-lost", got.Reason)
			require.Zero(t, got.Published)
		})
	})
}
