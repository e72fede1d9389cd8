package dispatcher

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
)

func TestBindingSealsTheOptions(t *testing.T) {
	context := newContext(t)
	options := substrate.MessageOptions{
		Delay: time.Minute, TTL: time.Hour, Deadline: time.UnixMilli(1_900_000_000_000), IdempotencyKey: "key", Principal: "local:1000",
	}
	m := sealed(t, context, substrate.Message{
		ID: "1796039999999-0000000000000001", Tenant: tenant, Topic: topic, Payload: []byte("payload"), Options: options,
	})
	_, err := context.Verify(m.Envelope, Binding(m))
	require.NoError(t, err)

	for name, change := range map[string]func(o *substrate.MessageOptions){
		"Delay":          func(o *substrate.MessageOptions) { o.Delay++ },
		"NoDelay":        func(o *substrate.MessageOptions) { o.Delay = 0 },
		"TTL":            func(o *substrate.MessageOptions) { o.TTL = 2 * time.Hour },
		"Deadline":       func(o *substrate.MessageOptions) { o.Deadline = o.Deadline.Add(time.Millisecond) },
		"NoDeadline":     func(o *substrate.MessageOptions) { o.Deadline = time.Time{} },
		"IdempotencyKey": func(o *substrate.MessageOptions) { o.IdempotencyKey = "other" },
		"Principal":      func(o *substrate.MessageOptions) { o.Principal = "local:1001" },
		"None":           func(o *substrate.MessageOptions) { *o = substrate.MessageOptions{} },
	} {
		t.Run(name+"ChangedIsAMismatch", func(t *testing.T) {
			changed := m
			change(&changed.Options)
			_, err := context.Verify(m.Envelope, Binding(changed))
			var refusal *signedctx.Refusal
			require.ErrorAs(t, err, &refusal)
			require.Equal(t, signedctx.ClassMismatch, refusal.Class)
		})
	}
	t.Run("TheSameDeadlineInAnotherZoneIsNone", func(t *testing.T) {
		same := m
		same.Options.Deadline = m.Options.Deadline.In(time.FixedZone("", 3600))
		_, err := context.Verify(m.Envelope, Binding(same))
		require.NoError(t, err)
	})
}
