package dispatcher

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/signedctx"
)

// Reasons are the host's own words: an enumerated class, followed by a detail in a few of them ("guest-error: other",
// "exit 3"). They never hold guest bytes. docs/failure-reasons.md explains each.
const (
	ReasonGuestError    = "guest-error" // then ": " and the case of the error, or "retry"
	ReasonGuestTrap     = "guest-trap"  // then ": " and the kind of the trap
	ReasonOutOfFuel     = "out-of-fuel"
	ReasonTimeout       = "timeout"
	ReasonOutOfMemory   = "out-of-memory"
	ReasonStackOverflow = "stack-overflow"
	ReasonExit          = "exit" // then the exit code
	ReasonBadABI        = "bad-abi"
	ReasonHostCallLimit = "host-call-limit"
	ReasonHandleLimit   = "handle-limit"
	ReasonOutputLimit   = "output-limit"
	ReasonHostPanic     = "host-panic"
	ReasonInterrupted   = "interrupted"
	ReasonModuleFault   = "module-fault"

	ReasonContextMissing    = "context-missing"
	ReasonDecodeFailed      = "decode-failed" // of the context
	ReasonContextForged     = "context-forged"
	ReasonContextExpired    = "context-expired"
	ReasonContextUnknownKey = "context-unknown-key"
	ReasonContextMismatch   = "context-mismatch"

	ReasonStaleFence         = "stale-fence"
	ReasonStale              = "stale"
	ReasonBatchDivided       = "batch-divided"
	ReasonFenceLimit         = "fence-limit"
	ReasonOtherTarget        = "other-target"
	ReasonFiltered           = "filtered"
	ReasonFilterFailed       = "filter-failed"
	ReasonUnsupportedFeature = "unsupported-feature"
	ReasonCircuitOpen        = "circuit-open"
	ReasonRejected           = "rejected" // by the handler, or by a hook

	ReasonSkipped    = "skipped"     // by the handler; then how often
	ReasonSkippedOut = "skipped-out" // by the handler, too often

	ReasonOutboxRefused = "outbox-refused" // then ": " and the case of the publish error
	ReasonSealFailed    = "seal-failed"

	ReasonKeyvalueConflict = "keyvalue-conflict"

	ReasonLeaseLost    = "lease-lost"
	ReasonStorageError = "storage-error"
	ReasonMaxAttempts  = "max-attempts"   // by a claim: as substrate.ReasonMaxAttempts
	ReasonCorrupt      = "corrupt-record" // by a claim: as substrate.ReasonCorrupt
	ReasonMissing      = "missing-record" // by a claim: as substrate.ReasonMissing

	ReasonCrashed = "crashed" // by the log: as substrate.ReasonCrashed

	ReasonTTLExpired = "ttl-expired"       // by the log: as substrate.ReasonTTLExpired
	ReasonDeadline   = "deadline-exceeded" // by the log: as substrate.ReasonDeadline
)

// Reasons returns the class of every reason that a message, a receipt or a paused consumer can have.
func Reasons() []string {
	return []string{
		ReasonGuestError, ReasonGuestTrap, ReasonOutOfFuel, ReasonTimeout, ReasonOutOfMemory, ReasonStackOverflow, ReasonExit,
		ReasonBadABI, ReasonHostCallLimit, ReasonHandleLimit, ReasonOutputLimit, ReasonHostPanic, ReasonInterrupted,
		ReasonModuleFault,
		ReasonContextMissing, ReasonDecodeFailed, ReasonContextForged, ReasonContextExpired, ReasonContextUnknownKey,
		ReasonContextMismatch,
		ReasonStaleFence, ReasonStale, ReasonBatchDivided, ReasonFenceLimit, ReasonOtherTarget, ReasonFiltered, ReasonFilterFailed, ReasonUnsupportedFeature,
		ReasonCircuitOpen, ReasonRejected, ReasonSkipped, ReasonSkippedOut,
		ReasonOutboxRefused, ReasonSealFailed, ReasonKeyvalueConflict, ReasonLeaseLost, ReasonStorageError, ReasonMaxAttempts,
		ReasonCorrupt, ReasonMissing, ReasonCrashed, ReasonTTLExpired, ReasonDeadline,
	}
}

// reasonForContext names the refusal of a signed context. A class that is not known counts as malformed.
func reasonForContext(c signedctx.Class) string {
	switch c {
	case signedctx.ClassMissing:
		return ReasonContextMissing
	case signedctx.ClassMalformed:
		return ReasonDecodeFailed
	case signedctx.ClassSignature:
		return ReasonContextForged
	case signedctx.ClassExpired:
		return ReasonContextExpired
	case signedctx.ClassUnknownKey:
		return ReasonContextUnknownKey
	case signedctx.ClassMismatch:
		return ReasonContextMismatch
	}
	return ReasonDecodeFailed
}

// sanitize makes any text fit to be a reason: control, format and line-breaking characters and invalid bytes become
// spaces, and at most limits.ReasonBytes bytes are kept, cut between runes, without spaces at the ends.
func sanitize(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			r = ' '
		}
		if b.Len()+utf8.RuneLen(r) > limits.ReasonBytes {
			break
		}
		b.WriteRune(r)
	}
	return strings.TrimSpace(b.String())
}
