package dispatcher

import (
	"slices"
	"time"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

// finding is what a delivery came to, before anything is decided about it.
type finding struct {
	end endpoint

	refusal signedctx.Class // atContext
	outcome runtime.Outcome // atGuest
	badABI  int             // atGuest, BadABI: on how many different messages the guest broke the ABI, this one included
	refused *refusedOutbox  // atCommit: the refusal; atGuest: of a publish that the guest asked for, which may be taken later
	skips   int             // atGuest: how often the message was skipped in a row before
	before  int             // atStorage: errors in a row before this one
}

// handled reports whether the guest handled the message well, and acknowledges it.
func (f finding) handled() bool {
	return f.end == atGuest && f.outcome.Class == runtime.OK && answerOf(f.outcome, 0).Case == messaging.AnswerAck
}

// endpoint says how far a delivery came.
type endpoint uint8

const (
	atContext     endpoint = iota // the signed context was refused; the guest wasn't run
	atTarget                      // it is meant for another consumer
	atFilter                      // the consumer's filter doesn't take it
	atFilterError                 // the filter can't be computed for it
	atFeature                     // it requires a feature that the consumer doesn't declare
	atDeadline                    // its deadline passed before the guest was run
	atHook                        // a hook rejected it
	atStorage                     // the queue failed before the guest was run
	notStarted                    // the consumer or the host stopped before there was a worker
	atFence                       // the lane accepted a higher token of the same fence key
	atFenceLimit                  // the lane has no room for another fence key now
	atStale                       // a newer message of the same ordering key was handled
	atDivision                    // it was in a batch that failed, and there was no time to find out whether it is to blame
	atGuest                       // the guest was run
	atSeal                        // the guest succeeded, but what it published couldn't be sealed
	atCommit                      // the guest succeeded, but the queue refused what it published
	atConflict                    // the guest succeeded, but values that it read changed before the commit, again and again
)

// refusedOutbox says why the queue didn't take what a guest published.
type refusedOutbox struct {
	why     messaging.PublishCase
	topic   string        // that refused it; "" if that isn't known
	forever bool          // the same outbox will be refused again
	after   time.Duration // when the queue said to try again; 0 if it didn't
	before  int           // refusals in a row before this one
}

// wait returns how long to wait before the outbox is tried again.
func (r *refusedOutbox) wait() time.Duration {
	if r.after > 0 {
		return r.after
	}
	return storageBackoff(r.before)
}

// policy is what a consumer's manifest says about failures.
type policy struct {
	maxAttempts  int
	retry        Retry
	nonRetryable []string // cases of guest errors
}

// decision is what to do with a delivery.
type decision struct {
	verdict substrate.Verdict
	delay   time.Duration // of a retry or release
	reason  string        // one of Reasons, with its detail; "" for an ack of what the guest did
	then    consequence   // for the consumer
	unrun   bool          // of a burial: no guest ran, and the attempt is given back
	noted   bool          // the reason is kept with the message though it doesn't pay
}

// handled reports whether the message is acknowledged because the guest handled it.
func (d decision) handled() bool { return d.verdict == substrate.Ack && d.reason == "" }

// charges reports whether the message pays with an attempt, and keeps the reason. An earlier reason stands otherwise.
func (d decision) charges() bool {
	return d.verdict == substrate.Retry || d.verdict == substrate.Bury
}

// consequence is what a decision does to the consumer beside the message.
type consequence uint8

const (
	goOn  consequence = iota
	hold              // claim nothing for the decision's delay
	pause             // claim nothing until an operator has seen to it
)

// decide is the table of verdicts, a pure function. A message pays with an attempt for what it, or the guest because of
// it, did; never for a fault of the module, the operator or the host. chance is random, in [0, 1).
func decide(f finding, attempt int, p policy, chance float64) decision {
	switch f.end {
	case atContext:
		return decideContext(f.refusal)
	case atTarget:
		return passOver(ReasonOtherTarget)
	case atFilter:
		return passOver(ReasonFiltered)
	case atFilterError:
		return buryUnrun(ReasonFilterFailed)
	case atFeature:
		return buryUnrun(ReasonUnsupportedFeature)
	case atDeadline:
		return buryUnrun(ReasonDeadline)
	case atHook:
		return buryUnrun(ReasonRejected)
	case atStorage:
		return release(ReasonStorageError, storageBackoff(f.before), hold)
	case notStarted:
		return release(ReasonInterrupted, 0, goOn)
	case atFence:
		return passOver(ReasonStaleFence)
	case atStale:
		return passOver(ReasonStale)
	case atDivision:
		d := release(ReasonBatchDivided, 0, goOn)
		d.noted = true
		return d
	case atFenceLimit:
		return release(ReasonFenceLimit, limits.StorageRetryMax, goOn)
	case atGuest:
		return decideOutcome(f, attempt, p, chance)
	case atSeal:
		return release(ReasonSealFailed, 0, pause)
	case atCommit:
		return decideCommit(f.refused, attempt, p, chance)
	case atConflict:
		d := release(ReasonKeyvalueConflict, retryDelay(p.retry, 1, chance), goOn)
		d.noted = true
		return d
	}
	return release(ReasonInterrupted, 0, pause)
}

// decideContext buries what isn't genuine. A key that isn't there is the operator's fault, not the message's.
func decideContext(c signedctx.Class) decision {
	if c == signedctx.ClassUnknownKey {
		return release(ReasonContextUnknownKey, 0, pause)
	}
	return buryUnrun(reasonForContext(c))
}

func decideOutcome(f finding, attempt int, p policy, chance float64) decision {
	reason := f.outcome.Reason()
	if f.refused != nil && gaveUp(f.outcome.Class) {
		return decideCommit(f.refused, attempt, p, chance)
	}
	switch f.outcome.Class {
	case runtime.OK:
		return decideAnswer(f, attempt, p, chance)
	case runtime.GuestError:
		if slices.Contains(p.nonRetryable, f.outcome.Detail) {
			return bury(reason)
		}
		return retry(reason, attempt, p, chance)
	case runtime.BadABI:
		if f.badABI >= limits.BadABIMessages {
			return release(reason, 0, pause)
		}
		return retry(reason, attempt, p, chance)
	case runtime.Trap, runtime.OutOfFuel, runtime.Timeout, runtime.OutOfMemory, runtime.StackOverflow, runtime.Exit,
		runtime.HostCallLimit, runtime.HandleLimit, runtime.OutputLimit, runtime.HostPanic:
		return retry(reason, attempt, p, chance)
	case runtime.Interrupted:
		return release(reason, 0, goOn)
	case runtime.ModuleFault:
		return release(reason, 0, pause)
	}
	return release(ReasonModuleFault, 0, pause)
}

// gaveUp reports whether a call ended as those do whose guest was refused something and doesn't know better.
func gaveUp(c runtime.Class) bool {
	return c == runtime.GuestError || c == runtime.Trap || c == runtime.Exit
}

// decideCommit gives the message back until there is room, unless there never will be.
func decideCommit(r *refusedOutbox, attempt int, p policy, chance float64) decision {
	reason := ReasonOutboxRefused + ": " + r.why.String()
	if r.forever {
		return retry(reason, attempt, p, chance)
	}
	return release(reason, r.wait(), hold)
}

// passOver acknowledges what has no effect.
func passOver(reason string) decision {
	return decision{verdict: substrate.Ack, reason: reason}
}

func bury(reason string) decision {
	return decision{verdict: substrate.Bury, reason: sanitize(reason)}
}

// buryUnrun buries what no guest ran: the dead letter says how often one did.
func buryUnrun(reason string) decision {
	d := bury(reason)
	d.unrun = true
	return d
}

func release(reason string, delay time.Duration, then consequence) decision {
	return decision{verdict: substrate.Release, reason: sanitize(reason), delay: delay, then: then}
}

// retry tries again, or buries once the attempts are used up.
func retry(reason string, attempt int, p policy, chance float64) decision {
	if attempt >= p.maxAttempts {
		return bury(reason)
	}
	return decision{verdict: substrate.Retry, reason: sanitize(reason), delay: retryDelay(p.retry, attempt, chance)}
}

// retryDelay returns base × 2ⁿ after attempt n+1, at most the cap, less a random part of it.
func retryDelay(r Retry, attempt int, chance float64) time.Duration {
	d := r.Cap
	doublings := min(max(attempt-1, 0), limits.RetryDoublings)
	if r.Base <= r.Cap>>doublings {
		d = r.Base << doublings
	}
	return d - time.Duration(chance*float64(d)*limits.RetryJitterPercent/100)
}

// storageBackoff returns how long to wait after so many storage errors in a row before this one.
func storageBackoff(before int) time.Duration {
	d := limits.StorageRetryMin
	for range before {
		if d >= limits.StorageRetryMax {
			break
		}
		d *= 2
	}
	return min(d, limits.StorageRetryMax)
}
