//go:build wasip1

// Command goguest is a guest built with the stock Go toolchain, as a library: work of several kinds to compare plain
// and instrumented modules with.
package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

func main() {}

type item struct {
	ID    int               `json:"id"`
	Name  string            `json:"name"`
	Tags  []string          `json:"tags"`
	Attrs map[string]string `json:"attrs"`
	Price float64           `json:"price"`
}

//go:wasmexport json
func encodeAndDecode(rounds int32) int32 {
	sum := 0
	for range rounds {
		var items []item
		for j := range 20 {
			items = append(items, item{
				ID: j, Name: fmt.Sprintf("item %d", j), Tags: []string{"a", strings.Repeat("c", j)},
				Attrs: map[string]string{"k": "v", "x": "y"}, Price: float64(j) * 1.5,
			})
		}
		b, err := json.Marshal(items)
		if err != nil {
			panic(err)
		}
		var back []item
		if err := json.Unmarshal(b, &back); err != nil {
			panic(err)
		}
		sum += len(back) + len(b)
	}
	return int32(sum)
}

//go:wasmexport sha256
func digest(rounds int32) int32 {
	b := make([]byte, 64<<10)
	var sum [sha256.Size]byte
	for range rounds {
		sum = sha256.Sum256(b)
		copy(b, sum[:])
	}
	return int32(sum[0])<<8 | int32(sum[1])
}

//go:wasmexport sort
func sortNumbers(n int32) int32 {
	r := rand.New(rand.NewPCG(1, 2))
	x := make([]uint32, n)
	for i := range x {
		x[i] = r.Uint32()
	}
	slices.Sort(x)
	return int32(x[len(x)/2])
}

//go:wasmexport fib
func fib(n int32) int32 {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}
