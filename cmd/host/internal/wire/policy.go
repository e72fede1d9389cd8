package wire

// PolicyValue is one bound of a topic and where it comes from; a nil Value is no bound.
type PolicyValue struct {
	Value  *int64 `json:"value"`
	Source string `json:"source" enum:"default,config,stored"`
}

// PolicyTime is a PolicyValue that is a duration.
type PolicyTime struct {
	Value  *string `json:"value" doc:"as 15m or 24h"`
	Source string  `json:"source" enum:"default,config,stored"`
}

// PolicyView is the policy in force on a topic.
type PolicyView struct {
	Tag               string      `json:"-"` // names it; it travels as the header ETag
	MaxDepth          PolicyValue `json:"max_depth" doc:"messages not yet settled"`
	MaxRatePerSec     PolicyValue `json:"max_rate_per_sec" doc:"messages published in a second"`
	MaxMessageBytes   PolicyValue `json:"max_message_bytes" doc:"payload bytes of a message"`
	MaxUnflushed      PolicyValue `json:"max_unflushed" doc:"publishes and acknowledgements answered before they are on disk"`
	MaxPriority       PolicyValue `json:"max_priority" doc:"the highest priority of a message"`
	IdempotencyWindow PolicyTime  `json:"idempotency_window" doc:"how long an idempotency key counts"`
	Retention         PolicyTime  `json:"retention" doc:"age from which messages are taken from groups that have not met them"`
	RetentionBytes    PolicyValue `json:"retention_bytes" doc:"payload bytes that groups may keep stored"`
	Keep              PolicyTime  `json:"keep" doc:"how long a message stays after all are done with it"`
	MaxAge            PolicyTime  `json:"max_age" doc:"how old a message with a signed context may be when it is delivered"`
}

// PolicyChange sets the bounds that are given and leaves the others. Its minimums and maximums are those of package limits.
type PolicyChange struct {
	MaxDepth          *int64  `json:"max_depth,omitempty" minimum:"1" maximum:"1000000000000"`
	MaxRatePerSec     *int64  `json:"max_rate_per_sec,omitempty" minimum:"1" maximum:"1000000000"`
	MaxMessageBytes   *int64  `json:"max_message_bytes,omitempty" minimum:"1" maximum:"33554432"`
	MaxUnflushed      *int64  `json:"max_unflushed,omitempty" minimum:"0" maximum:"1000000" doc:"0 is strict"`
	MaxPriority       *int64  `json:"max_priority,omitempty" minimum:"0" maximum:"255"`
	IdempotencyWindow *string `json:"idempotency_window,omitempty" doc:"0s to 168h; 0s lets no key count"`
	Retention         *string `json:"retention,omitempty" doc:"1ms to 8784h"`
	RetentionBytes    *int64  `json:"retention_bytes,omitempty" minimum:"1" maximum:"1125899906842624"`
	Keep              *string `json:"keep,omitempty" doc:"0s to 8784h"`
	MaxAge            *string `json:"max_age,omitempty" doc:"1ms to 8784h"`
}
