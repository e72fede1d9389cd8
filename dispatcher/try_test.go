package dispatcher

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/examples/misbehaving"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

// trialOf is a trial of a guest on a message of any content.
func trialOf(g Guest) Trial {
	return Trial{
		Guest: g, Message: substrate.Message{Tenant: tenant, Topic: topic, Payload: []byte("go")}, Limits: limits.DefaultGuest(),
		Publish: []string{"*"},
	}
}

func TestTry(t *testing.T) {
	t.Run("ReasonsAreThoseOfDeadLetters", func(t *testing.T) {
		engine, err := runtime.New(t.Context(), runtime.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, engine.Close(context.WithoutCancel(t.Context()))) })
		for _, m := range misbehaving.All() {
			if m.Limit != limits.NameCallDuration {
				m.Limits.CallDuration = time.Minute
			}
			module, err := engine.Compile(t.Context(), m.Name, m.Wasm, m.Limits)
			require.NoError(t, err)
			trial := trialOf(module)
			trial.Limits = m.Limits
			r, err := Try(t.Context(), trial)
			require.NoError(t, err)
			require.Equal(t, m.Reason, r.Reason, m.Name)
			require.Empty(t, r.Published, m.Name)
			if m.Name == "publish-then-trap" {
				require.Equal(t, 1, r.Dropped)
			}
		}
	})
	t.Run("EveryClassIsNamedAsTheTableOfVerdictsNamesIt", func(t *testing.T) {
		for class := runtime.OK; class <= runtime.ModuleFault; class++ {
			o := runtime.Outcome{Class: class, Detail: "d", Err: errors.New("e")}
			r, err := Try(t.Context(), trialOf(ends(o)))
			require.NoError(t, err)
			require.Equal(t, o.Reason(), r.Reason)
			require.Equal(t, o, r.Outcome)
		}
	})
	t.Run("TheGuestSeesTheMessageAndTheLimits", func(t *testing.T) {
		trial := trialOf(guestFunc(func(_ context.Context, call *messaging.Call) runtime.Outcome {
			require.EqualValues(t, 7, call.Limits().Fuel)
			call.WriteLog(messaging.Stderr, []byte("a line\n"))
			return runtime.Outcome{}
		}))
		trial.Limits.Fuel = 7
		var log []string
		trial.Log = func(stream string, line []byte) { log = append(log, stream+": "+string(line)) }
		_, err := Try(t.Context(), trial)
		require.NoError(t, err)
		require.Equal(t, []string{"stderr: a line"}, log)
	})
	t.Run("AMessageThatNoTopicTakesIsNotTried", func(t *testing.T) {
		for says, change := range map[string]func(*substrate.Message){
			"topic":          func(m *substrate.Message) { m.Topic = "a//b" },
			"tenant":         func(m *substrate.Message) { m.Tenant = "A" },
			"metadata pairs": func(m *substrate.Message) { m.Metadata = make([]substrate.Pair, limits.MetadataPairs+1) },
			"metadata bytes": func(m *substrate.Message) {
				m.Metadata = []substrate.Pair{{Key: "k", Value: string(make([]byte, limits.MetadataBytes))}}
			},
			"key bytes":     func(m *substrate.Message) { m.ContentType = string(make([]byte, limits.KeyBytes+1)) },
			"message bytes": func(m *substrate.Message) { m.Payload = make([]byte, limits.MessageCeilingBytes+1) },
		} {
			trial := trialOf(guestFunc(func(context.Context, *messaging.Call) runtime.Outcome {
				require.Fail(t, "the guest ran", says)
				return runtime.Outcome{}
			}))
			change(&trial.Message)
			_, err := Try(t.Context(), trial)
			require.ErrorContains(t, err, says)
		}
	})
}

// TestTopicsOfATrial checks what a trial's topics take against an outbox of a delivery.
func TestTopicsOfATrial(t *testing.T) {
	topics := &emptyTopics{}
	o := &outbox{queue: topics, grants: []string{"lines", "a/*"}, parents: []substrate.Message{{Tenant: tenant, Hops: 3}}}
	o.principal.Tenant = tenant
	for name, c := range map[string]struct {
		topic string
		bytes int
		want  *messaging.PublishCase
	}{
		"granted":     {"lines", limits.MessageBytes, nil},
		"by prefix":   {"a/b", 0, nil},
		"not granted": {"b", 0, caseOf(messaging.Unauthorized)},
		"bad name":    {"a//b", 0, caseOf(messaging.Invalid)},
		"too large":   {"lines", limits.MessageBytes + 1, caseOf(messaging.TooLarge)},
	} {
		_, refused := o.admit(c.topic, messaging.Message{Data: make([]byte, c.bytes)})
		if c.want == nil {
			require.Nil(t, refused, name)
			continue
		}
		require.NotNil(t, refused, name)
		require.Equal(t, *c.want, refused.Case, name)
	}
	require.Len(t, o.admitted, 2)
	require.EqualValues(t, 4, o.admitted[0].Hops)
	require.NotEqual(t, o.admitted[0].ID, o.admitted[1].ID)
	require.Regexp(t, `^\d{13}-[0-9a-f]{16}$`, topics.MintID())
}

func caseOf(c messaging.PublishCase) *messaging.PublishCase { return &c }
