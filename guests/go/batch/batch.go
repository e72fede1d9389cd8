// Package batch is for consumers that take many messages in one call, for work that costs less together.
//
//	func init() { batch.Handle(store) }
//
//	func store(messages []*longshore.Message) ([]longshore.Outcome, error) {
//		outcomes := make([]longshore.Outcome, len(messages))
//		...
//		return outcomes, nil
//	}
//
// What is published is committed with the acknowledgements of all, unless Options.Cause names one. A module that imports this
// package has a handler of this kind.
package batch

import (
	longshore "github.com/longshore/longshore/guests/go"
	"github.com/longshore/longshore/guests/go/internal/hook"
)

// Handle sets the function that is called with batches of messages. Call it once, from an init function: main isn't run. It
// panics if h is nil or if there is a handler already.
//
// Outcomes go by index. Messages without one are skipped; the zero Outcome is an acknowledgement. An error retries, and
// charges, all of them.
func Handle(h func(messages []*longshore.Message) ([]longshore.Outcome, error)) {
	hook.Longshore.SetBatch(h)
}
