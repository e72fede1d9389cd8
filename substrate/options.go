package substrate

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

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
	// Priority puts the message before those of a lower one in the default lane. Groups don't look at it, and it counts for
	// nothing beside an ordering key.
	Priority uint8
	// OrderingKey makes lanes that are ordered by key handle the topic's messages with the same key one at a time.
	OrderingKey string
	// Fence, if its key is set, says which tenure of a role the publisher speaks in: see Log.RaiseFence.
	Fence Fence
	// RequiredFeatures are what a consumer must declare to be given the message, Target names the one that it is for, ReplyTo
	// says where an answer goes. The log keeps them, and does nothing with them.
	RequiredFeatures []string
	Target           string
	ReplyTo          string
}

// Fence is a key and a token that rises with each tenure of whoever holds the key.
type Fence struct {
	Key   string
	Token uint64
}

// Reasons that expiry gives.
const (
	ReasonTTLExpired = "ttl-expired"
	ReasonDeadline   = "deadline-exceeded"
)

// OptionError says which option of a message is not allowed, and what would be right.
type OptionError struct {
	Option string // "delay", "ttl", "deadline", "idempotency key", "principal", "priority", "ordering key", "fence", "required features", "target", "reply-to"
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
	if o.Fence.Key == "" && o.Fence.Token != 0 {
		return &OptionError{"fence", "a key beside the token"}
	}
	return errors.Join(o.validateTexts(), o.validateFeatures())
}

func (o *MessageOptions) validateTexts() error {
	texts := []struct{ name, text string }{
		{"idempotency key", o.IdempotencyKey},
		{"principal", o.Principal},
		{"ordering key", o.OrderingKey},
		{"fence", o.Fence.Key},
		{"target", o.Target},
		{"reply-to", o.ReplyTo},
	}
	for _, t := range texts {
		if len(t.text) > limits.KeyBytes || !utf8.ValidString(t.text) {
			return &OptionError{t.name, fmt.Sprintf("valid UTF-8 of at most %d bytes", limits.KeyBytes)}
		}
	}
	return nil
}

func (o *MessageOptions) validateFeatures() error {
	wrong := func(f string) bool { return f == "" || len(f) > limits.FeatureBytes || !utf8.ValidString(f) }
	if len(o.RequiredFeatures) > limits.RequiredFeatures || slices.ContainsFunc(o.RequiredFeatures, wrong) {
		return &OptionError{"required features", fmt.Sprintf(
			"at most %d names in valid UTF-8, each of 1 to %d bytes", limits.RequiredFeatures, limits.FeatureBytes)}
	}
	return nil
}

// order returns the hash by which lanes order the message, 0 if it has no ordering key.
func (o *MessageOptions) order() uint64 {
	if o.OrderingKey == "" {
		return 0
	}
	sum := sha256.Sum256([]byte(o.OrderingKey))
	return max(binary.BigEndian.Uint64(sum[:8]), 1)
}

// The options of a record: a varint of flags, and then what they name, in the order of their bits.
const (
	optionDelay    = 1 << iota // varint ns
	optionTTL                  // varint ns
	optionDeadline             // varint unix ms
	optionKey                  // key, principal
	optionPriority             // u8
	optionOrder                // ordering key
	optionFence                // key, varint token
	optionFeatures             // n, name*
	optionTarget               // target
	optionReplyTo              // reply-to
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
	set(optionPriority, o.Priority != 0)
	set(optionOrder, o.OrderingKey != "")
	set(optionFence, o.Fence.Key != "")
	set(optionFeatures, len(o.RequiredFeatures) > 0)
	set(optionTarget, o.Target != "")
	set(optionReplyTo, o.ReplyTo != "")
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
	return o.appendRouting(b, flags)
}

// appendRouting appends the options from optionPriority on.
func (o *MessageOptions) appendRouting(b []byte, flags uint64) []byte {
	if flags&optionPriority != 0 {
		b = append(b, o.Priority)
	}
	if flags&optionOrder != 0 {
		b = appendString(b, o.OrderingKey)
	}
	if flags&optionFence != 0 {
		b = binary.AppendUvarint(appendString(b, o.Fence.Key), o.Fence.Token)
	}
	if flags&optionFeatures != 0 {
		b = binary.AppendUvarint(b, uint64(len(o.RequiredFeatures)))
		for _, f := range o.RequiredFeatures {
			b = appendString(b, f)
		}
	}
	if flags&optionTarget != 0 {
		b = appendString(b, o.Target)
	}
	if flags&optionReplyTo != 0 {
		b = appendString(b, o.ReplyTo)
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
	d.routing(&o, flags)
	if d.err == nil && o.flags() != flags { // it names an option without a value
		d.fail()
	}
	return o, d.end("message options")
}

// routing reads the options from optionPriority on.
func (d *decoder) routing(o *MessageOptions, flags uint64) {
	if flags&optionPriority != 0 {
		o.Priority = d.byte()
	}
	if flags&optionOrder != 0 {
		o.OrderingKey = d.string()
	}
	if flags&optionFence != 0 {
		o.Fence = Fence{Key: d.string(), Token: d.uint()}
	}
	if flags&optionFeatures != 0 {
		o.RequiredFeatures = make([]string, d.count(1))
		for i := range o.RequiredFeatures {
			o.RequiredFeatures[i] = d.string()
		}
	}
	if flags&optionTarget != 0 {
		o.Target = d.string()
	}
	if flags&optionReplyTo != 0 {
		o.ReplyTo = d.string()
	}
}
