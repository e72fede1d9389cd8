package dispatcher

import (
	"context"
	"strings"
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

func TestReply(t *testing.T) {
	t.Run("IsSentOnceItsHandlingIsCommittedAndNotBefore", func(t *testing.T) {
		for name, end := range map[string]runtime.Outcome{
			"error": {Class: runtime.GuestError, Detail: "other"}, "trap": trap(),
			"retry":  {Class: runtime.OK, Answers: []messaging.Answer{{Case: messaging.AnswerRetry}}},
			"reject": {Class: runtime.OK, Answers: []messaging.Answer{{Case: messaging.AnswerReject}}},
		} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r, got := asking(t, 0, 1, priced("clerk", replies(0, end, "42")))
					r.publish(1)
					r.runFor(2 * time.Second)
					require.Equal(t, messaging.Timeout, (<-got).refused.Case)
					require.Equal(t, RequestStats{Unanswered: 1}, r.d.Requests())
				})
			})
		}
	})
	t.Run("ASettlementThatFailsSendsNothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, got := asking(t, 0, 1, priced("clerk", replies(0, ok(), "42")))
			until := time.Now().Add(400 * time.Millisecond)
			r.queue.fail = func(call string, _ int) error {
				if call == "settle" && time.Now().Before(until) {
					return context.DeadlineExceeded
				}
				return nil
			}
			r.publish(1)
			r.runFor(2 * time.Second)
			a := <-got
			require.Equal(t, []string{"42"}, a.texts(), "once, when it succeeds")
			require.GreaterOrEqual(t, a.after, 400*time.Millisecond)
			require.Equal(t, RequestStats{Answered: 1}, r.d.Requests())
		})
	})
	t.Run("OfABatchBelongsToTheMessageThatItAnswers", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			clerk := priced("clerk", calls(func(_ context.Context, call *messaging.Call) runtime.Outcome {
				out := ok()
				for i, m := range call.Messages() {
					require.Nil(t, call.Reply(m, messaging.Message{Data: []byte(m.Info.ID)}))
					verdict := messaging.AnswerAck
					if i%2 == 1 {
						verdict = messaging.AnswerReject
					}
					out.Answers = append(out.Answers, messaging.Answer{Case: verdict})
				}
				return out
			}))
			clerk.Batch = Batch{Max: 4, Window: 50 * time.Millisecond}
			r, got := asking(t, 500*time.Millisecond, 1, clerk)
			r.publish(4)
			r.runFor(3 * time.Second)
			answered := 0
			for range 4 {
				if a := <-got; a.refused == nil {
					require.Equal(t, a.replies[0].Info.Parent, a.texts()[0])
					answered++
				}
			}
			require.Equal(t, 2, answered)
			require.Len(t, r.queue.buried, 2)
		})
	})
	t.Run("IsCountedInTheReceipt", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, _ := asking(t, 0, 2, priced("clerk", replies(0, ok(), "1", "2")))
			r.publish(1)
			r.runFor(time.Second)
			first := r.seen.list()[0]
			require.Equal(t, "clerk", first.Consumer)
			require.Equal(t, 2, first.Published)
		})
	})
	t.Run("ToWhoeverIsGoneIsDroppedAndCounted", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, got := asking(t, 300*time.Millisecond, 1, priced("clerk", replies(500*time.Millisecond, ok(), "42")))
			r.publish(1)
			r.runFor(2 * time.Second)
			require.Equal(t, messaging.Timeout, (<-got).refused.Case)
			require.Len(t, r.queue.acked, 2, "the handler did nothing wrong")
			require.Equal(t, RequestStats{Unanswered: 1, Dropped: 1}, r.d.Requests())
		})
	})
	t.Run("ThatIsTooLargeIsRefused", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			clerk := priced("clerk", replies(0, ok(), strings.Repeat("x", limits.ReplyBytes+1)))
			clerk.Limits.OutboxBytes = 2 * limits.ReplyBytes
			r, _ := asking(t, 0, 1, clerk)
			r.publish(1)
			r.runFor(2 * time.Second)
			require.Equal(t, "guest-error: other", r.seen.list()[0].Reason)
			told := zap.String("line", "too-large: 2097153 is over the limit of 2097152")
			require.Positive(t, r.logs.FilterField(told).Len())
		})
	})
}

// onlyInquiry returns the request that waits.
func (r *rig) onlyInquiry() *inquiry {
	r.t.Helper()
	q := r.d.shared.inquiries
	q.mu.Lock()
	defer q.mu.Unlock()
	require.Len(r.t, q.waiting, 1)
	for _, in := range q.waiting {
		return in
	}
	return nil
}

