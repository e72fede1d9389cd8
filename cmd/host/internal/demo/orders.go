package demo

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/longshore/longshore/cmd/host/internal/wire"
)

// Topics of the chain.
const (
	tenant       = "default"
	ordersTopic  = "orders"
	linesTopic   = "orders/lines"
	entriesTopic = "ledger/entries"
)

const (
	orderContentType = "application/json"
	bigOrders        = 20 // orders that are too big for the first manifest
	bigLines         = 12
	smallOutbox      = 8   // what the first manifest lets intake publish for an order: too little for a big one
	rightOutbox      = 256 // what the corrected one does
)

// order and item are what examples/orders takes; its own types are in another module.
type order struct {
	ID       string `json:"id"`
	Customer string `json:"customer"`
	Lines    []item `json:"lines"`
}

type item struct {
	SKU      string `json:"sku"`
	Quantity int64  `json:"quantity"`
	Cents    int64  `json:"cents"`
}

// input is the orders of one demo, numbered from 0.
type input struct{ orders int }

// order makes the order number n.
func (in input) order(n int) order {
	o := order{ID: orderID(n), Customer: "customer-" + strconv.Itoa(n%97)}
	for i := range in.lines(n) {
		o.Lines = append(o.Lines, item{SKU: "sku-" + strconv.Itoa((n+i)%31), Quantity: int64(i + 1), Cents: int64(100 + n%900)})
	}
	return o
}

func orderID(n int) string { return fmt.Sprintf("order-%06d", n) }

// lines returns how many lines the order n has.
func (in input) lines(n int) int {
	every := in.orders / bigOrders
	switch {
	case n%every == every-1 && n/every < bigOrders:
		return bigLines
	case n%4 == 0:
		return 2
	default:
		return 1
	}
}

// entries returns the ids that the last topic must hold, each once.
func (in input) entries() map[string]bool {
	ids := make(map[string]bool, 2*in.orders)
	for n := range in.orders {
		for line := range in.lines(n) {
			ids[orderID(n)+"/"+strconv.Itoa(line+1)] = true
		}
	}
	return ids
}

// message makes a message of v's JSON.
func message(v any) (wire.NewMessage, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return wire.NewMessage{}, fmt.Errorf("encode: %w", err)
	}
	text := string(raw)
	return wire.NewMessage{ContentType: orderContentType, Data: &text}, nil
}

// batch makes the messages of the orders from (inclusive) to (exclusive).
func (in input) batch(from, to int) ([]wire.NewMessage, error) {
	batch := make([]wire.NewMessage, 0, to-from)
	for n := from; n < to; n++ {
		m, err := message(in.order(n))
		if err != nil {
			return nil, err
		}
		batch = append(batch, m)
	}
	return batch, nil
}
