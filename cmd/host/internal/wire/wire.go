// Package wire holds the JSON types of the host's HTTP interfaces, as both the server (package api) and the client
// (package client) use them. It has next to no behaviour of its own.
//
// Field names are snake_case; times are RFC 3339 in UTC; durations are Go's ("5s"); sizes are bytes.
package wire

import (
	"encoding/json"
	"errors"
	"slices"
	"time"
)

// BatchContentType marks a request body that is a Batch: several messages that are published together or not at all.
const BatchContentType = "application/vnd.longshore.batch+json"

// BackupContentType marks an answer that is a backup: see substrate.Log.Backup.
const BackupContentType = "application/vnd.longshore.backup"

// DefaultLane is how a query or a flag writes the default lane, whose name is the empty string.
const DefaultLane = "default"

// Headers of the data interface.
const (
	// TenantHeader names the tenant that a producer publishes for, where a topic's name alone doesn't say.
	TenantHeader = "X-Longshore-Tenant"
	// MetadataHeader may be repeated: each value is "key=value", the value percent-encoded. Order is kept.
	MetadataHeader = "X-Longshore-Metadata"
	// Options of a single message, each but the feature given once at most: see NewMessage. Keys are taken as they are, quotes included.
	DelayHeader          = "X-Longshore-Delay"
	TTLHeader            = "X-Longshore-TTL"
	DeadlineHeader       = "X-Longshore-Deadline"
	IdempotencyKeyHeader = "Idempotency-Key"
	PriorityHeader       = "X-Longshore-Priority"
	OrderingKeyHeader    = "X-Longshore-Ordering-Key"
	FenceHeader          = "X-Longshore-Fence" // KEY:TOKEN, see ParseFence
	FeatureHeader        = "X-Longshore-Feature"
	TargetHeader         = "X-Longshore-Target"
)

// Pair is one metadata entry. Order and duplicates are kept.
type Pair struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// NewMessage is a message to publish. Exactly one of Data (text, taken as its UTF-8 bytes) and DataBase64 is given.
type NewMessage struct {
	ContentType string  `json:"content_type,omitempty" doc:"media type of the payload"`
	Metadata    []Pair  `json:"metadata,omitempty" nullable:"false"`
	Data        *string `json:"data,omitempty" doc:"payload as text"`
	DataBase64  []byte  `json:"data_base64,omitzero" doc:"payload as base64"`

	// Options. One that is not given asks for nothing; one that is given empty is refused.
	Delay          *string `json:"delay,omitempty" doc:"hide the message for so long, as 5s"`
	TTL            *string `json:"ttl,omitempty" doc:"bury the message when it was visible for so long and is not done, as 15m"`
	Deadline       *string `json:"deadline,omitempty" doc:"bury the message at this time (RFC 3339) if it is not done"`
	IdempotencyKey *string `json:"idempotency_key,omitempty" doc:"what the same producer publishes again under the same key soon is not stored again"`

	Priority         *int64        `json:"priority,omitempty" minimum:"0" maximum:"255" doc:"goes before those of a lower one, in the default lane"`
	OrderingKey      *string       `json:"ordering_key,omitempty" doc:"lanes that are ordered by key handle the messages of one key one at a time, in their order"`
	Fence            *MessageFence `json:"fence,omitempty" doc:"which tenure of a role the producer speaks in; only from a producer that is known"`
	RequiredFeatures []string      `json:"required_features,omitempty" nullable:"false" maxItems:"16" doc:"what a consumer must declare to be given the message"`
	Target           *string       `json:"target,omitempty" doc:"the consumer that the message is for"`
}

// Payload returns the bytes to publish, or an error that says which field is wrong.
func (m NewMessage) Payload() ([]byte, error) {
	switch {
	case m.Data != nil && m.DataBase64 != nil:
		return nil, errors.New("has both data and data_base64; give one of them")
	case m.Data != nil:
		return []byte(*m.Data), nil
	case m.DataBase64 != nil:
		return m.DataBase64, nil
	}
	return nil, errors.New(`has no payload; give data (text, may be "") or data_base64`)
}

// Batch is the body of a publish of several messages.
type Batch struct {
	Messages []NewMessage `json:"messages" minItems:"1" nullable:"false"`
}

