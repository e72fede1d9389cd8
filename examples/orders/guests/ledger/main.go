// Command ledger is a consumer that books each line of an order and publishes the entry.
package main

import (
	"encoding/json"

	"github.com/longshore/longshore/examples/orders/guests/order"
	longshore "github.com/longshore/longshore/guests/go"
)

func init() { longshore.Handle(book) }

func book(m *longshore.Message) error {
	line, err := order.Parse[order.Line](m.Data)
	if err != nil {
		return err
	}
	data, err := json.Marshal(line.Book())
	if err != nil {
		return err
	}
	return longshore.Send(order.EntriesTopic, &longshore.Message{ContentType: order.ContentType, Data: data})
}

func main() {}
