package main

import (
	"structs"
	"unsafe"
)

//go:wasmimport wasi:messaging/types@0.2.0-draft [static]client.connect
func clientConnect(name string, ret *area)

//go:wasmimport wasi:messaging/types@0.2.0-draft [constructor]message
func messageNew(data *byte, n uint32) uint32

//go:wasmimport wasi:messaging/types@0.2.0-draft [method]message.data
func messageData(message uint32, ret *area)

//go:wasmimport wasi:messaging/producer@0.2.0-draft send
func producerSend(client uint32, topic string, message uint32, ret *area)

//go:wasmimport wasi_snapshot_preview1 random_get
func randomGet(buf unsafe.Pointer, n uint32) uint32

func random() (n uint64) {
	if errno := randomGet(unsafe.Pointer(&n), 8); errno != 0 {
		panic("random_get failed")
	}
	return n
}

// area is a return area.
type area struct {
	_                   structs.HostLayout
	tag, kind, ptr, len uint32
}

// pinned keeps what the host was given alive.
var pinned [][]uint64

//go:wasmexport cabi_realloc
func realloc(_, _, align, size uint32) uint32 {
	if size == 0 {
		return align
	}
	b := make([]uint64, (size+7)/8)
	pinned = append(pinned, b)
	return uint32(uintptr(unsafe.Pointer(&b[0])))
}

func readData(message uint32) string {
	var ret area
	messageData(message, &ret)
	if ret.kind == 0 {
		return ""
	}
	return string(unsafe.Slice((*byte)(unsafe.Pointer(uintptr(ret.tag))), ret.kind))
}

func publish(topic string, data []byte) {
	var ret area
	clientConnect("default", &ret)
	producerSend(ret.kind, topic, messageNew(unsafe.SliceData(data), uint32(len(data))), &ret)
	if ret.tag&0xff != 0 {
		panic("send failed")
	}
}

var (
	answer     area
	answerText []byte
)

//go:wasmexport wasi:messaging/incoming-handler@0.2.0-draft#handle
func handle(message uint32) *area {
	answer = area{}
	if text := run(readData(message)); text != "" {
		answerText = []byte(text)
		answer = area{tag: 1, kind: 3, ptr: uint32(uintptr(unsafe.Pointer(&answerText[0]))), len: uint32(len(text))}
	}
	return &answer
}

//go:wasmexport cabi_post_wasi:messaging/incoming-handler@0.2.0-draft#handle
func postReturn(*area) { pinned = nil }