// Receipt says where a message was stored.
type Receipt struct {
	ID       string `json:"id" doc:"of the first message under the same idempotency key, if this one is a duplicate"`
	Position uint64 `json:"position" doc:"0 for a delayed message, which gets one when it becomes visible"`
	// Duplicate says that nothing was stored.
	Duplicate bool `json:"duplicate,omitempty" doc:"not stored, because the first message under its idempotency key was"`
}

// Published answers a publish, in the order of the request.
type Published struct {
	Receipts []Receipt `json:"receipts" nullable:"false"`
}

// AllDuplicates reports whether nothing was stored, because all of it was before.
func (p Published) AllDuplicates() bool {
	return len(p.Receipts) > 0 && !slices.ContainsFunc(p.Receipts, func(r Receipt) bool { return !r.Duplicate })
}

// Message is a stored message.
type Message struct {
	ID          string `json:"id"`
	Tenant      string `json:"tenant"`
	Topic       string `json:"topic"`
	ContentType string `json:"content_type,omitempty"`
	Metadata    []Pair `json:"metadata,omitempty" nullable:"false"`
	DataBase64  []byte `json:"data_base64"`
	Parent      string `json:"parent,omitempty" doc:"id of the message whose handling published this one"`
	Hops        uint32 `json:"hops,omitempty"`

	Options *MessageOptions `json:"options,omitempty" doc:"those that were given"`
}

// Peeked is a stored message seen without a lease.
type Peeked struct {
	Position uint64     `json:"position" doc:"0 if it is not visible yet"`
	State    string     `json:"state" enum:"ready,delayed,leased,parked" doc:"parked: behind an earlier message of its ordering key"`
	At       *time.Time `json:"at,omitempty" doc:"end of the lease, or when it becomes claimable"`
	Attempts int        `json:"attempts"`
	Message  Message    `json:"message"`
}

// PeekedList answers a peek, in the order of delivery as far as that is known.
type PeekedList struct {
	Messages []Peeked `json:"messages" nullable:"false"`
}

// TopicStats counts one topic and its default lane; dead letters are those of all lanes. Published, Acked, Buried, Redriven and Discarded count what happened; the others what is there now.
type TopicStats struct {
	Tenant        string     `json:"tenant"`
	Topic         string     `json:"topic"`
	Ready         int64      `json:"ready"`
	Parked        int64      `json:"parked" doc:"waiting for an earlier message of their ordering key"`
	Delayed       int64      `json:"delayed"`
	Leased        int64      `json:"leased"`
	DeadLetters   int64      `json:"dead_letters"`
	Quarantined   int64      `json:"quarantined" doc:"records that do not check"`
	Skipped       int64      `json:"skipped" doc:"messages that could not be quarantined since the host started, and wait in their places"`
	OldestUnacked *time.Time `json:"oldest_unacked,omitempty"`
	Paused        bool       `json:"paused"`
	DefaultLane   string     `json:"default_lane" enum:"auto,on,off" doc:"when the default lane is owed messages"`
	LanePaused    bool       `json:"lane_paused" doc:"the default lane is, whatever the topic is"`
	Ordering      string     `json:"ordering" enum:"none,key,topic" doc:"of the default lane"`
	Groups        int        `json:"groups" doc:"consumer groups"`
	PinnedBytes   int64      `json:"pinned_bytes" doc:"payloads that groups still need, or that are kept, and the default lane does not need"`
	Unflushed     int64      `json:"unflushed" doc:"publishes and acknowledgements that are not on disk yet; see max_unflushed"`
	Published     uint64     `json:"published"`
	Acked         uint64     `json:"acked"`
	Buried        uint64     `json:"buried"`
	Redriven      uint64     `json:"redriven"`
	Discarded     uint64     `json:"discarded"`
}

// TopicList answers a listing of topics, sorted by tenant and topic.
type TopicList struct {
	Topics []TopicStats `json:"topics" nullable:"false"`
}

// Pause asks to pause or resume a topic, or one lane of it.
type Pause struct {
	Paused bool `json:"paused"`
}

// DeadLetter describes a dead message.
type DeadLetter struct {
	ID           string          `json:"id"`
	Tenant       string          `json:"tenant"`
	Topic        string          `json:"topic"`
	Lane         string          `json:"lane"`
	Position     uint64          `json:"position"`
	Attempts     int             `json:"attempts"`
	Reason       string          `json:"reason"`
	Published    time.Time       `json:"published"`
	Died         time.Time       `json:"died"`
	Redriven     int             `json:"redriven" doc:"how often it was redriven before"`
	Operator     *Operator       `json:"operator,omitempty" doc:"who redrove it last"`
	PayloadBytes int             `json:"payload_bytes"`
	Receipt      json.RawMessage `json:"receipt,omitempty" doc:"receipt of its last run"`
}

