package dispatcher

import (
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

// decideAnswer is what the answer of a handler that ran well means for the message. An outcome without answers is that of
// a handler which has no other one than ok.
func decideAnswer(o runtime.Outcome, attempt int, p policy, chance float64) decision {
	if len(o.Answers) == 0 {
		return decision{verdict: substrate.Ack}
	}
	a := o.Answers[0]
	switch a.Case {
	case messaging.AnswerAck:
		return decision{verdict: substrate.Ack}
	case messaging.AnswerRetry:
		d := retry(ReasonGuestError+": retry", attempt, p, chance)
		if d.verdict == substrate.Retry && a.Delay != nil {
			d.delay = *a.Delay
		}
		return d
	case messaging.AnswerReject:
		return bury(ReasonRejected)
	case messaging.AnswerSkip:
	}
	return release(ReasonSkippedOut, retryDelay(p.retry, attempt, chance), goOn)
}

// acknowledged says whether a handler that ran well acknowledges the message, and with it what it published.
func acknowledged(o runtime.Outcome) bool {
	return len(o.Answers) == 0 || o.Answers[0].Case == messaging.AnswerAck
}
