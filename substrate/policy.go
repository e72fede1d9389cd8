package substrate

import (
	"github.com/longshore/longshore/limits"
)

// Policy bounds what may be published to a topic, and says how durable it is. A nil field is not set.
type Policy struct {
	MaxDepth        *int64 // messages of the backlog: ready, delayed and leased
	MaxRatePerSec   *int64 // messages a second, with a burst of one second's worth
	MaxMessageBytes *int64 // bytes of one payload
	// MaxUnflushed is how many of the topic's publishes and acknowledgements may be answered before they are on disk, for at
	// most limits.FlushDelay. A crash of the process loses none of them, a crash of the machine may. 0 is strict.
	MaxUnflushed *int64
}

// PolicyValue is one value of a policy and where it comes from.
type PolicyValue struct {
	Value  int64  // meaningful if Set
	Set    bool   // false: no bound
	Source string // "default", "config" or "stored"
}

// PolicyView is the policy in force for a topic.
type PolicyView struct{ MaxDepth, MaxRatePerSec, MaxMessageBytes, MaxUnflushed PolicyValue }

func (p Policy) fields() [4]*int64 {
	return [4]*int64{p.MaxDepth, p.MaxRatePerSec, p.MaxMessageBytes, p.MaxUnflushed}
}

// merged returns p with the fields of over that are set.
func (p Policy) merged(over Policy) Policy {
	pick := func(a, b *int64) *int64 {
		if b != nil {
			return b
		}
		return a
	}
	return Policy{
		MaxDepth:        pick(p.MaxDepth, over.MaxDepth),
		MaxRatePerSec:   pick(p.MaxRatePerSec, over.MaxRatePerSec),
		MaxMessageBytes: pick(p.MaxMessageBytes, over.MaxMessageBytes),
		MaxUnflushed:    pick(p.MaxUnflushed, over.MaxUnflushed),
	}
}

func (p Policy) validate() error {
	bounds := [4]struct {
		name     string
		min, max int64
	}{
		{"max_depth", 1, limits.PolicyMaxDepthCount},
		{"max_rate_per_sec", 1, limits.PolicyMaxRatePerSec},
		{"max_message_bytes", 1, limits.MessageCeilingBytes},
		{"max_unflushed", 0, limits.PolicyMaxUnflushed},
	}
	for i, v := range p.fields() {
		if b := bounds[i]; v != nil && (*v < b.min || *v > b.max) {
			return &PolicyError{Name: b.name, Value: *v, Min: b.min, Max: b.max}
		}
	}
	return nil
}

// view merges the three sources: what a command stored wins over the host config, which wins over the defaults.
func viewPolicy(config, stored Policy) PolicyView {
	value := func(config, stored *int64, fallback PolicyValue) PolicyValue {
		switch {
		case stored != nil:
			return PolicyValue{Value: *stored, Set: true, Source: "stored"}
		case config != nil:
			return PolicyValue{Value: *config, Set: true, Source: "config"}
		default:
			fallback.Source = "default"
			return fallback
		}
	}
	return PolicyView{
		MaxDepth:        value(config.MaxDepth, stored.MaxDepth, PolicyValue{}),
		MaxRatePerSec:   value(config.MaxRatePerSec, stored.MaxRatePerSec, PolicyValue{}),
		MaxMessageBytes: value(config.MaxMessageBytes, stored.MaxMessageBytes, PolicyValue{Value: limits.MessageBytes, Set: true}),
		MaxUnflushed:    value(config.MaxUnflushed, stored.MaxUnflushed, PolicyValue{Value: 0, Set: true}),
	}
}
