package misbehaving

import (
	"encoding/binary"
	"strconv"
	"time"

	"github.com/longshore/longshore/limits"
)

// forever is a loop that never ends.
func forever() code { return seq(loop(again()), unreachable) }

// spin loops until its fuel is gone.
func spin() Module {
	return Module{
		Name: "spin", Does: "loops forever", Limit: limits.NameFuel, Reason: "out-of-fuel",
		Limits: limits.DefaultGuest(),
		Wasm:   newConsumer(1).handler(0, forever()),
	}
}

// stall loops with more fuel than it can burn in its time.
func stall() Module {
	bounds := limits.DefaultGuest()
	bounds.Fuel = 1_000_000_000_000
	bounds.CallDuration = 50 * time.Millisecond
	return Module{
		Name: "stall", Does: "loops forever, with fuel for hours", Limit: limits.NameCallDuration, Reason: "timeout",
		Limits: bounds,
		Wasm:   newConsumer(1).handler(0, forever()),
	}
}

// sleep waits for an hour, which costs no fuel.
func sleep() Module {
	const (
		addrSubscription = 128 // 48 bytes
		addrEvent        = 192 // 32 bytes
		clockMonotonic   = 1
	)
	bounds := limits.DefaultGuest()
	bounds.CallDuration = 50 * time.Millisecond
	c := newConsumer(1)
	poll := c.importFunc(abiWASI, "poll_oneoff", signature{params: 4, results: 1})
	subscription := make([]byte, 48) // user data@0, kind@8 (0: a clock), clock@16, timeout@24, precision@32, flags@40
	subscription[16] = clockMonotonic
	binary.LittleEndian.PutUint64(subscription[24:], uint64(time.Hour))
	c.data(addrSubscription, subscription)
	return Module{
		Name: "sleep", Does: "sleeps for an hour", Limit: limits.NameCallDuration, Reason: "timeout",
		Limits: bounds,
		Wasm: c.handler(0,
			i32Const(addrSubscription), i32Const(addrEvent), i32Const(1), i32Const(addrReturn), call(poll), drop,
			i32Const(addrOK),
		),
	}
}

// hoard grows its memory by 16 MiB at a time until it's refused, and can't go on without.
func hoard() Module {
	return Module{
		Name: "hoard", Does: "takes memory until it's refused, then traps", Limit: limits.NameMemory, Reason: "out-of-memory",
		Limits: limits.DefaultGuest(),
		Wasm: newConsumer(1).handler(0,
			loop(i32Const(256), memoryGrow, i32Const(-1), i32Eq, i32Eqz, brIf(0)),
			unreachable,
		),
	}
}

// hoardTable grows its table until it's refused, and reports that as an error of its own.
func hoardTable() Module {
	c := newConsumer(1)
	c.table = true
	c.errorResult(errorOther, addrHeap, 0)
	return Module{
		Name: "hoard-table", Does: "grows its table until it's refused, then fails", Limit: limits.NameTableElements,
		Reason: "guest-error: other",
		Limits: limits.DefaultGuest(),
		Wasm: c.handler(0,
			loop(refNull, i32Const(1000), tableGrow, i32Const(-1), i32Eq, i32Eqz, brIf(0)),
			i32Const(addrErr),
		),
	}
}

// recurse calls itself for ever.
func recurse() Module {
	c := newConsumer(1)
	const self fn = 0 // the first function, for there are no imports
	c.define(signature{}, 0, call(self))
	return Module{
		Name: "recurse", Does: "calls itself forever", Limit: limits.NameCallDepth, Reason: "stack-overflow",
		Limits: limits.DefaultGuest(),
		Wasm:   c.handler(0, call(self), i32Const(addrOK)),
	}
}

// publishUntilRefused publishes payloads of so many bytes until it's refused, and returns that refusal as its own error.
func publishUntilRefused(payloadBytes int32) []byte {
	c := newConsumer(4)
	p := c.publisher()
	return c.handler(1,
		p.open(localFirst),
		loop(p.publish(localFirst, payloadBytes), i32Const(addrReturn), i32Load8U, i32Eqz, brIf(0)),
		i32Const(addrReturn),
	)
}

// publishMany publishes more messages than its outbox takes.
func publishMany() Module {
	return Module{
		Name: "publish-many", Does: "publishes messages until it's refused, then fails", Limit: limits.NameOutboxMessages,
		Reason: "guest-error: other",
		Limits: limits.DefaultGuest(),
		Wasm:   publishUntilRefused(1),
	}
}

// publishMuch publishes more bytes than its outbox takes, in few messages.
func publishMuch() Module {
	return Module{
		Name: "publish-much", Does: "publishes payloads of 64 KiB until it's refused, then fails", Limit: limits.NameOutboxBytes,
		Reason: "guest-error: other",
		Limits: limits.DefaultGuest(),
		Wasm:   publishUntilRefused(64 * limits.KiB),
	}
}

// callHost calls a cheap host function for ever.
func callHost() Module {
	c := newConsumer(1)
	removeMetadata := c.importFunc(abiTypes, "[method]message.remove-metadata", signature{params: 3})
	key := c.str("no-such-key")
	return Module{
		Name: "call-host", Does: "calls a host function forever", Limit: limits.NameHostCalls, Reason: "host-call-limit",
		Limits: limits.DefaultGuest(),
		Wasm:   c.handler(0, loop(localGet(paramMessage), key, call(removeMetadata), again()), unreachable),
	}
}

