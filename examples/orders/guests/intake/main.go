// Command intake is a consumer that takes orders: it checks each one and publishes its lines as one batch. An order that
// doesn't pass fails as a whole, and nothing of it goes on.
package main

import (
	"encoding/json"

	"github.com/longshore/longshore/examples/orders/guests/order"
	longshore "github.com/longshore/longshore/guests/go"
)

func init() { longshore.Handle(take) }

func take(m *longshore.Message) error {
	o, err := order.Parse[order.Order](m.Data)
	if err != nil {
		return err
	}
	if err := o.Check(); err != nil {
		return err
	}
	var batch []longshore.Outgoing
	for _, line := range o.Split() {
		data, err := json.Marshal(line)
		if err != nil {
			return err
		}
		batch = append(batch, longshore.Outgoing{
			Topic:   order.LinesTopic,
			Message: &longshore.Message{ContentType: order.ContentType, Data: data},
		})
	}
	_, err = longshore.PublishBatch(batch)
	return err
}

func main() {}