func TestForgedReplyTo(t *testing.T) {
	// requested is a message that looks like a request which somebody seals, or nobody.
	requested := func(r *rig, address string, who *signedctx.Principal) substrate.Message {
		m := substrate.Message{ID: r.queue.MintID(), Tenant: tenant, Topic: prices, Payload: []byte("how much?")}
		m.Options.ReplyTo = address
		if who != nil {
			envelope, err := r.context.Seal(*who, Binding(m))
			require.NoError(t, err)
			m.Envelope = envelope
		}
		return m
	}
	producer := &signedctx.Principal{Tenant: tenant, Subject: "local:1000"}
	consumer := &signedctx.Principal{Tenant: tenant, Subject: "consumer:shop"}
	// open has a request waiting, and gives its address to make another message.
	open := func(t *testing.T, forge func(r *rig, address string) substrate.Message) (*rig, answerTo, *messaging.PublishError) {
		t.Helper()
		refused := make(chan *messaging.PublishError, 1)
		clerk := priced("clerk", calls(func(_ context.Context, call *messaging.Call) runtime.Outcome {
			if m := call.Messages()[0]; string(m.Data) != "how much?" || m.Info.Parent == "" {
				refused <- call.Reply(m, messaging.Message{Data: []byte("forged")})
			}
			return ok()
		}))
		clerk.ContextOptional = true
		r, got := asking(t, 0, 1, clerk)
		r.publish(1)
		r.run()
		time.Sleep(100 * time.Millisecond)
		r.queue.publish(forge(r, r.onlyInquiry().address))
		time.Sleep(2 * time.Second)
		r.halt()
		select {
		case e := <-refused:
			return r, <-got, e
		default:
			return r, <-got, nil
		}
	}
	for name, who := range map[string]*signedctx.Principal{
		"OfAProducerIsRefused": producer, "OfNobodyIsRefused": nil, "OfAnotherMessageIsRefused": consumer,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, got, refused := open(t, func(r *rig, address string) substrate.Message {
					if who != consumer {
						address = "elsewhere" // it is refused because of its seal alone
					}
					return requested(r, address, who)
				})
				require.Equal(t, messaging.Unauthorized, refused.Case)
				require.Equal(t, messaging.Timeout, got.refused.Case)
				require.Equal(t, RequestStats{Unanswered: 1, Refused: 1}, r.d.Requests())
			})
		})
	}
	t.Run("ThatWasAlteredIsNeverHandled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r, got, refused := open(t, func(r *rig, address string) substrate.Message {
				m := requested(r, "elsewhere", consumer)
				m.Options.ReplyTo = address
				return m
			})
			require.Nil(t, refused)
			require.Equal(t, messaging.Timeout, got.refused.Case)
			require.Equal(t, ReasonContextMismatch, r.queue.buried[0].Reason)
		})
	})
	t.Run("OfAnotherTenantIsRefused", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			refused := make(chan *messaging.PublishError, 1)
			theirs := priced("theirs", calls(func(_ context.Context, call *messaging.Call) runtime.Outcome {
				refused <- call.Reply(call.Messages()[0], messaging.Message{Data: []byte("forged")})
				return ok()
			}))
			theirs.Tenant = "rival"
			r, got := asking(t, 0, 1, theirs, priced("clerk", ends(ok())))
			r.publish(1)
			r.run()
			time.Sleep(100 * time.Millisecond)
			require.Empty(t, refused, "the request isn't theirs to see")
			in := r.onlyInquiry()
			m := substrate.Message{ID: in.request, Tenant: "rival", Topic: prices}
			m.Options.ReplyTo = in.address
			envelope, err := r.context.Seal(signedctx.Principal{Tenant: "rival", Subject: "consumer:theirs"}, Binding(m))
			require.NoError(t, err)
			m.Envelope = envelope
			r.queue.publish(m)
			time.Sleep(2 * time.Second)
			r.halt()
			require.Equal(t, messaging.Unauthorized, (<-refused).Case)
			require.Equal(t, messaging.Timeout, (<-got).refused.Case)
		})
	})
}

func TestInquiries(t *testing.T) {
	t.Run("AreBoundedByTenantAndByHost", func(t *testing.T) {
		q := newInquiries()
		var all []*inquiry
		for i := range limits.WaitingRequests {
			in, err := q.open("t"+string(rune('a'+i/limits.TenantWaiting)), "m", 1, limits.TenantWaiting)
			require.NoError(t, err)
			all = append(all, in)
		}
		_, err := q.open("ta", "m", 1, limits.TenantWaiting)
		require.ErrorIs(t, err, &limits.Error{Name: limits.NameTenantWaiting})
		_, err = q.open("other", "m", 1, limits.TenantWaiting)
		require.ErrorIs(t, err, &limits.Error{Name: limits.NameWaiting})
		require.Equal(t, RequestStats{Waiting: limits.WaitingRequests}, q.count())
		all[0].close()
		in, err := q.open("ta", "m", 1, limits.TenantWaiting)
		require.NoError(t, err)
		in.forget()
		for _, in := range all[1:] {
			in.close()
		}
		require.Empty(t, q.waiting)
		require.Empty(t, q.perTenant)
		require.Equal(t, RequestStats{Unanswered: limits.WaitingRequests}, q.count())
	})
	t.Run("KeepNoMoreThanThereIsRoomFor", func(t *testing.T) {
		q := newInquiries()
		in, err := q.open(tenant, "m", 10, limits.TenantWaiting)
		require.NoError(t, err)
		most := messaging.Message{Data: make([]byte, limits.ReplyBytes-2), Metadata: []messaging.Pair{{Key: "k", Value: "v"}}}
		q.deliver(&reply{address: in.address, message: most})
		q.deliver(&reply{address: in.address, message: messaging.Message{Data: []byte{1}}})
		q.deliver(&reply{address: in.address})
		require.Len(t, in.close(), 2)
		require.Equal(t, RequestStats{Answered: 1, Dropped: 1}, q.count())
	})
}
