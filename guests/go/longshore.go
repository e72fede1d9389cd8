// Package longshore is for writing message consumers in Go that run on a Longshore host. A consumer is a WebAssembly
// module; stock Go builds it:
//
//	package main
//
//	import (
//		"bytes"
//
//		longshore "github.com/longshore/longshore/guests/go"
//	)
//
//	func init() { longshore.Handle(shout) }
//
//	func shout(m *longshore.Message) error {
//		return longshore.Send("shouts", &longshore.Message{Data: bytes.ToUpper(m.Data)})
//	}
//
//	func main() {}
//
// and
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -trimpath -buildvcs=false -ldflags='-s -w -buildid=' -o shout.wasm .
//
// # What a handler may rely on
//
// The host calls the handler once for each delivery, one at a time, each in an instance of the module that is as it was
// after initialisation: what a handler leaves in variables is gone at the next message, unless the manifest says
// "instance: reuse". What init functions and WarmUp prepared is there.
//
// What init functions drew at random is the same in every message: the seed of a generator, or of a hash/maphash, the order
// of a map's keys. What a handler draws is not, because each message gives Go's generators a new seed; see FreshRandomness.
//
// Publishing from inside a handler appends to the delivery's outbox. The host commits the outbox together with the
// acknowledgement if the handler returns nil, and drops it if the handler returns an error, panics, or is stopped by one of
// its limits. So a handler that fails has published nothing, and one that succeeds has published exactly once.
//
// A panic isn't recovered: Go prints it with its stack trace to standard error, which goes to the tenant's log, and aborts.
// The host gives the attempt the reason "guest-trap: unreachable" and retries the message like after an error. So it does
// after os.Exit and log.Fatal, with the reason "exit" and the code.
//
// Send and PublishBatch are to be called by the handler itself, not by goroutines that it starts: the host is calling into
// the module while they run. Goroutines that still run when the handler returns stop there.
//
// # How it is built
//
// The module imports and exports the names of wasi:messaging@0.2.0-draft and longshore:messaging@0.1.0, lowered by the
// canonical ABI. Outside WebAssembly the package compiles, for editors and for tests of code around a handler, but Send and
// PublishBatch return an error, because no message is being handled.
//
//	longshore.go  Handle and Message
//	publish.go    Send, Publish, PublishBatch and PublishAtomic
//	options.go    how a message is published
//	requests.go   Request and Reply
//	delivery.go   what is known of a delivery
//	decision.go   explicit outcomes, for the packages outcome and batch
//	log.go        the tenant's log
//	values.go     OpenBucket and Bucket
//	errors.go     what can go wrong, and how a handler says so
//	layout.go     where the fields of the ABI's types lie, drawn
//	lower.go      Go values to bytes for the host
//	lift.go       bytes from the host to Go values
//	memory.go     the memory that the host asks for
//	warmup.go     WarmUp
//	random*.go    a new seed for each message
//	abi_*.go      imports and exports
package longshore

import "github.com/longshore/longshore/guests/go/internal/hook"

// Message is a message that was delivered or is to be published.
type Message struct {
	// Topic is where a delivered message came from. Publishing ignores it: a message goes where Send or Outgoing say.
	Topic string
	// ContentType is a media type, or empty.
	ContentType string
	// Data is the payload. The handler owns a delivered message's; publishing only reads it.
	Data []byte
	// Metadata belongs to the applications: the host neither reads nor writes it, except for W3C trace context.
	Metadata []Pair

	handle uint32 // the host's, of a delivered message; else 0
}

// Pair is one entry of a message's metadata.
type Pair struct{ Key, Value string }

// Handle sets the function that is called with each message. Call it once, from an init function: main isn't run. It
// panics if h is nil or if there is a handler already.
//
// If h returns nil, the message is done and what was published meanwhile is committed with that. If it returns an error,
// the message is delivered again after a while or, after the last attempt, dead-lettered. An *Error (or an error that wraps
// one) tells its case to the host; a *PublishError is told as the case nearest to its own; any other error is CaseOther. The
// text of an error goes to the tenant's log only.
func Handle(h func(m *Message) error) {
	guest.mayHandle(h == nil)
	guest.handler = h
}

func init() {
	hook.Longshore = hook.Guest{
		SetOutcome: func(h any) {
			decider, _ := h.(func(*Message) Outcome)
			guest.mayHandle(decider == nil)
			guest.decider = decider
		},
		SetBatch: func(h any) {
			batcher, _ := h.(func([]*Message) ([]Outcome, error))
			guest.mayHandle(batcher == nil)
			guest.batcher = batcher
		},
		Decide: guest.decide, HandleBatch: guest.handleBatch, PostReturn: guest.postReturn,
	}
}

// mayHandle panics if a handler can't be set.
func (g *instance) mayHandle(isNil bool) {
	switch {
	case isNil:
		panic("longshore: Handle: the handler is nil")
	case g.handler != nil || g.decider != nil || g.batcher != nil:
		panic("longshore: Handle was called twice: a module has one handler")
	}
}

// guest is the state of this instance of the module. WebAssembly runs it on one thread, and calls into the module never
// overlap, except that the host calls cabi_realloc, which touches heap only, during an import.
var guest instance

// instance is what the module remembers between calls from the host.
type instance struct {
	handler func(m *Message) error // one of the three
	decider func(m *Message) Outcome
	batcher func(messages []*Message) ([]Outcome, error)
	warmUp  func()

	heap   heap     // memory that the host was given and that isn't adopted yet
	result []*arena // the handler's result, until the host has read it

	handling bool // a handler is running
	client   uint32
	isOpen   bool // client is a handle
}

// handle runs the handler on the message with this handle and returns the address of its result. The handle, the client
// and everything else that the host gave for this delivery end here.
func (g *instance) handle(message uint32) uint32 {
	if g.handler == nil {
		panic("longshore: no handler: call longshore.Handle from an init function")
	}
	m := g.begin(message)
	err := g.handler(m)
	g.end(message)
	return g.keep(lowerResult(err))
}

// decide is handle for a handler that decides what becomes of the message.
func (g *instance) decide(message uint32) uint32 {
	m := g.begin(message)
	o := g.decider(m)
	g.end(message)
	return g.keep(lowerOutcome(o))
}

// handleBatch is handle for a handler that takes the messages of a list of handles.
func (g *instance) handleBatch(list, count uint32) uint32 {
	handles := view(g.heap.adopt(list, count*layoutU32.size))
	messages := make([]*Message, count)
	for i := range messages {
		messages[i] = g.begin(handles.u32(uint32(i) * layoutU32.size)) //nolint:gosec // 32-bit memory
	}
	outcomes, err := g.batcher(messages)
	for i := range messages {
		g.end(handles.u32(uint32(i) * layoutU32.size)) //nolint:gosec // 32-bit memory
	}
	return g.keep(lowerOutcomes(outcomes, err)) // the list lies in the second
}

// begin reads a message that is to be handled.
func (g *instance) begin(message uint32) *Message {
	if !g.handling {
		freshenRandomness()
	}
	g.handling = true
	return g.liftMessage(message)
}

// end drops a message that was handled, and the client.
func (g *instance) end(message uint32) {
	g.handling = false
	abiMessageDrop(message)
	if g.isOpen {
		abiClientDrop(g.client)
		g.isOpen = false
	}
}

// keep keeps what the host is about to read, and returns the address of the first arena.
func (g *instance) keep(result ...*arena) uint32 {
	g.result = result
	return result[0].base
}

// postReturn frees what the last call left: the host has read its result.
func (g *instance) postReturn() {
	g.result = nil
	g.heap.free()
}
