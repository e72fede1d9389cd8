package ingest

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
)

// optionsOf reads the options of a message that who publishes, or says which is wrong. The log checks their bounds.
func optionsOf(who signedctx.Principal, m wire.NewMessage) (substrate.MessageOptions, error) {
	var o substrate.MessageOptions
	var err error
	if o.Delay, err = duration("delay", m.Delay); err != nil {
		return o, err
	}
	if o.TTL, err = duration("ttl", m.TTL); err != nil {
		return o, err
	}
	if o.Deadline, err = deadline(m.Deadline); err != nil {
		return o, err
	}
	if m.IdempotencyKey != nil {
		if o.IdempotencyKey = *m.IdempotencyKey; o.IdempotencyKey == "" || !utf8.ValidString(o.IdempotencyKey) {
			return o, errors.New("has an idempotency_key that is empty or not UTF-8; give one that names this message alone, or none")
		}
		o.Principal = who.Subject
	}
	return o, routing(&o, who, m)
}

// routing reads the options that say who handles the message, and in which order.
func routing(o *substrate.MessageOptions, who signedctx.Principal, m wire.NewMessage) (err error) {
	if m.Priority != nil {
		if *m.Priority < 0 || *m.Priority > limits.PriorityCeiling {
			return fmt.Errorf("has priority %d; want 0 to %d", *m.Priority, limits.PriorityCeiling)
		}
		o.Priority = uint8(*m.Priority)
	}
	if o.OrderingKey, err = key("ordering_key", m.OrderingKey); err != nil {
		return err
	}
	if o.Target, err = key("target", m.Target); err != nil {
		return err
	}
	for _, f := range m.RequiredFeatures {
		if _, err := key("required_features", &f); err != nil {
			return err
		}
	}
	o.RequiredFeatures = m.RequiredFeatures
	if m.Fence == nil {
		return nil
	}
	// What a fence says must be true of whoever is known to say it.
	if who.Subject == AnonymousSubject {
		return errors.New("has a fence, which only a producer that the host knows may set: publish it over the admin socket")
	}
	o.Fence.Token = m.Fence.Token
	o.Fence.Key, err = key("fence", &m.Fence.Key)
	return err
}

// key reads an option that is a name; without one it is "". The log checks its length.
func key(field string, text *string) (string, error) {
	if text == nil {
		return "", nil
	}
	if *text == "" || !utf8.ValidString(*text) {
		return "", fmt.Errorf("has %s with a name that is empty or not UTF-8; give one, or leave it out", field)
	}
	return *text, nil
}

// duration reads an option that is a duration; without one it is 0.
func duration(field string, text *string) (time.Duration, error) {
	if text == nil {
		return 0, nil
	}
	d, err := time.ParseDuration(*text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("has %s %.40q, which is no duration; write 5s, 15m or 24h", field, *text)
	}
	return d, nil
}

// deadline reads an option that is a time; without one it is the zero time, which can't be given.
func deadline(text *string) (time.Time, error) {
	if text == nil {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, *text)
	if err != nil || t.IsZero() {
		return time.Time{}, fmt.Errorf("has deadline %.40q, which is no time; write it as 2030-01-31T12:00:00Z", *text)
	}
	return t, nil
}
