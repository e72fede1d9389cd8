// Command batch is the conformance guest with batches of deliveries: each payload says what its outcome is.
package main

import (
	longshore "github.com/longshore/longshore/guests/go"
	"github.com/longshore/longshore/guests/go/batch"
)

func init() { batch.Handle(decide) }

func decide(messages []*longshore.Message) ([]longshore.Outcome, error) {
	var outcomes []longshore.Outcome
	for _, m := range messages {
		o := longshore.Skip()
		switch string(m.Data) {
		case "error":
			return nil, &longshore.Error{Case: longshore.CaseConnection, Text: "all again"}
		case "retry":
			o = longshore.RetryAfterMillis(1500)
		case "reject":
			o = longshore.Reject("no")
		case "ack":
			o = longshore.Ack()
			if _, err := longshore.Publish("out", m, &longshore.Options{Cause: m.Delivery().ID}); err != nil {
				return nil, err
			}
		}
		outcomes = append(outcomes, o)
	}
	return outcomes, nil
}

func main() {}
