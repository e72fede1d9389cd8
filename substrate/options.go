package substrate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/longshore/longshore/limits"
)

// MessageOptions say how a message is to be delivered. The zero value asks for nothing.
type MessageOptions struct {
	// Delay hides the message until so long after its publish. Its position is that of its becoming visible.
	Delay time.Duration
	// TTL buries the message (ReasonTTLExpired) once it has been visible for so long and is not done.
	TTL time.Duration
	// Deadline buries the message (ReasonDeadline) once it has passed and the message is not done. Milliseconds count.
	Deadline time.Time
	// IdempotencyKey makes a later publish to the topic by the same Principal with the same key, within
	// limits.IdempotencyWindow, a duplicate: it stores nothing and gets the first one's receipt.
	IdempotencyKey string
	// Principal is whose key it is: one's keys never suppress another's messages.
	Principal string
}

// Reasons that expiry gives.
const (
	ReasonTTLExpired = "ttl-expired"
	ReasonDeadline   = "deadline-exceeded"
)

// OptionError says which option of a message is not allowed, and what would be right.
type OptionError struct {
	Option string // "delay", "ttl", "deadline", "idempotency key", "principal"
	Want   string
}

// Error implements error.
func (e *OptionError) Error() string { return fmt.Sprintf("option %s: want %s", e.Option, e.Want) }

func (o *MessageOptions) validate() error {
	spans := []struct {
		name string
		d    time.Duration
	}{{"delay", o.Delay}, {"ttl", o.TTL}}
	for _, s := range spans {
		if s.d < 0 || s.d > limits.OptionDuration {
			return &OptionError{s.name, fmt.Sprintf("0 to %s", limits.OptionDuration)}
		}
	}
	if !o.Deadline.IsZero() && (o.Deadline.UnixMilli() < 1 || o.Deadline.UnixMilli() > idMaxMillis) {
		return &OptionError{"deadline", "a time between 1970 and 2286"}
	}
	if o.IdempotencyKey == "" && o.Principal != "" {
		return &OptionError{"principal", "none without an idempotency key"}
	}
	return errors.Join(
		limits.Check(limits.NameKeyBytes, int64(len(o.IdempotencyKey)), limits.KeyBytes),
		limits.Check(limits.NameKeyBytes, int64(len(o.Principal)), limits.KeyBytes),
	)
}

// The options of a record: a varint of flags, and then what they name, in the order of their bits.
const (
	optionDelay    = 1 << iota // varint ns
	optionTTL                  // varint ns
	optionDeadline             // varint unix ms
	optionKey                  // key, principal
	optionsKnown   = 1<<iota - 1
)

// flags says which options are set.
func (o *MessageOptions) flags() (flags uint64) {
	set := func(flag uint64, is bool) {
		if is {
			flags |= flag
		}
	}
	set(optionDelay, o.Delay != 0)
	set(optionTTL, o.TTL != 0)
	set(optionDeadline, !o.Deadline.IsZero())
	set(optionKey, o.IdempotencyKey != "")
	return flags
}

func (o *MessageOptions) append(b []byte) []byte {
	flags := o.flags()
	if flags == 0 {
		return b
	}
	b = binary.AppendUvarint(b, flags)
	if flags&optionDelay != 0 {
		b = binary.AppendVarint(b, int64(o.Delay))
	}
	if flags&optionTTL != 0 {
		b = binary.AppendVarint(b, int64(o.TTL))
	}
	if flags&optionDeadline != 0 {
		b = binary.AppendVarint(b, o.Deadline.UnixMilli())
	}
	if flags&optionKey != 0 {
		b = appendString(appendString(b, o.IdempotencyKey), o.Principal)
	}
	return b
}

// visibleAt returns when a message that was published at becomes visible: then, or when it is due.
func visibleAt(at, due int64) int64 {
	if due != 0 {
		return due
	}
	return at
}

// expires returns when a message that becomes visible at visible expires, and whether that is its deadline; 0 if never.
func (o *MessageOptions) expires(visible int64) (at int64, deadline bool) {
	if o.TTL != 0 {
		at = visible + int64(o.TTL)
	}
	if o.Deadline.IsZero() {
		return at, false
	}
	if last := o.Deadline.UnixNano(); at == 0 || last < at {
		return last, true
	}
	return at, false
}

// Encode returns the options in the form in which they are stored: nil if nothing is asked for. Equal options have equal
// encodings, so that a publisher can seal them.
func (o *MessageOptions) Encode() []byte { return o.append(nil) }

func decodeOptions(b []byte) (MessageOptions, error) {
	if len(b) == 0 {
		return MessageOptions{}, nil
	}
	d := decoder{b: b}
	flags := d.uint()
	if flags&^optionsKnown != 0 {
		return MessageOptions{}, fmt.Errorf("message options %#x were written by a newer program", flags&^optionsKnown)
	}
	var o MessageOptions
	if flags&optionDelay != 0 {
		o.Delay = time.Duration(d.int())
	}
	if flags&optionTTL != 0 {
		o.TTL = time.Duration(d.int())
	}
	if flags&optionDeadline != 0 {
		o.Deadline = time.UnixMilli(d.int())
	}
	if flags&optionKey != 0 {
		o.IdempotencyKey, o.Principal = d.string(), d.string()
	}
	if d.err == nil && o.flags() != flags { // it names an option without a value
		d.fail()
	}
	return o, d.end("message options")
}
