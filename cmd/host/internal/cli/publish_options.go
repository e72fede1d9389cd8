package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/cmd/host/internal/wire"
)

// publishOptions are the options of every message of a publish, as the flags give them; nil is not given.
type publishOptions struct {
	flags struct {
		delay, ttl    time.Duration
		deadline, key string
	}
	delay, ttl, deadline, key *string
}

func (o *publishOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.DurationVar(&o.flags.delay, "delay", 0, "hide each message for so long, as 5s")
	flags.DurationVar(&o.flags.ttl, "ttl", 0, "make each a dead letter if it isn't done when it was visible for so long, as 15m")
	flags.StringVar(&o.flags.deadline, "deadline", "", "make each a dead letter if it isn't done at this time, as 2030-01-31T12:00:00Z")
	flags.StringVar(&o.flags.key, "idempotency-key", "", "do nothing if you published to the topic under this key a short time ago")
}

// given notes which of the flags were given.
func (o *publishOptions) given(cmd *cobra.Command) {
	for _, f := range []struct {
		name, text string
		field      **string
	}{
		{"delay", o.flags.delay.String(), &o.delay},
		{"ttl", o.flags.ttl.String(), &o.ttl},
		{"deadline", o.flags.deadline, &o.deadline},
		{"idempotency-key", o.flags.key, &o.key},
	} {
		if cmd.Flags().Changed(f.name) {
			*f.field = &f.text
		}
	}
}

func (o *publishOptions) set(m *wire.NewMessage) {
	m.Delay, m.TTL, m.Deadline, m.IdempotencyKey = o.delay, o.ttl, o.deadline, o.key
}
