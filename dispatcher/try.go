package dispatcher

import (
	"context"
	"fmt"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

// Trial is one call of a guest outside of any queue: nothing is claimed, verified or settled, and what the guest publishes
// goes nowhere. What the guest sees, what it may do and how its end is named are those of a delivery.
type Trial struct {
	Guest   Guest
	Message substrate.Message // its id, context and options are not looked at
	Limits  limits.Guest
	Publish []string // grants, as those of a Consumer
	// Immediate says that a consumer would publish at once, as that of a Consumer. The trial doesn't.
	Immediate bool
	Clients   []string // names that the guest may connect to besides "default"
	// Log is given each line that the guest writes: raw guest bytes, valid only while Log runs. May be nil.
	Log func(stream string, line []byte)
}

// TrialResult is what a trial came to.
type TrialResult struct {
	Outcome runtime.Outcome
	// Reason is that of the dead letter which the last attempt of such a delivery makes; "" if it is acknowledged.
	Reason string
	// Published is what would be committed with the acknowledgement, or at once, in order; nil if there is none. It shares the
	// payloads.
	Published []substrate.Message
	Dropped   int // messages that the guest published and that are not, because the message isn't acknowledged
}

// Try makes one call. The error is about t.Message, which no topic would have taken; the guest wasn't run then. Cancelling
// ctx ends the call as runtime.Interrupted. What the guest publishes
// to is an empty topic with the default policy.
func Try(ctx context.Context, t Trial) (TrialResult, error) {
	if err := substrate.ValidMessage(t.Message); err != nil {
		return TrialResult{}, err
	}
	o := &outbox{queue: &emptyTopics{}, grants: t.Publish, parents: []substrate.Message{t.Message}}
	o.principal.Tenant = t.Message.Tenant
	call := messaging.NewCall(messaging.CallOptions{
		Message: forGuest(t.Message), Limits: t.Limits, Clients: t.Clients, Admit: o.admit, Withdraw: o.withdraw, Log: t.Log,
	})
	r := TrialResult{Outcome: t.Guest.Invoke(ctx, call)}
	last := policy{maxAttempts: 1}
	r.Reason = decide(finding{end: atGuest, outcome: r.Outcome, badABI: 1}, 1, last, 0).reason
	if r.Reason != "" && !t.Immediate {
		r.Dropped = len(o.admitted)
		return r, nil
	}
	for _, m := range o.admitted {
		r.Published = append(r.Published, *m)
	}
	return r, nil
}

// emptyTopics are the topics of a trial: nobody has set a policy for them, and nothing waits in them.
type emptyTopics struct{ minted uint64 }

// MintID returns ids of the form of the log's, the same in every trial.
func (e *emptyTopics) MintID() string {
	e.minted++
	return fmt.Sprintf("%013d-%016x", 0, e.minted)
}

// Reserve looks at the size of the payload.
func (e *emptyTopics) Reserve(_, _ string, payloadBytes int) (*substrate.Reservation, error) {
	return nil, limits.Check(limits.NameMessageBytes, int64(payloadBytes), limits.MessageBytes)
}
