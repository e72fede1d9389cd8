package substrate

import "github.com/longshore/longshore/limits"

// Policy bounds what may be published to a topic, and says how durable it is and how long it stays. A nil field is not set.
type Policy struct {
	MaxDepth        *int64 // messages of the backlog: ready, delayed and leased
	MaxRatePerSec   *int64 // messages a second, with a burst of one second's worth
	MaxMessageBytes *int64 // bytes of one payload
	// MaxUnflushed is how many of the topic's publishes and acknowledgements may be answered before they are on disk, for at
	// most limits.FlushDelay. A crash of the process loses none of them, a crash of the machine may. 0 is strict.
	MaxUnflushed           *int64
	MaxPriority            *int64 // of a message
	IdempotencyWindowMilli *int64 // ms that an idempotency key counts from its first use; 0 lets none count
	// RetentionMilli (ms since a message became visible) and RetentionBytes (payloads that are stored) bound what consumer
	// groups pin that do not keep up: they are moved past older messages. The default lane, what is in flight and dead
	// letters stay. A group that is paused, or whose topic is, is exempt from the first. Before the second takes anything
	// from a group, it takes what is kept for replay alone.
	RetentionMilli *int64
	RetentionBytes *int64
	KeepMilli      *int64 // ms that a message stays after all lanes are done with it, for replay
	MaxAgeMilli    *int64 // ms since its publication after which a message isn't handled any more; for whoever verifies it, the log does nothing
}

// fields returns the values in the order of their names and in which they are stored. New ones go to the end.
func (p *Policy) fields() []**int64 {
	return []**int64{
		&p.MaxDepth, &p.MaxRatePerSec, &p.MaxMessageBytes, &p.MaxUnflushed, &p.MaxPriority, &p.IdempotencyWindowMilli,
		&p.RetentionMilli, &p.RetentionBytes, &p.KeepMilli, &p.MaxAgeMilli,
	}
}

// policyBound says what a value of a policy may be, and what it is if nobody sets it.
type policyBound struct {
	name     string
	min, max int64
	fallback PolicyValue
	time     bool // the values are ms
}

// policyBounds are in the order of Policy.fields.
func policyBounds() []policyBound {
	year := limits.OptionDuration.Milliseconds()
	is := func(v int64) PolicyValue { return PolicyValue{Value: v, Set: true} }
	return []policyBound{
		{"max_depth", 1, limits.PolicyMaxDepthCount, PolicyValue{}, false},
		{"max_rate_per_sec", 1, limits.PolicyMaxRatePerSec, PolicyValue{}, false},
		{"max_message_bytes", 1, limits.MessageCeilingBytes, is(limits.MessageBytes), false},
		{"max_unflushed", 0, limits.PolicyMaxUnflushed, is(0), false},
		{"max_priority", 0, limits.PriorityCeiling, PolicyValue{}, false},
		{"idempotency_window", 0, limits.IdempotencyWindowCeiling.Milliseconds(), is(limits.IdempotencyWindow.Milliseconds()), true},
		{"retention", 1, year, is(limits.RetentionDuration.Milliseconds()), true},
		{"retention_bytes", 1, limits.RetentionBytesCeiling, PolicyValue{}, false},
		{"keep", 0, year, is(0), true},
		{"max_age", 1, year, PolicyValue{}, true},
	}
}

// PolicyValue is one value of a policy and where it comes from.
type PolicyValue struct {
	Value  int64  // meaningful if Set
	Set    bool   // false: no bound
	Source string // "default", "config" or "stored"
}

// PolicyView is the policy in force for a topic. Its fields are those of Policy.
type PolicyView struct {
	MaxDepth, MaxRatePerSec, MaxMessageBytes, MaxUnflushed, MaxPriority, IdempotencyWindowMilli, RetentionMilli, RetentionBytes, KeepMilli, MaxAgeMilli PolicyValue
}

func (v *PolicyView) fields() []*PolicyValue {
	return []*PolicyValue{
		&v.MaxDepth, &v.MaxRatePerSec, &v.MaxMessageBytes, &v.MaxUnflushed, &v.MaxPriority, &v.IdempotencyWindowMilli,
		&v.RetentionMilli, &v.RetentionBytes, &v.KeepMilli, &v.MaxAgeMilli,
	}
}

// merged returns p with the fields of over that are set.
func (p Policy) merged(over Policy) Policy {
	for i, v := range over.fields() {
		if *v != nil {
			*p.fields()[i] = *v
		}
	}
	return p
}

func (p Policy) validate() error {
	bounds := policyBounds()
	for i, v := range p.fields() {
		if b := bounds[i]; *v != nil && (**v < b.min || **v > b.max) {
			return &PolicyError{Name: b.name, Value: **v, Min: b.min, Max: b.max, Time: b.time}
		}
	}
	return nil
}

// viewPolicy merges the three sources: what a command stored wins over the host config, which wins over the defaults.
func viewPolicy(config, stored Policy) PolicyView {
	var view PolicyView
	into, fromConfig, fromStored := view.fields(), config.fields(), stored.fields()
	for i, b := range policyBounds() {
		switch {
		case *fromStored[i] != nil:
			*into[i] = PolicyValue{Value: **fromStored[i], Set: true, Source: "stored"}
		case *fromConfig[i] != nil:
			*into[i] = PolicyValue{Value: **fromConfig[i], Set: true, Source: "config"}
		default:
			*into[i] = b.fallback
			into[i].Source = "default"
		}
	}
	return view
}