// chatter writes lines to its log for ever.
func chatter() Module {
	const stdout = 1
	c := newConsumer(1)
	write := c.importFunc(abiWASI, "fd_write", signature{params: 4, results: 1})
	line := []byte("are we there yet?\n")
	c.data(addrText, line)
	iovec := binary.LittleEndian.AppendUint32(nil, addrText)
	c.data(addrIOVec, binary.LittleEndian.AppendUint32(iovec, uint32(len(line)))) // a short constant
	return Module{
		Name: "chatter", Does: "writes to its log forever", Limit: limits.NameLogBytes, Reason: "output-limit",
		Limits: limits.DefaultGuest(),
		Wasm: c.handler(0,
			loop(i32Const(stdout), i32Const(addrIOVec), i32Const(1), i32Const(addrReturn), call(write), drop, again()),
			unreachable,
		),
	}
}

// answerMuch fails with a text that is too large.
func answerMuch() Module {
	c := newConsumer(64)
	c.errorResult(errorOther, addrHeap, 2*limits.MiB)
	return Module{
		Name: "answer-much", Does: "returns an error text of 2 MiB", Limit: limits.NameResultBytes, Reason: "output-limit",
		Limits: limits.DefaultGuest(),
		Wasm:   c.handler(0, i32Const(addrErr)),
	}
}

// hoardHandles makes messages and keeps them.
func hoardHandles() Module {
	c := newConsumer(1)
	newMessage := c.importFunc(abiTypes, "[constructor]message", signature{params: 2, results: 1})
	return Module{
		Name: "hoard-handles", Does: "makes messages and never drops them", Limit: limits.NameHandles, Reason: "handle-limit",
		Limits: limits.DefaultGuest(),
		Wasm:   c.handler(0, loop(i32Const(addrHeap), i32Const(0), call(newMessage), drop, again()), unreachable),
	}
}

// fail returns an error of the given case, whose name in the reason is word.
func fail(name string, errorCase uint32, word string) Module {
	text := "failing on purpose"
	c := newConsumer(1)
	c.data(addrText, []byte(text))
	c.errorResult(errorCase, addrText, uint32(len(text))) // a short constant
	return Module{
		Name: name, Does: "returns the error " + strconv.Quote(word), Reason: "guest-error: " + word,
		Limits: limits.DefaultGuest(),
		Wasm:   c.handler(0, i32Const(addrErr)),
	}
}

// trap executes unreachable, as an aborting C or Rust program does.
func trap() Module {
	return Module{
		Name: "trap", Does: "executes unreachable", Reason: "guest-trap: unreachable",
		Limits: limits.DefaultGuest(),
		Wasm:   newConsumer(1).handler(0, unreachable),
	}
}

// divide divides by zero.
func divide() Module {
	return Module{
		Name: "divide", Does: "divides by zero", Reason: "guest-trap: integer-divide-by-zero",
		Limits: limits.DefaultGuest(),
		Wasm:   newConsumer(1).handler(0, i32Const(1), i32Const(0), i32DivU),
	}
}

// stray reads past the end of its memory.
func stray() Module {
	return Module{
		Name: "stray", Does: "reads outside its memory", Reason: "guest-trap: memory-out-of-bounds",
		Limits: limits.DefaultGuest(),
		Wasm:   newConsumer(1).handler(0, i32Const(-4), i32Load),
	}
}

// publishThenTrap publishes a message that must never be seen.
func publishThenTrap() Module {
	c := newConsumer(1)
	p := c.publisher()
	return Module{
		Name: "publish-then-trap", Does: "publishes a message, then traps", Reason: "guest-trap: unreachable",
		Limits: limits.DefaultGuest(),
		Wasm:   c.handler(1, p.open(localFirst), p.publish(localFirst, 1), unreachable),
	}
}

// exit ends itself like a program that has found its configuration missing.
func exit() Module {
	c := newConsumer(1)
	procExit := c.importFunc(abiWASI, "proc_exit", signature{params: 1})
	return Module{
		Name: "exit", Does: "exits with code 3", Reason: "exit 3",
		Limits: limits.DefaultGuest(),
		Wasm:   c.handler(0, i32Const(3), call(procExit), unreachable),
	}
}

// badPointer returns a result outside its memory.
func badPointer() Module {
	const outside = 0x7ffffff0
	return Module{
		Name: "bad-pointer", Does: "returns a result outside its memory", Reason: "bad-abi",
		Limits: limits.DefaultGuest(),
		Wasm:   newConsumer(1).handler(0, i32Const(outside)),
	}
}

// badHandle drops a message that it doesn't have.
func badHandle() Module {
	c := newConsumer(1)
	dropMessage := c.importFunc(abiTypes, "[resource-drop]message", signature{params: 1})
	return Module{
		Name: "bad-handle", Does: "drops a handle that it doesn't have", Reason: "bad-abi",
		Limits: limits.DefaultGuest(),
		Wasm:   c.handler(0, i32Const(0), call(dropMessage), i32Const(addrOK)),
	}
}
