package main

import "encoding/binary"

// workload is a computation that a guest does for a message, as long as its amount says.
type workload struct {
	name   string
	guest  string // the module that holds it
	number uint32 // by which the module knows it
	amount uint32 // takes about 10 ms
	little uint32 // an amount that an interpreter manages in a moment
}

// The modules.
const (
	guestC       = "compute" // testdata/c/compute.c
	guestEndless = "endless" // testdata/c/endless.c
	guestGo      = "go"      // testdata/goguest
)

// The numbers of workloads that are not for measuring fuel.
const (
	cTouch  = 5 // dirty so many pages
	cCalls  = 6 // call the host so many times
	goTouch = 3
)

// workloads lists what fuel is measured on.
func workloads() []workload {
	return []workload{
		{"c_sha256", guestC, 0, 1, 1},
		{"c_sieve", guestC, 1, 1_500_000, 200_000},
		{"c_json", guestC, 2, 4, 1},
		{"c_fib", guestC, 3, 32, 18},
		{"c_matmul", guestC, 4, 4, 1},
		{"go_json", guestGo, 0, 5, 1},
		{"go_sha256", guestGo, 1, 8, 1},
		{"go_sort", guestGo, 2, 50_000, 2_000},
	}
}

// endless are the guests that never end, by name, with their numbers.
func endless() []workload {
	return []workload{
		{"spinning", guestEndless, 0, 0, 0},
		{"recursing", guestEndless, 1, 0, 0},
		{"chasing", guestEndless, 2, 0, 0},
		{"filling", guestEndless, 3, 0, 0},
		{"copying", guestEndless, 4, 0, 0},
	}
}

// message is what a guest is told to do, and what must come out.
func message(number, amount, want uint32) []byte {
	var b []byte
	for _, n := range []uint32{number, amount, want} {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	return b
}
