package cli

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/longshore/longshore/cmd/host/internal/wire"
)

// publishOptions are the options of every message of a publish, as the flags give them; nil is not given.
type publishOptions struct {
	flags struct {
		delay, ttl    time.Duration
		deadline, key string

		priority                   int64
		orderingKey, fence, target string
		features                   []string
	}
	delay, ttl, deadline, key *string

	priority            *int64
	orderingKey, target *string
	fence               *wire.MessageFence
	features            []string
}

func (o *publishOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.DurationVar(&o.flags.delay, "delay", 0, "hide each message for so long, as 5s")
	flags.DurationVar(&o.flags.ttl, "ttl", 0, "make each a dead letter if it isn't done when it was visible for so long, as 15m")
	flags.StringVar(&o.flags.deadline, "deadline", "", "make each a dead letter if it isn't done at this time, as 2030-01-31T12:00:00Z")
	flags.StringVar(&o.flags.key, "idempotency-key", "", "do nothing if you published to the topic under this key a short time ago")
	flags.Int64Var(&o.flags.priority, "priority", 0, "0 to 255: a message goes before those of a lower one in the default lane")
	flags.StringVar(&o.flags.orderingKey, "ordering-key", "", "lanes ordered by key handle the messages of one key one at a time, in their order")
	flags.StringVar(&o.flags.fence, "fence", "", "KEY:TOKEN, as leader:7: who speaks in an earlier tenure of the key is ignored")
	flags.StringArrayVar(&o.flags.features, "feature", nil, "what a consumer must declare to be given the message; may be repeated")
	flags.StringVar(&o.flags.target, "target", "", "the consumer that the message is for")
}

// given notes which of the flags were given. The host checks all but the form of the fence.
func (o *publishOptions) given(cmd *cobra.Command) error {
	for _, f := range []struct {
		name, text string
		field      **string
	}{
		{"delay", o.flags.delay.String(), &o.delay},
		{"ttl", o.flags.ttl.String(), &o.ttl},
		{"deadline", o.flags.deadline, &o.deadline},
		{"idempotency-key", o.flags.key, &o.key},
		{"ordering-key", o.flags.orderingKey, &o.orderingKey},
		{"target", o.flags.target, &o.target},
	} {
		if cmd.Flags().Changed(f.name) {
			*f.field = &f.text
		}
	}
	if cmd.Flags().Changed("priority") {
		o.priority = &o.flags.priority
	}
	o.features = o.flags.features
	if cmd.Flags().Changed("fence") {
		fence, err := wire.ParseFence(o.flags.fence)
		if err != nil {
			return usage(fmt.Errorf("--fence: %w", err))
		}
		o.fence = &fence
	}
	return nil
}

// checkTexts refuses what JSON can't carry: it would be sent as other bytes, and two idempotency keys could become one.
func (f *publishFlags) checkTexts() error {
	o := &f.options.flags
	for name, texts := range map[string][]string{
		"content-type": {f.contentType}, "metadata": f.metadata, "deadline": {o.deadline}, "idempotency-key": {o.key},
		"ordering-key": {o.orderingKey}, "fence": {o.fence}, "target": {o.target}, "feature": o.features,
	} {
		for _, s := range texts {
			if !utf8.ValidString(s) {
				return usage(fmt.Errorf("--%s %q: want UTF-8; only a payload may be other bytes", name, s))
			}
		}
	}
	return nil
}

func (o *publishOptions) set(m *wire.NewMessage) {
	m.Delay, m.TTL, m.Deadline, m.IdempotencyKey = o.delay, o.ttl, o.deadline, o.key
	m.Priority, m.OrderingKey, m.Fence, m.RequiredFeatures, m.Target = o.priority, o.orderingKey, o.fence, o.features, o.target
}
