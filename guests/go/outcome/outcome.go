// Package outcome is for consumers that decide themselves what becomes of each message: done, again later, a dead letter
// now, or not touched.
//
//	func init() { outcome.Handle(decide) }
//
//	func decide(m *longshore.Message) longshore.Outcome {
//		if !json.Valid(m.Data) {
//			return longshore.Reject("not JSON") // trying again doesn't help
//		}
//		...
//		return longshore.Ack()
//	}
//
// A module that imports this package has a handler of this kind.
package outcome

import (
	longshore "github.com/longshore/longshore/guests/go"
	"github.com/longshore/longshore/guests/go/internal/hook"
)

// Handle sets the function that is called with each message and decides what becomes of it. Call it once, from an init
// function: main isn't run. It panics if h is nil or if there is a handler already. A panic of h is a trap, as after
// longshore.Handle.
func Handle(h func(m *longshore.Message) longshore.Outcome) { hook.Longshore.SetOutcome(h) }
