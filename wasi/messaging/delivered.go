package messaging

import "time"

// Info is what a guest can learn about a message that was delivered to it, beside what the message itself carries.
type Info struct {
	ID             string
	Attempt        uint32 // 1 for the first delivery
	MaxAttempts    uint32
	PreviousReason string // why the attempt before failed; "" = there was none
	Group          string // of consumers; "" = none
	Published      time.Time
	Expires        time.Time // zero = never
	Deadline       time.Time // zero = none
	Priority       uint8
	IdempotencyKey string // "" = none
	OrderingKey    string // "" = none
	Fence          *Fence // nil = none
	Parent         string // id of the message whose handling published this one; "" = none
	Hops           uint32 // how long the chain of parents is
	Claims         *Claims
	Trace          []Pair // traceparent and tracestate
	Extensions     []Pair

	// ReplyTo is where the host sends a reply to this message. The guest isn't told. "" = it asks for none.
	ReplyTo string
}

// Fence is a key, and a token that rises with each holder of the key.
type Fence struct {
	Key   string
	Token uint64
}

// Claims say who published a message, verified by the host.
type Claims struct {
	Tenant, Subject, Issuer, TokenID string
	IssuedAt                         time.Time
	Extra, Extensions                []Pair
}

// PublishOptions are what a guest asks for when it publishes. The zero value asks for nothing.
type PublishOptions struct {
	Delay            time.Duration // at most limits.OptionDuration, in whole milliseconds
	TTL              time.Duration // likewise
	Deadline         time.Time     // zero = none
	Priority         uint8
	IdempotencyKey   string
	OrderingKey      string
	Fence            *Fence
	RequiredFeatures []string
	Target           string
	// Cause is the id of one of the call's messages: this one is committed with the acknowledgement of that. "" = only
	// with those of all.
	Cause string
}

// AnswerCase is a case of the variant outcome, numbered as in the WIT.
type AnswerCase uint8

// The cases of outcome.
const (
	AnswerAck    AnswerCase = iota // done
	AnswerRetry                    // deliver again, counting this attempt
	AnswerReject                   // never deliver again
	AnswerSkip                     // deliver again, not counting this attempt
)

// Answer is what a handler says about one message.
type Answer struct {
	Case  AnswerCase
	Delay *time.Duration // of AnswerRetry: not before that; nil = the host decides
	Text  string         // of AnswerReject: untrusted
}

// Request is a message that a guest waits for replies to.
type Request struct {
	Topic    string
	Message  Message
	Deadline time.Time // for the replies; never after that of the call
	Replies  int       // how many are expected, at least 1: fewer may be returned at the deadline
}
