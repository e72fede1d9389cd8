package app

import (
	"slices"

	"github.com/longshore/longshore/cmd/host/internal/telemetry"
	"github.com/longshore/longshore/dispatcher"
	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/substrate"
)

// expired returns what the log is to call with messages that expired: they are listed, and wait for the dispatcher to publish
// events of them. It doesn't wait itself. What there is no room for is counted, and not told of.
func (p *parts) expired(e *telemetry.Expiries) func([]substrate.DeadLetter) {
	wanted := slices.ContainsFunc(p.Plan.Consumers, func(c config.Consumer) bool { return c.Events.Death != "" })
	return func(letters []substrate.DeadLetter) {
		e.Report(letters)
		select {
		case p.deaths <- letters:
			return
		default:
		}
		for i := range letters {
			if wanted {
				p.metrics.OnEvent(dispatcher.EventOutcome{Tenant: letters[i].Tenant, Kind: dispatcher.EventDeath, Failure: dispatcher.EventBusy})
			}
		}
	}
}
