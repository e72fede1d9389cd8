// Command goguest is the stock Go consumer of the benchmark. The numbers of its workloads are those of workloads.go.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
)

const (
	goJSON = iota
	goSHA256
	goSort
	goTouch
)

// order is one record of the document that is parsed.
type order struct {
	ID       int            `json:"id"`
	Customer string         `json:"customer"`
	Lines    []float64      `json:"lines"`
	Extra    map[string]any `json:"extra"`
}

var (
	document = writeDocument()
	scratch  = make([]byte, 4<<20)
)

func writeDocument() []byte {
	var b bytes.Buffer
	b.WriteByte('[')
	for i := range 100 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":%d,"customer":"Ann \"%d\" Lee","lines":[1,2.5,%d],"extra":{"city":"Ulm","floor":%d}}`, i, i, i*3, i%9)
	}
	b.WriteByte(']')
	return b.Bytes()
}

//go:wasmexport run
func run(workload, amount uint32) uint32 {
	switch workload {
	case goJSON:
		return parse(amount)
	case goSHA256:
		return digest(amount)
	case goSort:
		return sorted(amount)
	case goTouch:
		return touch(amount)
	}
	panic("no such workload")
}

func parse(rounds uint32) (records uint32) {
	for range rounds {
		var orders []order
		if err := json.Unmarshal(document, &orders); err != nil {
			panic(err)
		}
		records += uint32(len(orders))
	}
	return records
}

func digest(rounds uint32) (x uint32) {
	for range rounds {
		sum := sha256.Sum256(scratch[:64<<10])
		x = x<<1 ^ uint32(sum[0])
	}
	return x
}

func sorted(n uint32) uint32 {
	a, state := make([]int, n), uint32(12345)
	for i := range a {
		state = state*1664525 + 1013904223
		a[i] = int(state >> 8)
	}
	sort.Ints(a)
	return uint32(a[n/2])
}

// touch dirties pages, as a handler with some state does.
func touch(pages uint32) uint32 {
	for i := range pages {
		scratch[i*4096+i]++
	}
	return uint32(scratch[0])
}

// consume is what a consumer of JSON does with a message.
func consume(data []byte) {
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		panic(err)
	}
	m["seen"] = true
	out, err := json.Marshal(m)
	if err != nil || len(out) < len(data)/2 {
		panic("marshal failed")
	}
}

// warmUp does what messages do, so that what grows with the first of them is there before.
//
//go:wasmexport longshore:guest/warm-up@0.1.0
func warmUp() {
	line := `{"sku":"B-1","name":"Nut","count":7.5,"tags":["a",null,true]}`
	sample := `{"id":1,"customer":{"name":"Bo"},"lines":[` + strings.Repeat(line+",", 30) + line + `]}`
	for range 30 {
		consume([]byte(sample))
	}
}

func main() {}
