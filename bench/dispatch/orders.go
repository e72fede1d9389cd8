package main

import "fmt"

// Topics and what they hold.
const (
	tenant      = "bench"
	ordersTopic = "orders"
	pricedTopic = "priced"
	contentType = "application/json"
)

// order returns the order of that number: half a kilobyte of JSON.
func order(id int) []byte {
	const line = `{"sku":"A-7781-%d","name":"Bolt \"M8\" zinc","count":%d,"cents":17,"tags":["small","steel",null,true]}`
	b := fmt.Appendf(nil, `{"id":%d,"customer":{"name":"Ann Lee","city":"Ulm","since":2019},"lines":[`, id)
	for i := range orderLines {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, line, i, 250+i)
	}
	return append(b, `]}`...)
}

const orderLines = 4

// answer returns what a guest must publish for that order.
func answer(id int) string {
	sum := 0
	for i := range orderLines {
		sum += (250 + i) * 17
	}
	return fmt.Sprintf(`{"id":%d,"cents":%d}`, id, sum)
}
