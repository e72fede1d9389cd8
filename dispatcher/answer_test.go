package dispatcher

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

func TestDecideAnswer(t *testing.T) {
	p := policy{maxAttempts: 3, retry: Retry{Base: time.Second, Cap: time.Minute}}
	later := 7 * time.Second
	cases := map[string]struct {
		answers []messaging.Answer
		attempt int
		want    decision
	}{
		"NoneIsAnAck":         {nil, 1, decision{verdict: substrate.Ack}},
		"Ack":                 {[]messaging.Answer{{}}, 1, decision{verdict: substrate.Ack}},
		"Retry":               {[]messaging.Answer{{Case: messaging.AnswerRetry}}, 1, decision{verdict: substrate.Retry, delay: time.Second, reason: "guest-error: retry"}},
		"RetryLater":          {[]messaging.Answer{{Case: messaging.AnswerRetry, Delay: &later}}, 1, decision{verdict: substrate.Retry, delay: later, reason: "guest-error: retry"}},
		"RetryAtTheEndBuries": {[]messaging.Answer{{Case: messaging.AnswerRetry, Delay: &later}}, 3, decision{verdict: substrate.Bury, reason: "guest-error: retry"}},
		"RejectBuries":        {[]messaging.Answer{{Case: messaging.AnswerReject, Text: "why"}}, 1, decision{verdict: substrate.Bury, reason: "rejected"}},
		"SkipIsNotCharged":    {[]messaging.Answer{{Case: messaging.AnswerSkip}}, 3, decision{verdict: substrate.Release, delay: 4 * time.Second, reason: "skipped-out"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := runtime.Outcome{Answers: c.answers}
			require.Equal(t, c.want, decide(finding{end: atGuest, outcome: o}, c.attempt, p, 0))
			require.Equal(t, c.want.verdict == substrate.Ack, acknowledged(o))
		})
	}
}

func TestOutboxOptions(t *testing.T) {
	parent := substrate.Message{ID: "1796039999999-0000000000000001", Tenant: tenant}
	t.Run("ReachTheQueue", func(t *testing.T) {
		o := newOutbox(t, newMemQueue(), parent, "*")
		o.principal.Subject = "consumer:intake"
		_, refused := o.admit("a", messaging.Message{Options: &messaging.PublishOptions{
			Delay: time.Second, TTL: time.Minute, Deadline: time.UnixMilli(1), Priority: 9, IdempotencyKey: "k", OrderingKey: "o",
			RequiredFeatures: []string{"f"}, Target: "t", Cause: parent.ID,
		}})
		require.Nil(t, refused)
		require.Equal(t, substrate.MessageOptions{
			Delay: time.Second, TTL: time.Minute, Deadline: time.UnixMilli(1), Priority: 9, IdempotencyKey: "k",
			Principal: "consumer:intake", OrderingKey: "o", RequiredFeatures: []string{"f"}, Target: "t",
		}, o.admitted[0].Options)
	})
	t.Run("AFenceIsNotGranted", func(t *testing.T) {
		o := newOutbox(t, newMemQueue(), parent, "*")
		_, refused := o.admit("a", messaging.Message{Options: &messaging.PublishOptions{Fence: &messaging.Fence{Key: "f"}}})
		require.Equal(t, messaging.Unauthorized, refused.Case)
	})
	t.Run("WhatIsWithdrawnIsNotAdmitted", func(t *testing.T) {
		o := newOutbox(t, newMemQueue(), parent, "*")
		a, _ := o.admit("a", messaging.Message{})
		b, _ := o.admit("b", messaging.Message{})
		o.withdraw(a.Token)
		o.withdraw(a.Token)
		require.Len(t, o.admitted, 1)
		require.Equal(t, b.Token, any(o.admitted[0]))
	})
}

func TestInfo(t *testing.T) {
	published := time.UnixMilli(1_796_039_999_999)
	d := substrate.Delivery{
		Message: substrate.Message{
			ID: "1796039999999-0000000000000001", Parent: "p", Hops: 2,
			Options: substrate.MessageOptions{
				Delay: time.Second, TTL: time.Minute, Deadline: published.Add(time.Hour), Priority: 3, IdempotencyKey: "k",
				OrderingKey: "o", Fence: substrate.Fence{Key: "f", Token: 5}, ReplyTo: "r",
			},
		},
		Lease: substrate.Lease{Lane: "audit"}, Attempt: 2, PreviousReason: "timeout",
	}
	require.Equal(t, &messaging.Info{
		ID: d.Message.ID, Attempt: 2, MaxAttempts: 5, PreviousReason: "timeout", Group: "audit", Published: published,
		Expires: published.Add(61 * time.Second), Deadline: published.Add(time.Hour), Priority: 3, IdempotencyKey: "k",
		OrderingKey: "o", Fence: &messaging.Fence{Key: "f", Token: 5}, Parent: "p", Hops: 2, ReplyTo: "r",
	}, infoFor(d, 5))
	claims := claimsFor(&signedctx.Verified{Tenant: "t", Subject: "s", Issuer: "i", TokenID: "j", IssuedAt: published, Claims: []signedctx.Claim{{Key: "a", Value: "b"}}})
	require.Equal(t, &messaging.Claims{
		Tenant: "t", Subject: "s", Issuer: "i", TokenID: "j", IssuedAt: published, Extra: []messaging.Pair{{Key: "a", Value: "b"}},
	}, claims)
}

func TestSealLeavesAloneWhatIsNotAcknowledged(t *testing.T) {
	for _, c := range []messaging.AnswerCase{messaging.AnswerRetry, messaging.AnswerReject, messaging.AnswerSkip} {
		f := finding{end: atGuest, outcome: runtime.Outcome{Answers: []messaging.Answer{{Case: c}}}}
		d := &delivery{} // has no call, whose outbox could be asked for
		require.Equal(t, f, (&consumer{}).seal(d, f))
		require.Nil(t, d.sealed)
	}
}
