package app

import (
	"github.com/longshore/longshore/cmd/host/internal/telemetry"
	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/substrate"
)

// expired returns what the log is to call with messages that expired: they are listed, and wait for the dispatcher to publish
// events of them, if somebody wants any. It doesn't wait itself. What there is no room for is counted as not told of.
func (p *parts) expired(e *telemetry.Expiries) func([]substrate.DeadLetter) {
	return func(letters []substrate.DeadLetter) {
		e.Report(letters)
		select {
		case p.deaths <- letters:
			return
		default:
		}
		for i := range letters {
			p.metrics.OnEvent(dispatcher.EventOutcome{Tenant: letters[i].Tenant, Kind: dispatcher.EventDeath, Failure: dispatcher.EventBusy})
		}
	}
}
