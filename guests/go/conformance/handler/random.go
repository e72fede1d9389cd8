package main

import (
	crand "crypto/rand"
	"fmt"
	"hash/maphash"
	oldrand "math/rand"
	"math/rand/v2"
	"strings"

	longshore "github.com/longshore/longshore/guests/go"
)

// early was made by initialisation, so that it is the same in every message.
var early = rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))

// random draws once in each way, and reports what it drew.
func random() string {
	var b strings.Builder
	fmt.Fprintln(&b, "known", longshore.FreshRandomness())
	fmt.Fprintln(&b, "math/rand/v2", rand.Uint64())
	fmt.Fprintln(&b, "math/rand", oldrand.Uint64())
	fmt.Fprintln(&b, "maphash", maphash.String(maphash.MakeSeed(), "x"))
	fmt.Fprintln(&b, "map", order())
	fmt.Fprintln(&b, "select", choices())
	fmt.Fprintln(&b, "crypto/rand", crand.Text())
	fmt.Fprintln(&b, "initialisation", early.Uint64())
	return b.String()
}

func order() (keys []int) {
	m := map[int]bool{}
	for i := range 64 {
		m[i] = true
	}
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}

// choices returns which of two ready channels select took, 60 times.
func choices() (bits uint64) {
	a, b := make(chan int, 60), make(chan int, 60)
	for range cap(a) {
		a <- 0
		b <- 1
	}
	for range cap(a) {
		select {
		case bit := <-a:
			bits = bits<<1 | uint64(bit)
		case bit := <-b:
			bits = bits<<1 | uint64(bit)
		}
	}
	return bits
}
