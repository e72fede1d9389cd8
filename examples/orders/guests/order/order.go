// Package order is what the two consumers of this example tell each other: JSON texts, one per message.
//
//	topic orders          Order  from the shop
//	topic orders/lines    Line   from intake, one for each line of an order
//	topic ledger/entries  Entry  from ledger, one for each line
//
// Every text carries an id that follows from the order's, so that whoever reads the last topic can tell whether anything
// was lost or came twice.
package order

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// Topics that the consumers publish to.
const (
	LinesTopic   = "orders/lines"
	EntriesTopic = "ledger/entries"
)

// ContentType is that of every message.
const ContentType = "application/json"

// Bounds of what an order may ask for. They keep an entry's amount far from overflowing.
const (
	MaxLines    = 100
	MaxQuantity = 1_000_000
	MaxCents    = 100_000_000 // the price of one piece
)

// Order is what a customer ordered.
type Order struct {
	ID       string `json:"id"`
	Customer string `json:"customer"`
	Lines    []Item `json:"lines"`
}

// Item is one line of an Order.
type Item struct {
	SKU      string `json:"sku"`
	Quantity int64  `json:"quantity"`
	Cents    int64  `json:"cents"` // the price of one piece
}

// Line is an Item on its own way.
type Line struct {
	ID       string `json:"id"` // the order's id, a slash, and the line's number from 1
	Order    string `json:"order"`
	Customer string `json:"customer"`
	Item
}

// Entry is what the ledger booked for a Line.
type Entry struct {
	ID       string `json:"id"` // the line's
	Order    string `json:"order"`
	Customer string `json:"customer"`
	Cents    int64  `json:"cents"` // in all
}

// Parse reads a T from a message's payload, which must hold exactly one, and nothing that T doesn't have.
func Parse[T any](data []byte) (T, error) {
	var v T
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return v, fmt.Errorf("reading %T: %w", v, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return v, fmt.Errorf("reading %T: there is more behind it", v)
	}
	return v, nil
}

// Check returns all that is wrong with an order, or nil.
func (o Order) Check() error {
	var faults []error
	if o.ID == "" {
		faults = append(faults, errors.New("id: missing"))
	}
	if o.Customer == "" {
		faults = append(faults, errors.New("customer: missing"))
	}
	if n := len(o.Lines); n < 1 || n > MaxLines {
		faults = append(faults, fmt.Errorf("lines: %d, want 1 to %d", n, MaxLines))
	}
	for i, item := range o.Lines {
		if err := item.check(); err != nil {
			faults = append(faults, fmt.Errorf("line %d: %w", i+1, err))
		}
	}
	return errors.Join(faults...)
}

func (i Item) check() error {
	switch {
	case i.SKU == "":
		return errors.New("sku: missing")
	case i.Quantity < 1 || i.Quantity > MaxQuantity:
		return fmt.Errorf("quantity: %d, want 1 to %d", i.Quantity, MaxQuantity)
	case i.Cents < 0 || i.Cents > MaxCents:
		return fmt.Errorf("cents: %d, want 0 to %d", i.Cents, MaxCents)
	}
	return nil
}

// Split returns the order's lines, each with its id.
func (o Order) Split() []Line {
	lines := make([]Line, len(o.Lines))
	for i, item := range o.Lines {
		lines[i] = Line{ID: o.ID + "/" + strconv.Itoa(i+1), Order: o.ID, Customer: o.Customer, Item: item}
	}
	return lines
}

// Book returns the ledger's entry for a line.
func (l Line) Book() Entry {
	return Entry{ID: l.ID, Order: l.Order, Customer: l.Customer, Cents: l.Quantity * l.Cents}
}
