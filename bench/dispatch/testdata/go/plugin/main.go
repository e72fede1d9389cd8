// Command plugin is the same work as a plugin of Extism: the order is its input, the answer its output.
package main

import (
	"dispatchguests/order"

	"github.com/extism/go-pdk"
)

//go:wasmexport price
func price() int32 {
	data, err := order.Price(pdk.Input())
	if err != nil {
		pdk.SetError(err)
		return 1
	}
	pdk.Output(data)
	return 0
}

func main() {}
