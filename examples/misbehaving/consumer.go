package misbehaving

import "encoding/binary"

// Names of the guest ABI that the modules import and export.
const (
	abiTypes    = "wasi:messaging/types@0.2.0-draft"
	abiProducer = "wasi:messaging/producer@0.2.0-draft"
	abiHandle   = "wasi:messaging/incoming-handler@0.2.0-draft#handle"
	abiWASI     = "wasi_snapshot_preview1"
)

// Cases of wasi:messaging's error.
const (
	errorTimeout          = 0
	errorConnection       = 1
	errorPermissionDenied = 2
	errorOther            = 3
)

// How a consumer's memory is laid out. A result<_, error> takes 16 bytes:
//
//	0        4       8        12
//	| is err | case  | text's | text's |
//	|        |       | addr   | length |
const (
	addrOK     = 16   // a result that is ok: 16 zero bytes
	addrErr    = 32   // a result that is an error
	addrReturn = 64   // where imports return their results
	addrIOVec  = 96   // the argument of fd_write
	addrText   = 1024 // constant strings
	addrHeap   = 8192 // what cabi_realloc gives out, and all that follows
)

// globalHeap is the index of the global with the next free address of the heap.
const globalHeap = 0

// paramMessage is the local that holds the handler's only parameter, a message's handle; the handler's own locals follow.
const (
	paramMessage = 0
	localFirst   = 1
)

// consumer is a module under construction that handles messages.
type consumer struct {
	module

	text int32 // the next free address for a constant string
}

// newConsumer returns a consumer with so many pages of memory, not counting those that it grows.
func newConsumer(pages uint32) *consumer {
	c := &consumer{text: addrText}
	c.pages = pages
	c.globals = []int32{addrHeap}
	c.exports = []exported{{"memory", kindMemory, 0}}
	return c
}

// str places a constant string in memory and returns its address and length, as code that pushes both.
func (c *consumer) str(s string) code {
	addr := c.text
	c.data(addr, []byte(s))
	c.text += int32(len(s)) // a few short constants
	return seq(i32Const(addr), i32Const(int32(len(s))))
}

// errorResult places an error result at addrErr. Its text is the size bytes at text, whatever they hold.
func (c *consumer) errorResult(errorCase uint32, text, size uint32) {
	var b []byte
	for _, word := range []uint32{1, errorCase, text, size} {
		b = binary.LittleEndian.AppendUint32(b, word)
	}
	c.data(addrErr, b)
}

// handler ends the module with a handler of this body, which leaves the address of its result. Imports must have been
// added before; functions may have been.
func (c *consumer) handler(locals int, body ...code) []byte {
	c.exportFunc(abiHandle, c.define(signature{params: 1, results: 1}, locals, body...))
	c.exportFunc("cabi_post_"+abiHandle, c.define(signature{params: 1}, 0))
	c.exportFunc("cabi_realloc", c.realloc())
	return c.assemble()
}

// realloc defines an allocator that never frees: it returns the heap's next free address and moves that up by the size,
// rounded up to 8. Its parameters are (old address, old size, alignment, new size).
func (c *consumer) realloc() fn {
	const paramNewSize = 3
	return c.define(signature{params: 4, results: 1}, 0,
		globalGet(globalHeap),
		globalGet(globalHeap), localGet(paramNewSize), i32Add, i32Const(7), i32Add, i32Const(-8), i32And,
		globalSet(globalHeap),
	)
}

// publisher is what a module needs to publish: imports, and constant strings.
type publisher struct {
	connect, newMessage, send fn
	client, topic             code
}

// publisher adds imports, so it comes before any function.
func (c *consumer) publisher() publisher {
	return publisher{
		connect:    c.importFunc(abiTypes, "[static]client.connect", signature{params: 3}),
		newMessage: c.importFunc(abiTypes, "[constructor]message", signature{params: 2, results: 1}),
		send:       c.importFunc(abiProducer, "send", signature{params: 5}),
		client:     c.str("default"),
		topic:      c.str(Topic),
	}
}

// open connects a client and keeps its handle in a local.
func (p publisher) open(local int) code {
	return seq(
		p.client, i32Const(addrReturn), call(p.connect),
		i32Const(addrReturn+4), i32Load, localSet(local),
	)
}

// publish sends a message with a payload of so many bytes, through the client in local. The result is at addrReturn.
func (p publisher) publish(local int, payloadBytes int32) code {
	return seq(
		localGet(local), p.topic,
		i32Const(addrHeap), i32Const(payloadBytes), call(p.newMessage),
		i32Const(addrReturn), call(p.send),
	)
}
