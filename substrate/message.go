package substrate

import "time"

// Pair is one metadata entry. Order and duplicates are kept as given.
type Pair struct{ Key, Value string }

// Message is a message as it is published and delivered. After Publish its byte slices belong to the log and must not be
// changed; those of a Delivery belong to its caller.
type Message struct {
	ID          string // from Log.MintID
	Tenant      string
	Topic       string
	ContentType string // "" means none
	Metadata    []Pair
	Payload     []byte
	Envelope    []byte // the signed context; opaque to the log
	Parent      string // id of the message whose handling published this one, or ""
	Hops        uint32 // length of the chain of parents
	Options     MessageOptions

	// Reservation, if not nil, says that the topic's policy admitted this message before (Log.Reserve). A commit consumes it.
	Reservation *Reservation
}

// Receipt says where a message was stored.
type Receipt struct {
	ID       string // of the first message under the same idempotency key, if Duplicate
	Position uint64 // the log-wide sequence, from 1; 0 for a delayed message, which gets it when it becomes visible
	// Duplicate says that the message was not stored, because the first one under its idempotency key was.
	Duplicate bool
}

// ClaimRequest asks for messages of one lane.
type ClaimRequest struct {
	Tenant      string
	Topic       string
	Lane        string // "" is the default lane
	MaxMessages int    // at least 1
	MaxBytes    int64  // of payloads; a larger message is delivered alone
	Lease       time.Duration
	MaxAttempts int // a message that has been delivered so often is buried instead
}

// ClaimResult is what a claim yields: deliveries under a lease, what was buried because its attempts were used up or it
// expired, and what was quarantined because its record does not check.
type ClaimResult struct {
	Deliveries  []Delivery
	Buried      []DeadLetter
	Quarantined []QuarantineEntry
	Skipped     []QuarantineEntry // what could not be quarantined: it waits in its place until the next Open
}

// Lease is the right to settle one delivery. Token is never given twice.
type Lease struct {
	Tenant   string
	Topic    string
	Lane     string
	Position uint64
	Token    uint64
}

// Delivery is a message under a lease.
type Delivery struct {
	Message        Message
	Lease          Lease
	Attempt        int // from 1
	Expires        time.Time
	PreviousReason string // why the last attempt failed, or ""
	Operator       string // of its last redrive: see Redrive; or ""
	// Suspect says that the message was being handled when a process crashed, and may be the cause: nothing else should run
	// beside it. It is the only delivery of its claim.
	Suspect bool
}

// Verdict is what a settlement does with its delivery.
type Verdict uint8

// The verdicts.
const (
	Ack     Verdict = iota + 1 // done; with the outbox, in one commit
	Retry                      // again after Delay; the attempt counts
	Release                    // again after Delay; the attempt is taken back
	Bury                       // to the dead letters, with Reason
)

// String returns the verdict's name in lower case.
func (v Verdict) String() string {
	switch v {
	case Ack:
		return "ack"
	case Retry:
		return "retry"
	case Release:
		return "release"
	case Bury:
		return "bury"
	default:
		return "unknown"
	}
}

// Settlement ends one delivery.
type Settlement struct {
	Lease   Lease
	Verdict Verdict
	Delay   time.Duration // Retry and Release: how long the message stays hidden
	Reason  string        // kept with the message; at most limits.ReasonBytes
	Receipt []byte        // Bury: kept with the dead letter; at most limits.ReceiptBytes
	Unrun   bool          // Bury: nobody handled it this time; the attempt is taken back
	// Fence, if its key is set, is checked again with the lease: if the lane's mark has risen above its token, the whole call
	// returns ErrStaleFence. See Log.RaiseFence.
	Fence Fence
}

// DeadLetter describes a dead message without its payload.
type DeadLetter struct {
	ID           string // or "position-" and its position, if the message's record does not check
	Tenant       string
	Topic        string
	Lane         string
	Position     uint64
	Attempts     int
	Reason       string
	Published    time.Time
	Died         time.Time
	Redriven     int    // how often it was redriven before
	Operator     string // of its last redrive: see Redrive; or ""
	Receipt      []byte // of its last run
	PayloadBytes int
}

// DeadLetterFilter selects dead letters: all conditions that are set must hold. The zero value selects all.
type DeadLetterFilter struct {
	ID             string
	Lane           string
	LaneSet        bool          // filter by Lane, which may be the default lane ""
	OlderThan      time.Duration // since publish, inclusive; 0 does not filter
	ReasonContains string        // case-sensitive
	// After and AfterLane leave out what comes before and at a place, for paging: those of the last dead letter seen.
	After     uint64
	AfterLane string
	Limit     int // after ordering by position; 0 is limits.DeadLetterPage for a list and no limit for moves
}

// Peeked is a stored message, seen without a lease.
type Peeked struct {
	Position uint64    // 0 if it is not visible yet
	State    string    // "ready", "leased", "delayed", "parked"
	At       time.Time // end of the lease, or when it becomes claimable; zero if that is not a matter of time
	Attempts int
	Message  Message
}

// Stats are a topic's counters, and those of its default lane. Backlog is Ready + Parked + Delayed + Leased.
type Stats struct {
	Tenant      string
	Topic       string
	Ready       int64 // claimable now or once the lane is resumed
	Parked      int64 // waiting for an earlier message of their ordering key
	Delayed     int64 // waiting for a retry, or to become visible
	Leased      int64
	DeadLetters int64
	Oldest      time.Time // publish time of the oldest message not yet done; zero if none
	Paused      bool

	LaneMode   LaneMode // when the default lane is owed messages
	LanePaused bool     // the default lane is, whatever the topic is
	Ordering   Ordering // of the default lane

	Groups      int   // consumer groups
	PinnedBytes int64 // payloads of messages that groups still need, or that are kept, and the default lane does not need

	Quarantined int64 // records that do not check: see Log.Quarantined
	Skipped     int64 // messages that could not be quarantined since Open, and wait in their places

	Unflushed int64 // publishes and acknowledgements that are not on disk yet: see Policy.MaxUnflushed

	Published uint64 // since the topic was made; kept across restarts, like those below
	Acked     uint64
	Buried    uint64
	Redriven  uint64
	Discarded uint64
}

// Backlog returns Ready + Parked + Delayed + Leased.
func (s Stats) Backlog() int64 { return s.Ready + s.Parked + s.Delayed + s.Leased }

// TopicName names a topic of a tenant.
type TopicName struct{ Tenant, Topic string }
