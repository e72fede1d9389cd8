package substrate

import (
	"errors"
	"fmt"
	"time"
)

// Errors of every call.
var (
	// ErrClosed is returned after Close, and after a storage fault stopped the log (then Log.Err says which).
	ErrClosed = errors.New("the log is closed")
	// ErrStorageFull says that the disk has no room for what should be written. Nothing was changed; it may be tried again.
	ErrStorageFull = errors.New("storage full")
)

// Errors of Open.
var (
	// ErrDamaged says that a part of the log does not check: a table of the store, or frames that were durable once. Nothing
	// was changed.
	ErrDamaged = errors.New("the log is damaged")
	// ErrJournalMissing says that the log's journal is gone or empty, although the log was in use: what was acknowledged
	// last may be lost. Nothing was changed.
	ErrJournalMissing = errors.New("the journal is missing")
)

// Errors of Restore and CheckBackup.
var (
	// ErrBackup says that what was given is no whole backup: it is cut, damaged, no backup at all, or one of a newer program.
	ErrBackup = errors.New("the backup can't be used")
	// ErrNotEmpty says that there is something in the folder that was to be restored into. Nothing was changed.
	ErrNotEmpty = errors.New("the folder is not empty")
)

// Errors of Settle, Extend and RaiseFence.
var (
	// ErrLeaseLost says that the lease expired and the message was claimed again, settled or redriven since. Nothing was
	// changed: the caller drops its result. It is not returned for a lease that is past its time but still the newest:
	// whoever holds that may settle.
	ErrLeaseLost = errors.New("lease lost: another holder owns this message now")
	// ErrStaleFence says that the lane has accepted a higher token for the fence key. Nothing was changed: what the caller was
	// given comes from a tenure that is over. A *StaleFenceError says which.
	ErrStaleFence = errors.New("stale fence: a higher token was accepted")
)

// ErrConflict is returned by SettleValues if something that the settlement depends on has changed since it was read. Nothing
// was changed: what was read is to be read again, and the handling repeated. A *ConflictError says what changed.
var ErrConflict = errors.New("conflict: a value that was read has changed")

// ConflictError is an ErrConflict with what changed.
type ConflictError struct {
	Bucket string
	Key    string // "" if the list of the bucket's keys has changed
}

// Error implements error. The key is quoted.
func (e *ConflictError) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("bucket %s: the list of keys has changed", e.Bucket)
	}
	return fmt.Sprintf("bucket %s: key %q has changed", e.Bucket, e.Key)
}

// Is reports whether target is ErrConflict.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// StaleFenceError is an ErrStaleFence with what was compared.
type StaleFenceError struct {
	Lease Lease
	Fence Fence
	Mark  uint64 // the highest token accepted, above that of Fence
}

// Error implements error. The key is quoted.
func (e *StaleFenceError) Error() string {
	return fmt.Sprintf("message at position %d: fence %q: token %d is below %d, which was accepted", e.Lease.Position, e.Fence.Key, e.Fence.Token, e.Mark)
}

// Is reports whether target is ErrStaleFence.
func (e *StaleFenceError) Is(target error) bool { return target == ErrStaleFence }

// Errors of Claim, and of what names a lane.
var (
	// ErrNoGroup says that the topic has no consumer group of this name.
	ErrNoGroup = errors.New("no such consumer group")
	// ErrGroupEnding says that a group of this name is being deleted, so that none can be made yet. Waiting helps, and so does
	// DeleteGroup, which returns when it is gone.
	ErrGroupEnding = errors.New("the consumer group is being deleted")
	// ErrLaneOff says that the topic's default lane is off: its messages go to consumer groups only.
	ErrLaneOff = errors.New("the topic's default lane is off")
)

// Errors of DeadLetter and Policy.
var (
	// ErrNotFound says that the message or topic that was named does not exist.
	ErrNotFound = errors.New("not found")
)

// NameError says that a tenant, topic or lane name is not allowed. The name is quoted and cut.
type NameError struct {
	Kind string // "tenant", "topic", "lane", "message id"
	Name string
	Want string // what would be right
}

// Error implements error.
func (e *NameError) Error() string {
	name := e.Name
	if len(name) > 80 {
		name = name[:80] + "…"
	}
	return fmt.Sprintf("%s %q is not allowed: want %s", e.Kind, name, e.Want)
}

// StartError says that a group can't begin at a position, because no message has it yet.
type StartError struct {
	Position uint64
	Next     uint64 // the position of the next message
}

// Error implements error.
func (e *StartError) Error() string {
	return fmt.Sprintf("start: position %d is not given yet: the next is %d", e.Position, e.Next)
}

// PolicyError says which value of a policy is not allowed.
type PolicyError struct {
	Name     string // "max_depth", …
	Value    int64
	Min, Max int64 // would be right
	Time     bool  // these are ms
}

// Error implements error.
func (e *PolicyError) Error() string {
	if e.Time {
		ms := func(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
		return fmt.Sprintf("%s: %s is not allowed: want %s to %s", e.Name, ms(e.Value), ms(e.Min), ms(e.Max))
	}
	return fmt.Sprintf("%s: %d is not allowed: want %d to %d", e.Name, e.Value, e.Min, e.Max)
}

// DepthError says that a topic's backlog is at its max_depth. It reopens as the backlog drains.
type DepthError struct {
	Topic  string
	Limit  int64
	Actual int64 // backlog, reservations and this publish together
}

// Error implements error.
func (e *DepthError) Error() string {
	return fmt.Sprintf("topic %s: depth exceeded: the backlog would be %d, max_depth is %d", e.Topic, e.Actual, e.Limit)
}

// RateError says that a topic's max_rate_per_sec is used up.
type RateError struct {
	Topic      string
	PerSecond  int64
	RetryAfter time.Duration
}

// Error implements error.
func (e *RateError) Error() string {
	return fmt.Sprintf("topic %s: rate exceeded: max_rate_per_sec is %d, try again in %s", e.Topic, e.PerSecond, e.RetryAfter)
}
