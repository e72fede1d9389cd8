// Command batch is the consumer in Go that takes many orders in a call, and publishes the answers together.
package main

import (
	"dispatchguests/order"

	longshore "github.com/longshore/longshore/guests/go"
	"github.com/longshore/longshore/guests/go/batch"
)

func init() {
	batch.Handle(price)
	longshore.WarmUp(func() {
		for range 100 {
			_, _ = order.Price([]byte(order.Example))
		}
	})
}

func price(messages []*longshore.Message) ([]longshore.Outcome, error) {
	answers := make([]longshore.Outgoing, len(messages))
	for i, m := range messages {
		data, err := order.Price(m.Data)
		if err != nil {
			return nil, err
		}
		answers[i] = longshore.Outgoing{Topic: order.Topic, Message: &longshore.Message{ContentType: order.ContentType, Data: data}}
	}
	_, err := longshore.PublishBatch(answers)
	return make([]longshore.Outcome, len(messages)), err
}

func main() {}
