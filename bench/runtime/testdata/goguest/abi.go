package main

import (
	"encoding/binary"
	"structs"
	"unsafe"
)

//go:wasmimport wasi:messaging/types@0.2.0-draft [method]message.data
func messageData(message uint32, ret *area)

// area is a return area.
type area struct {
	_               structs.HostLayout
	a, b, c, unused uint32
}

// held keeps what the host was given alive until the next message.
var held []uint64

//go:wasmexport cabi_realloc
func realloc(_, _, align, size uint32) uint32 {
	if size == 0 {
		return align
	}
	held = make([]uint64, (size+7)/8)
	return uint32(uintptr(unsafe.Pointer(&held[0])))
}

var answer area // ok

// handle does what a message says: what, how much of it, and what must come out; then perhaps a document.
//
//go:wasmexport wasi:messaging/incoming-handler@0.2.0-draft#handle
func handle(message uint32) *area {
	var list area
	messageData(message, &list)
	data := unsafe.Slice((*byte)(unsafe.Pointer(uintptr(list.a))), list.b)
	workload, amount, want := binary.LittleEndian.Uint32(data), binary.LittleEndian.Uint32(data[4:]), binary.LittleEndian.Uint32(data[8:])
	if len(data) > 12 {
		consume(data[12:])
		return &answer
	}
	if got := run(workload, amount); got != want {
		panic("wrong result")
	}
	return &answer
}
