package dispatcher

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

// decideAnswer is what the answer of a handler that ran well means for the message. An outcome without answers is that of
// a handler which has no other one than ok.
func decideAnswer(f finding, attempt int, p policy, chance float64) decision {
	a := answerOf(f.outcome, 0)
	switch a.Case {
	case messaging.AnswerAck:
		return decision{verdict: substrate.Ack}
	case messaging.AnswerRetry:
		d := retry(ReasonGuestError+": retry", attempt, p, chance)
		if d.verdict == substrate.Retry && a.Delay != nil {
			d.delay = min(max(*a.Delay, 0), limits.OptionDuration)
		}
		return d
	case messaging.AnswerReject:
		return bury(ReasonRejected)
	case messaging.AnswerSkip:
	}
	skips := f.skips + 1
	if skips >= limits.Skips {
		return bury(ReasonSkippedOut)
	}
	d := release(fmt.Sprintf("%s %d", ReasonSkipped, skips), retryDelay(p.retry, skips, chance), goOn)
	d.noted = true
	return d
}

// skipsOf returns how often a message was skipped in a row: the reason that its last delivery left says so.
func skipsOf(previous string) int {
	text, is := strings.CutPrefix(previous, ReasonSkipped+" ")
	if !is {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// answerOf returns the answer about the i-th message of a call that ended well.
func answerOf(o runtime.Outcome, i int) messaging.Answer {
	switch {
	case len(o.Answers) == 0:
		return messaging.Answer{Case: messaging.AnswerAck}
	case i >= len(o.Answers):
		return messaging.Answer{Case: messaging.AnswerSkip}
	}
	return o.Answers[i]
}
