package order

import (
	"slices"
	"strings"
	"testing"
)

const good = `{"id":"o-1","customer":"ada","lines":[{"sku":"rope","quantity":2,"cents":1250},{"sku":"buoy","quantity":1,"cents":9900}]}`

func TestOrder(t *testing.T) {
	t.Run("LinesAndEntriesCarryIdsThatFollowFromTheOrders", func(t *testing.T) {
		o, err := Parse[Order]([]byte(good))
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Check(); err != nil {
			t.Fatal(err)
		}
		var entries []Entry
		for _, l := range o.Split() {
			entries = append(entries, l.Book())
		}
		want := []Entry{{"o-1/1", "o-1", "ada", 2500}, {"o-1/2", "o-1", "ada", 9900}}
		if !slices.Equal(entries, want) {
			t.Errorf("got %+v, want %+v", entries, want)
		}
	})
	t.Run("CheckReportsEveryFault", func(t *testing.T) {
		o := Order{Lines: []Item{{SKU: "rope", Quantity: 1}, {SKU: "", Quantity: 1}, {SKU: "buoy", Quantity: 0}, {SKU: "anchor", Quantity: 1, Cents: -1}}}
		err := o.Check()
		if err == nil {
			t.Fatal("no fault was found")
		}
		for _, want := range []string{"id: missing", "customer: missing", "line 2: sku", "line 3: quantity", "line 4: cents"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q isn't reported in %q", want, err)
			}
		}
		if strings.Contains(err.Error(), "line 1:") {
			t.Errorf("a good line is reported in %q", err)
		}
	})
	t.Run("ParseTakesNothingElse", func(t *testing.T) {
		for _, text := range []string{``, `{`, `[]`, good + `x`, good + good, `{"id":"o-1","total":3}`, `{"lines":[{"quantity":1.5}]}`} {
			if o, err := Parse[Order]([]byte(text)); err == nil {
				t.Errorf("%q was read as %+v", text, o)
			}
		}
	})
}
