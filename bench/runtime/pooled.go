package main

// The pool isn't in wasmtime-go, but in the library that it links.

/*
#include <stddef.h>
#include <stdint.h>

void *wasmtime_pooling_allocation_config_new(void);
void wasmtime_pooling_allocation_config_delete(void *);
void wasmtime_pooling_allocation_config_table_keep_resident_set(void *, size_t);
void wasmtime_pooling_allocation_config_total_memories_set(void *, uint32_t);
void wasmtime_pooling_allocation_strategy_set(void *config, const void *pool);
*/
import "C"

import (
	"context"
	"unsafe"

	"github.com/bytecodealliance/wasmtime-go/v39"
)

// pooledMemories is how many instances the pool has room for. keepBytes is what stays with an instance's place in it: the
// pages that the last instance wrote to are copied back, instead of being given to the system and faulted in again.
const (
	pooledMemories = 16
	keepBytes      = 16 << 20
)

// newPooled compiles the Go guest, as it is after its initialisation, for a wasmtime that takes instances from a pool.
func newPooled(ctx context.Context, wasm []byte) (*peerWasmtime, error) {
	ready, err := preinitialise(ctx, wasm)
	if err != nil {
		return nil, err
	}
	config := wasmtime.NewConfig()
	pool := C.wasmtime_pooling_allocation_config_new()
	defer C.wasmtime_pooling_allocation_config_delete(pool)
	C.wasmtime_pooling_allocation_config_total_memories_set(pool, pooledMemories)
	C.wasmtime_pooling_allocation_config_table_keep_resident_set(pool, keepBytes)
	// A Config is a pointer to what the library calls by that name.
	C.wasmtime_pooling_allocation_strategy_set(*(*unsafe.Pointer)(unsafe.Pointer(config)), pool)
	p := emptyWasmtime(config)
	p.ready = true
	return p, p.load(map[string][]byte{guestGo: ready})
}
