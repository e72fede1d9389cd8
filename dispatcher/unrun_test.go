package dispatcher

import (
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
)

// In a real log: what cannot be decoded is buried byte by byte, and no attempt of anybody's.
func TestDecodeFailed(t *testing.T) {
	t.Run("AnEnvelopeThatCannotBeDecodedIsBuriedVerbatimWithoutAnAttempt", func(t *testing.T) {
		h := newHouse(t)
		m := substrate.Message{
			ID: h.log.MintID(), Tenant: tenant, Topic: topic, ContentType: "text/plain", Payload: []byte("as it came"),
			Metadata: []substrate.Pair{{Key: "k", Value: "v"}}, Envelope: []byte("\x00no envelope\xff"),
		}
		_, err := h.log.Publish(t.Context(), m)
		require.NoError(t, err)
		stop := h.run(h.log, realConsumer("c", topic, ends(ok())))
		r := h.next(func(Receipt) bool { return true })
		stop()
		require.Equal(t, "bury decode-failed", r.Verdict+" "+r.Reason)
		require.Zero(t, r.Attempt)
		dead, got, err := h.log.DeadLetter(t.Context(), tenant, topic, m.ID)
		require.NoError(t, err)
		require.Equal(t, m, got)
		require.Equal(t, "decode-failed", dead.Reason)
		require.Zero(t, dead.Attempts)
		var last Receipt
		require.NoError(t, json.Unmarshal(dead.Receipt, &last))
		require.Zero(t, last.Attempt)
	})
}

func TestBuriedUnrun(t *testing.T) {
	reject := Hook{Before: func(m *substrate.Message, _ *signedctx.Verified) error {
		if string(m.Payload) == "rejected" {
			return errors.New("no")
		}
		return nil
	}}
	for reason, ask := range map[string]func(m *substrate.Message){
		"rejected":            func(m *substrate.Message) { m.Payload = []byte("rejected") },
		"unsupported-feature": func(m *substrate.Message) { m.Options.RequiredFeatures = []string{"gzip"} },
		"deadline-exceeded":   func(m *substrate.Message) { m.Options.Deadline = time.Now() },
		"filter-failed":       func(m *substrate.Message) { m.Metadata = []substrate.Pair{{Key: "n", Value: "x"}} },
	} {
		t.Run("IsNoAttempt/"+reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := consumerOf("c", ends(ok()))
				c.Filter = `int(metadata.n) > 0`
				r := newRig(t, c)
				r.options.Hooks = []Hook{reject}
				m := r.message(topic, "payload")
				m.Metadata = []substrate.Pair{{Key: "n", Value: "1"}}
				ask(&m)
				r.queue.publish(sealed(t, r.context, m))
				r.runFor(time.Second)
				require.Len(t, r.queue.buried, 1)
				require.Equal(t, reason, r.queue.buried[0].Reason)
				require.True(t, r.queue.buried[0].Unrun)
				require.Zero(t, r.seen.list()[0].Attempt)
			})
		})
	}
}
