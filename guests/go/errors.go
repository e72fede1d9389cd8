package longshore

import (
	"errors"
	"strconv"
	"strings"
)

// ErrorCase is a case of wasi:messaging's error, numbered as in the WIT.
type ErrorCase uint8

// The cases of an Error.
const (
	CaseTimeout          ErrorCase = iota // something took too long
	CaseConnection                        // something can't be reached
	CasePermissionDenied                  // something isn't allowed
	CaseOther                             // anything else
)

// String returns the name of the case in the WIT.
func (c ErrorCase) String() string {
	switch c {
	case CaseTimeout:
		return "timeout"
	case CaseConnection:
		return "connection"
	case CasePermissionDenied:
		return "permission-denied"
	case CaseOther:
		return "other"
	}
	return "case " + strconv.Itoa(int(c))
}

// Error is an error with a case that the host understands: Send returns it, and a handler can.
type Error struct {
	Case ErrorCase
	Text string // CaseTimeout has none: the host doesn't see it
}

// Error implements error.
func (e *Error) Error() string { return join(e.Case.String(), e.Text) }

// PublishCase is a case of longshore:messaging's publish-error, numbered as in the WIT.
type PublishCase uint8

// The cases of a PublishError. Those up to PublishStorageFull come with Limit, Actual and perhaps RetryAfterMillis, the others,
// except PublishTimeout, with Text.
const (
	PublishDepthExceeded PublishCase = iota // the topic's backlog is full; in messages
	PublishRateExceeded                     // over the topic's or the tenant's rate; in messages a second
	PublishTooLarge                         // the message or the batch is too large; in bytes
	PublishQuotaExceeded                    // this delivery has published all that it may; in messages or bytes
	PublishHopLimit                         // the chain of causes is too long; in messages
	PublishStorageFull                      // the host's disk is full; in bytes
	PublishUnauthorized                     // the consumer isn't granted this topic
	PublishInvalid                          // the message, its topic or an option isn't acceptable
	PublishUnavailable                      // not now, for another reason
	PublishTimeout                          // took too long
	PublishOther                            // anything else
)

// String returns the name of the case in the WIT.
func (c PublishCase) String() string {
	names := [...]string{
		"depth-exceeded", "rate-exceeded", "too-large", "quota-exceeded", "hop-limit", "storage-full",
		"unauthorized", "invalid", "unavailable", "timeout", "other",
	}
	if int(c) < len(names) {
		return names[c]
	}
	return "case " + strconv.Itoa(int(c))
}

// PublishError says why the host didn't accept a message or a batch.
type PublishError struct {
	Case             PublishCase
	Limit            uint64 // in the unit of the case
	Actual           uint64 // in the unit of the case
	RetryAfterMillis uint64 // 0 = unknown; no time.Duration, because importing time makes every module 250 KB larger
	Text             string
}

// Error implements error.
func (e *PublishError) Error() string {
	if e.Case <= PublishStorageFull {
		return join(e.Case.String(), strconv.FormatUint(e.Actual, 10)+" is over the limit of "+strconv.FormatUint(e.Limit, 10))
	}
	return join(e.Case.String(), e.Text)
}

// guestCase is the case of Error that is nearest, for a handler that returns a PublishError.
func (e *PublishError) guestCase() ErrorCase {
	switch e.Case {
	case PublishUnauthorized:
		return CasePermissionDenied
	case PublishTimeout:
		return CaseTimeout
	case PublishUnavailable:
		return CaseConnection
	case PublishDepthExceeded, PublishRateExceeded, PublishTooLarge, PublishQuotaExceeded, PublishHopLimit,
		PublishStorageFull, PublishInvalid, PublishOther:
	}
	return CaseOther
}

// BatchError says that the host accepted only a part of a batch. It wraps the first refusal.
type BatchError struct {
	Size    int           // messages in the batch
	Refused int           // of them were refused
	First   int           // index of the first that was
	Err     *PublishError // why that one was
}

// Error implements error.
func (e *BatchError) Error() string {
	return strconv.Itoa(e.Refused) + " of " + strconv.Itoa(e.Size) + " messages were refused, message " +
		strconv.Itoa(e.First) + " for: " + e.Err.Error()
}

// Unwrap returns the first refusal.
func (e *BatchError) Unwrap() error { return e.Err }

// toHost returns the case and the text with which a handler's error is told to the host. Text that isn't UTF-8, which would
// break the ABI, is repaired.
func toHost(err error) (ErrorCase, string) {
	if e, ok := errors.AsType[*Error](err); ok && e.Case <= CaseOther {
		text := e.Text
		if err != error(e) { // it was wrapped: what the wrapping says matters too
			text = err.Error()
		}
		return e.Case, strings.ToValidUTF8(text, "\uFFFD")
	}
	errorCase := CaseOther
	if e, ok := errors.AsType[*PublishError](err); ok {
		errorCase = e.guestCase()
	}
	return errorCase, strings.ToValidUTF8(err.Error(), "\uFFFD")
}

// join puts a detail behind what it is a detail of.
func join(what, detail string) string {
	if detail == "" {
		return what
	}
	return what + ": " + detail
}
