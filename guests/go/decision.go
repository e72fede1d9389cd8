package longshore

import "strings"

// Outcome is what the handlers of packages outcome and batch decide for a message. The zero value is Ack.
type Outcome struct {
	kind        outcomeCase
	hasDelay    bool
	delayMillis uint64
	why         string
}

// outcomeCase is a case of longshore:messaging's outcome, numbered as in the WIT.
type outcomeCase uint8

const (
	outcomeAck outcomeCase = iota
	outcomeRetry
	outcomeReject
	outcomeSkip
)

// Ack says that the message is done, and that what was published is to be committed.
func Ack() Outcome { return Outcome{} }

// Retry asks for another delivery, later. This attempt counts.
func Retry() Outcome { return Outcome{kind: outcomeRetry} }

// RetryAfterMillis asks for another delivery, not before so many milliseconds. This attempt counts.
func RetryAfterMillis(n uint64) Outcome {
	return Outcome{kind: outcomeRetry, hasDelay: true, delayMillis: n}
}

// Reject makes the message a dead letter now. The text goes to the tenant's log.
func Reject(why string) Outcome { return Outcome{kind: outcomeReject, why: why} }

// Skip says that the message wasn't touched: it is delivered again, and this attempt doesn't count.
func Skip() Outcome { return Outcome{kind: outcomeSkip} }

// putOutcome writes an outcome. Text that isn't UTF-8, which would break the ABI, is to be repaired before.
func (a *arena) putOutcome(at uint32, o Outcome) {
	a.putU8(at+layoutOutcome.at(discriminant), uint8(o.kind))
	at += layoutOutcome.at(payload)
	switch {
	case o.kind == outcomeReject:
		a.putString(at, o.why)
	case o.hasDelay:
		a.putU8(at+layoutOptU64.at(discriminant), 1)
		a.putU64(at+layoutOptU64.at(payload), o.delayMillis)
	}
}

// repaired returns the outcome with a text in UTF-8.
func (o Outcome) repaired() Outcome {
	o.why = strings.ToValidUTF8(o.why, "\uFFFD")
	return o
}

// lowerOutcome writes the outcome of one message.
func lowerOutcome(o Outcome) *arena {
	o = o.repaired()
	a := newArena(layoutOutcome, 1, len(o.why))
	a.putOutcome(0, o)
	return a
}

// lowerOutcomes writes a batch handler's result<list<outcome>, error>. It needs the arenas of both.
func lowerOutcomes(outcomes []Outcome, err error) (result, list *arena) {
	if err != nil {
		return lowerResult(err), nil // the error lies where a result<_, error> has it
	}
	repaired := make([]Outcome, len(outcomes))
	size := 0
	for i, o := range outcomes {
		repaired[i] = o.repaired()
		size += len(repaired[i].why)
	}
	list = newArena(layoutOutcome, len(outcomes), size)
	for i, o := range repaired {
		list.putOutcome(uint32(i)*layoutOutcome.size, o) //nolint:gosec // 32-bit memory
	}
	result = newArena(layoutResultOutcomes, 1, 0)
	at := layoutResultOutcomes.at(payload)
	result.putU32(at+layoutList.at(0), list.base)
	result.putU32(at+layoutList.at(1), uint32(len(outcomes))) //nolint:gosec // 32-bit memory
	return result, list
}
