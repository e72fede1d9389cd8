package runtime

import (
	"errors"
	"strconv"
	"strings"
	"unicode"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/wasi/messaging"
)

// faultError wraps what kept an instance from coming up.
type faultError struct{ err error }

// Error implements error.
func (e *faultError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *faultError) Unwrap() error { return e.err }

// guestError wraps an error whose text may hold words of a guest, such as the function names of a stack trace. It shows
// them bounded and on one line, without characters that could disguise a log.
type guestError struct{ err error }

// maxErrorRunes bounds the text of a guestError.
const maxErrorRunes = 2000

// Error implements error.
func (e *guestError) Error() string {
	var b strings.Builder
	n := 0
	for _, r := range e.err.Error() {
		if n++; n > maxErrorRunes {
			b.WriteString("…")
			break
		}
		if !unicode.IsPrint(r) {
			r = ' '
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *guestError) Unwrap() error { return e.err }

// classify says what ended a call that failed. memoryRefused tells that memory.grow failed before.
func classify(err error, memoryRefused bool) (class Class, detail string) {
	var (
		exit  *messaging.ExitError
		fault *faultError
		abi   *messaging.ABIError
		limit *limits.Error
	)
	switch {
	case errors.Is(err, messaging.ErrInterrupted):
		return Interrupted, ""
	case errors.As(err, &fault):
		return ModuleFault, ""
	case errors.Is(err, messaging.ErrTimeout):
		return Timeout, ""
	case errors.As(err, &limit):
		return classOfLimit(limit.Name), ""
	case errors.As(err, &exit):
		class, detail = Exit, strconv.FormatUint(uint64(exit.Code), 10)
	case errors.As(err, &abi):
		class = BadABI
	default:
		class, detail = classOfTrap(err)
	}
	// A guest that ran out of memory gives up in its own way: it traps or exits. Breaking the ABI is always its fault.
	if memoryRefused && (class == Trap || class == Exit) {
		return OutOfMemory, ""
	}
	return class, detail
}

// classOfLimit maps the bounds that end a call.
func classOfLimit(name limits.Name) Class {
	switch name { //nolint:exhaustive // the other bounds don't end calls
	case limits.NameFuel:
		return OutOfFuel
	case limits.NameCallDepth:
		return StackOverflow
	case limits.NameHostCalls:
		return HostCallLimit
	case limits.NameHandles:
		return HandleLimit
	case limits.NameLogBytes, limits.NameResultBytes:
		return OutputLimit
	case limits.NameHeldBytes, limits.NameMetadataPairs:
		return OutOfMemory
	}
	return HostPanic
}

// classOfTrap tells wazero's traps, whose type is internal, by the text of the innermost error. Whatever isn't one of
// them was a panic in a host function.
func classOfTrap(err error) (class Class, detail string) {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	switch err.Error() {
	case "stack overflow":
		return StackOverflow, ""
	case "unreachable":
		return Trap, "unreachable"
	case "out of bounds memory access":
		return Trap, "memory-out-of-bounds"
	case "invalid table access":
		return Trap, "invalid-table-access"
	case "indirect call type mismatch":
		return Trap, "indirect-call-mismatch"
	case "integer divide by zero":
		return Trap, "integer-divide-by-zero"
	case "integer overflow":
		return Trap, "integer-overflow"
	case "invalid conversion to integer":
		return Trap, "invalid-conversion"
	}
	return HostPanic, ""
}
