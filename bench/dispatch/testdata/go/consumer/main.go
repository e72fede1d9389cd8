// Command consumer is the consumer in Go: it answers one order a call.
package main

import (
	"dispatchguests/order"

	longshore "github.com/longshore/longshore/guests/go"
)

func init() {
	longshore.Handle(price)
	longshore.WarmUp(func() {
		for range 100 {
			_, _ = order.Price([]byte(order.Example))
		}
	})
}

func price(m *longshore.Message) error {
	data, err := order.Price(m.Data)
	if err != nil {
		return err
	}
	return longshore.Send(order.Topic, &longshore.Message{ContentType: order.ContentType, Data: data})
}

func main() {}
