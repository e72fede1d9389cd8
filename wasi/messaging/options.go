package messaging

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/longshore/longshore/limits"
)

// Where the fields of publish-options are.
var (
	optDelayAt      = publishOptionsShape.at("delay")
	optTTLAt        = publishOptionsShape.at("ttl")
	optDeadlineAt   = publishOptionsShape.at("deadline")
	optPriorityAt   = publishOptionsShape.at("priority")
	optKeyAt        = publishOptionsShape.at("idempotency-key")
	optOrderAt      = publishOptionsShape.at("ordering-key")
	optFenceAt      = publishOptionsShape.at("fence")
	optFeaturesAt   = publishOptionsShape.at("required-features")
	optTargetAt     = publishOptionsShape.at("target")
	optCauseAt      = publishOptionsShape.at("cause")
	optExtensionsAt = publishOptionsShape.at("extensions")
)

// maxTimestampMillis is the last time that has 13 digits in milliseconds, as the ids of messages have: in the year 2286.
const maxTimestampMillis = 9_999_999_999_999

// liftOptions reads a publish-options. What isn't honoured is refused by name; nothing is ever ignored.
func (c *Call) liftOptions(b []byte) (*PublishOptions, *PublishError) {
	l := optionLifter{call: c}
	o := &PublishOptions{
		Delay:            l.duration("delay", b[optDelayAt:]),
		TTL:              l.duration("ttl", b[optTTLAt:]),
		Deadline:         l.timestamp("deadline", b[optDeadlineAt:]),
		Priority:         b[optPriorityAt],
		IdempotencyKey:   l.text("idempotency-key", b[optKeyAt:]),
		OrderingKey:      l.text("ordering-key", b[optOrderAt:]),
		Fence:            l.fence(b[optFenceAt:]),
		RequiredFeatures: l.features(b[optFeaturesAt:]),
		Target:           l.text("target", b[optTargetAt:]),
		Cause:            l.text("cause", b[optCauseAt:]),
	}
	l.cause(o.Cause)
	if _, n := getList(b[optExtensionsAt:]); n > 0 {
		l.refuse("publish option %q is not supported by this host", "extensions")
	}
	return o, l.refused
}

// optionLifter reads options until one is refused.
type optionLifter struct {
	call    *Call
	refused *PublishError // the first one
}

func (l *optionLifter) refuse(format string, args ...any) {
	if l.refused == nil {
		l.refused = &PublishError{Case: Invalid, Text: fmt.Sprintf(format, args...)}
	}
}

func (l *optionLifter) duration(name string, b []byte) time.Duration {
	ms, ok := liftOptionU64(b)
	if !ok {
		return 0
	}
	if longest := uint64(limits.OptionDuration.Milliseconds()); ms > longest {
		l.refuse("publish option %q is %d ms, the limit is %d ms", name, ms, longest)
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}

func (l *optionLifter) timestamp(name string, b []byte) time.Time {
	ms, ok := liftOptionU64(b)
	if !ok {
		return time.Time{}
	}
	if ms == 0 || ms > maxTimestampMillis {
		l.refuse("publish option %q is %d, want Unix milliseconds of 1 to %d", name, ms, uint64(maxTimestampMillis))
		return time.Time{}
	}
	return time.UnixMilli(int64(ms))
}

// text reads an option<string>. One that is too long is refused without a look at it, and so is the empty one, which
// would mean none.
func (l *optionLifter) text(name string, b []byte) string {
	if checkCase(optionTextShape, b[0]) == 0 {
		return ""
	}
	return l.key(name, b[optionTextShape.payload:], limits.KeyBytes)
}

func (l *optionLifter) key(name string, b []byte, most uint32) string {
	at, n := getList(b)
	if n == 0 {
		l.refuse("publish option %q is an empty text", name)
		return ""
	}
	if n > most {
		if l.refused == nil {
			l.refused = over(TooLarge, limits.Name("publish option "+name+" bytes"), int64(most), int64(n))
		}
		return ""
	}
	return string(l.call.guest.text(at, n))
}

func (l *optionLifter) fence(b []byte) *Fence {
	if checkCase(optionFenceShape, b[0]) == 0 {
		return nil
	}
	v := b[optionFenceShape.payload:]
	return &Fence{Key: l.key("fence", v[fenceKeyAt:], limits.KeyBytes), Token: binary.LittleEndian.Uint64(v[fenceTokenAt:])}
}

func (l *optionLifter) features(b []byte) []string {
	at, n := getList(b)
	if n == 0 {
		return nil
	}
	if n > limits.RequiredFeatures {
		if l.refused == nil {
			l.refused = over(TooLarge, "required features", limits.RequiredFeatures, int64(n))
		}
		return nil
	}
	list := l.call.guest.list(at, n, textShape)
	features := make([]string, n)
	for i := range features {
		features[i] = l.key("required-features", list[i*int(textShape.size):], limits.FeatureBytes)
	}
	return features
}

// cause checks that it is one of the call's messages.
func (l *optionLifter) cause(id string) {
	if id == "" {
		return
	}
	for _, m := range append([]Message{l.call.o.Message}, l.call.o.More...) {
		if m.Info != nil && m.Info.ID == id {
			return
		}
	}
	l.refuse("publish option %q is not the id of a message of this call", "cause")
}

// liftOptionU64 reads an option<u64>.
func liftOptionU64(b []byte) (v uint64, ok bool) {
	if checkCase(optionU64Shape, b[0]) == 0 {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b[optionU64Shape.payload:]), true
}

// putOptionU64 writes a number as an option<u64>.
func putOptionU64(b []byte, v uint64) {
	b[0] = 1
	binary.LittleEndian.PutUint64(b[optionU64Shape.payload:], v)
}
