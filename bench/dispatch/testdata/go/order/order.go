// Package order is the work that all guests in Go do: they read an order and say what it comes to.
package order

import "encoding/json"

// Topic is where the answers go, and ContentType is what they and the orders are.
const (
	Topic       = "priced"
	ContentType = "application/json"
)

type order struct {
	ID    int    `json:"id"`
	Lines []line `json:"lines"`
}

type line struct {
	SKU   string `json:"sku"`
	Count int    `json:"count"`
	Cents int    `json:"cents"`
}

type priced struct {
	ID    int `json:"id"`
	Cents int `json:"cents"`
}

// Price returns the answer to an order.
func Price(data []byte) ([]byte, error) {
	var o order
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, err
	}
	p := priced{ID: o.ID}
	for _, l := range o.Lines {
		p.Cents += l.Count * l.Cents
	}
	return json.Marshal(p)
}

// Example is an order, for what prepares before the first message.
const Example = `{"id":1,"customer":{"name":"A","city":"B"},"lines":[{"sku":"C","name":"D","count":1,"cents":1}]}`
