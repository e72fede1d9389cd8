// Package misbehaving makes small WebAssembly consumers, each of which does one thing that a consumer mustn't: it spins,
// hoards memory, floods the log, breaks the ABI. The host must stop each one, say so with the right reason, and go on.
//
// The modules are written with a tiny assembler, so that each is a few readable lines and no toolchain is needed:
//
//	misbehaving.go  what there is: Module and All
//	modules.go      the modules, one short function each
//	consumer.go     what they share: memory, allocator, exports, publishing
//	instructions.go instructions
//	asm.go          sections
//
// All of them export wasi:messaging/incoming-handler@0.2.0-draft and could be deployed like any other consumer.
package misbehaving

import "github.com/longshore/longshore/limits"

// Topic is where the modules that publish send their messages: a consumer that runs them must be granted it.
const Topic = "misbehaving/out"

// Module is one consumer that misbehaves.
type Module struct {
	Name   string       // short, as a consumer's name in a manifest
	Does   string       // one sentence, with the module as its subject: "loops forever"
	Limit  limits.Name  // the bound that stops it; "" if something else does
	Limits limits.Guest // what to run it under: the defaults, but for what the module needs to reach its bound soon
	Reason string       // what the host says of each failed attempt
	Wasm   []byte       // the module in binary format; belongs to the caller
}

// All returns every module, made anew, in a fixed order: first those that a bound stops, in the order of limits.Guest, then
// those that fail otherwise.
func All() []Module {
	return []Module{
		spin(),
		stall(),
		sleep(),
		hoard(),
		hoardTable(),
		recurse(),
		publishMany(),
		publishMuch(),
		callHost(),
		chatter(),
		answerMuch(),
		hoardHandles(),
		fail("fail-timeout", errorTimeout, "timeout"),
		fail("fail-connection", errorConnection, "connection"),
		fail("fail-permission", errorPermissionDenied, "permission-denied"),
		fail("fail-other", errorOther, "other"),
		trap(),
		divide(),
		stray(),
		publishThenTrap(),
		exit(),
		badPointer(),
		badHandle(),
	}
}
