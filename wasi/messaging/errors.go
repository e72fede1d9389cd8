package messaging

import (
	"errors"
	"fmt"
	"time"
)

// ErrTimeout ends a call that is still running at its deadline.
var ErrTimeout = errors.New("the call's time is over")

// ErrInterrupted ends a call whose context was cancelled. The error that carries it tells the cause.
var ErrInterrupted = errors.New("the call was interrupted")

// ABIError says how a guest broke the canonical ABI. Its text is the host's own.
type ABIError struct {
	Func    string // the import or export concerned; "" where it isn't known
	Problem string
}

// Error implements error.
func (e *ABIError) Error() string {
	if e.Func == "" {
		return "canonical ABI: " + e.Problem
	}
	return "canonical ABI: " + e.Func + ": " + e.Problem
}

// ErrorCase is a case of wasi:messaging's variant error, numbered as in the WIT.
type ErrorCase uint8

// The cases of error. All but ErrorTimeout carry a text.
const (
	ErrorTimeout ErrorCase = iota
	ErrorConnection
	ErrorPermissionDenied
	ErrorOther
)

// String returns the name of the case in the WIT.
func (c ErrorCase) String() string {
	switch c {
	case ErrorTimeout:
		return "timeout"
	case ErrorConnection:
		return "connection"
	case ErrorPermissionDenied:
		return "permission-denied"
	case ErrorOther:
		return "other"
	}
	return fmt.Sprintf("case %d", uint8(c))
}

// GuestError is a value of wasi:messaging's variant error: what a handler returned, or what a guest is told.
type GuestError struct {
	Case ErrorCase
	Text string // of a handler: untrusted
}

// Error implements error. The text is quoted.
func (e *GuestError) Error() string {
	if e.Text == "" {
		return e.Case.String()
	}
	return fmt.Sprintf("%s: %q", e.Case, e.Text)
}

// PublishCase is a case of the variant publish-error, numbered as in the WIT.
type PublishCase uint8

// The cases of publish-error. Those up to StorageFull carry numbers; Unauthorized, Invalid, Unavailable and Other carry
// a text.
const (
	DepthExceeded PublishCase = iota
	RateExceeded
	TooLarge
	QuotaExceeded
	HopLimit
	StorageFull
	Unauthorized
	Invalid
	Unavailable
	Timeout
	Other
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
	return fmt.Sprintf("case %d", uint8(c))
}

// PublishError is why a message was not accepted, as the guest is told.
type PublishError struct {
	Case       PublishCase
	Limit      uint64         // of the cases with numbers
	Actual     uint64         // of the cases with numbers
	RetryAfter *time.Duration // of the cases with numbers, in whole milliseconds; nil = unknown
	Text       string         // of the cases with text; elsewhere it only words the error of send
}

// Error implements error.
func (e *PublishError) Error() string {
	switch {
	case e.Text != "":
		return e.Case.String() + ": " + e.Text
	case e.Case <= StorageFull:
		return fmt.Sprintf("%s: %d is over the limit of %d", e.Case, e.Actual, e.Limit)
	}
	return e.Case.String()
}

// forSend words the error as wasi:messaging's send can: it has fewer cases. It returns nil for nil.
func (e *PublishError) forSend() *GuestError {
	if e == nil {
		return nil
	}
	switch e.Case {
	case Unauthorized:
		return &GuestError{Case: ErrorPermissionDenied, Text: e.Text}
	case Unavailable:
		return &GuestError{Case: ErrorConnection, Text: e.Text}
	case Timeout:
		return &GuestError{Case: ErrorTimeout}
	case DepthExceeded, RateExceeded, TooLarge, QuotaExceeded, HopLimit, StorageFull, Invalid, Other:
	}
	return &GuestError{Case: ErrorOther, Text: e.Error()}
}

// ExitError ends a call in which the guest ended itself.
type ExitError struct{ Code uint32 }

// Error implements error.
func (e *ExitError) Error() string { return fmt.Sprintf("the guest exited with code %d", e.Code) }