// DeadLetterList is a page of dead letters by position. Next, if not 0, and NextLane are the after and after_lane of the next
// page.
type DeadLetterList struct {
	DeadLetters []DeadLetter `json:"dead_letters" nullable:"false"`
	Next        uint64       `json:"next,omitempty"`
	NextLane    string       `json:"next_lane,omitempty"`
}

// DeadLetterDetail is a dead letter with its message.
type DeadLetterDetail struct {
	DeadLetter DeadLetter `json:"dead_letter"`
	Message    Message    `json:"message"`
	// Unreadable says that the message's record does not check: of Message only the names are there.
	Unreadable bool `json:"unreadable,omitempty" doc:"the message's record does not check; only its names are known"`
}

// Filter selects dead letters; all conditions that are set must hold. One that is sent but empty is refused: it would
// select everything.
type Filter struct {
	ID        string `json:"id,omitempty" minLength:"1" doc:"message id"`
	Lane      string `json:"lane,omitempty" minLength:"1" doc:"lane; \"default\" is the default lane"`
	OlderThan string `json:"older_than,omitempty" minLength:"1" doc:"least age since publish, as 90s or 24h"`
	Reason    string `json:"reason,omitempty" minLength:"1" doc:"text that the reason contains"`
	Limit     int    `json:"limit,omitempty" minimum:"0" doc:"at most so many, oldest position first; 0 is all"`
}

// Move asks to redrive or discard the dead letters that Filter selects; with DryRun it only counts them.
type Move struct {
	Filter Filter `json:"filter"`
	DryRun bool   `json:"dry_run,omitempty"`
	Why    string `json:"why,omitempty" maxLength:"200" doc:"kept with what is redriven, at most 200 bytes; a discard keeps nothing"`
}

// Operator says who redrove a message.
type Operator struct {
	Act string    `json:"act" doc:"who did"`
	At  time.Time `json:"at"`
	Why string    `json:"why,omitempty"`
	// Verified says whether the seal of the record verifies; it is told of a single dead letter alone.
	Verified *bool `json:"verified,omitempty" doc:"whether the host's seal on this record verifies; told of a single dead letter alone"`
}

// Moved answers a Move.
type Moved struct {
	Count   int  `json:"count"`
	Refused int  `json:"refused,omitempty" doc:"selected, but their signed context or their record does not verify: they stay dead"`
	DryRun  bool `json:"dry_run"`
}

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

// Consumer is the state of one consumer.
type Consumer struct {
	Name     string `json:"name"`
	Tenant   string `json:"tenant"`
	Topic    string `json:"topic"`
	Lane     string `json:"lane,omitempty" doc:"the consumer group; none is the topic's default lane"`
	Module   string `json:"module" doc:"SHA-256 of the module, in hex"`
	Version  string `json:"version,omitempty" doc:"of the deployment in which it became what it is"`
	State    string `json:"state"`
	Reason   string `json:"reason,omitempty" doc:"why it isn't running"`
	InFlight int    `json:"in_flight"`
	Draining int    `json:"draining,omitempty" doc:"messages that versions before hold"`

	Canary *Canary `json:"canary,omitempty" doc:"a new version that gets a share of the messages"`
}

// Canary is a new version of a consumer beside the one that runs.
type Canary struct {
	Percent  int    `json:"percent" doc:"of the messages"`
	Module   string `json:"module" doc:"SHA-256 of the module, in hex"`
	Version  string `json:"version"`
	State    string `json:"state"`
	Reason   string `json:"reason,omitempty" doc:"why it isn't running: it gets no messages then"`
	InFlight int    `json:"in_flight"`
}

// ConsumerList answers a listing of consumers, by name.
type ConsumerList struct {
	Consumers []Consumer `json:"consumers" nullable:"false"`
}

// HostInfo says which host answers.
type HostInfo struct {
	Version string    `json:"version"`
	PID     int       `json:"pid"`
	HTTP    string    `json:"http" doc:"address of the data interface"`
	Data    string    `json:"data" doc:"data folder"`
	Started time.Time `json:"started"`
}
