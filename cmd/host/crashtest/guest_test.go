package crashtest

import (
	"encoding/binary"
)

// What the guest writes when a handling begins and when it ends.
const (
	beginLine = "begin"
	endLine   = "end"
)

// poisonMark begins the payload of a message whose handling traps after it has published.
const poisonMark = '!'

// sinkTopic is where the guest publishes.
const sinkTopic = "sink"

// Where the guest's constants and return areas lie in its memory. A result<_, error> takes 16 bytes.
const (
	addrOK      = 16 // a result that is ok: 16 zero bytes
	addrData    = 32 // list<u8>: address, length
	addrClient  = 48 // result<client, error>
	addrSent    = 64 // result<_, error>
	addrBegin   = 96 // an iovec
	addrEnd     = 104
	addrWritten = 112
	addrText    = 256
	addrHeap    = 4096
)

// spinRounds is how often the guest goes round a loop for each of up to seven units: a unit is some 100 µs. Handlings of
// different lengths keep consumers from falling into step, where all claim at one moment and all settle at the next.
const spinRounds = 50_000

// guest is a module to assemble.
type guest struct {
	sink  string // topic where it publishes
	lines bool   // it writes when a handling begins and ends
	spins bool   // it takes its time: see spinRounds
	traps bool   // on a payload that begins with poisonMark, after it has published
}

// worker is the guest of the tests that kill hosts.
func worker() guest { return guest{sink: sinkTopic, lines: true, spins: true, traps: true} }

// assemble returns a module that publishes the payload of each message. In pseudo-code:
//
//	handle(message):
//	    fd_write(1, "begin\n")
//	    data := message.data()
//	    result := send(client.connect("default"), sink, message(data))
//	    for n := (data[last] & 7) * spinRounds; n > 0; n-- {}
//	    if result is error { return result }
//	    fd_write(1, "end\n")
//	    if data[0] == '!' { unreachable }
//	    return ok
func (g guest) assemble() []byte {
	const (
		types    = "wasi:messaging/types@0.2.0-draft"
		producer = "wasi:messaging/producer@0.2.0-draft"
		handler  = "wasi:messaging/incoming-handler@0.2.0-draft#handle"
		system   = "wasi_snapshot_preview1"
	)
	imports := vector(
		function(types, "[static]client.connect", typeIndex(3, 0)),
		function(types, "[method]message.data", typeIndex(2, 0)),
		function(types, "[constructor]message", typeIndex(2, 1)),
		function(producer, "send", typeIndex(5, 0)),
		function(system, "fd_write", typeIndex(4, 1)),
	)
	const connect, data, newMessage, send, write, handle, realloc = 0, 1, 2, 3, 4, 5, 6
	name, begin, end := "default", beginLine+"\n", endLine+"\n"
	constants := name + g.sink + begin + end
	addrSink := addrText + len(name)
	addrLines := addrSink + len(g.sink)
	word := func(addr int) []byte { return join(number(addr), op(0x28, 2, 0)) } // i32.load
	byteAt := op(0x2d, 0, 0)                                                    // i32.load8_u
	line := func(iovec int) []byte {
		return join(number(1), number(iovec), number(1), number(addrWritten), call(write), op(0x1a)) // drop
	}
	handleCode := join(
		only(g.lines, line(addrBegin)),
		op(0x20, 0), number(addrData), call(data), // local.get 0
		number(addrText), number(len(name)), number(addrClient), call(connect),
		word(addrClient+4), number(addrSink), number(len(g.sink)),
		word(addrData), word(addrData+4), call(newMessage), number(addrSent), call(send),
		only(g.spins, join(
			word(addrData), word(addrData+4), op(0x6a), number(-1), op(0x6a), byteAt, // i32.add
			number(7), op(0x71), number(spinRounds), op(0x6c), op(0x21, 1), // i32.and, i32.mul, local.set 1
			op(0x03, typeEmpty), op(0x20, 1), number(-1), op(0x6a), op(0x22, 1), number(0), op(0x4a), op(0x0d, 0), op(0x0b), // loop
		)),
		number(addrSent), byteAt, when(number(addrSent), op(0x0f)), // return
		only(g.lines, line(addrEnd)),
		only(g.traps, join(word(addrData), byteAt, number(poisonMark), op(0x46), when(op(0x00)))), // i32.eq, unreachable
		number(addrOK),
	)
	reallocCode := join( // returns the global, and moves it up by the size, which is the fourth parameter, rounded up to 8
		op(0x23, 0),
		op(0x23, 0), op(0x20, 3), op(0x6a), number(7), op(0x6a), number(-8), op(0x71), op(0x24, 0),
	)
	return join(
		[]byte("\x00asm\x01\x00\x00\x00"),
		section(1, signatures()),
		section(2, imports),
		section(3, vector(unsigned(typeIndex(1, 1)), unsigned(typeIndex(4, 1)))),
		section(5, vector(join(op(0), unsigned(1)))),                         // one page of memory
		section(6, vector(join(op(typeI32, 1), number(addrHeap), op(0x0b)))), // a mutable global
		section(7, vector(export("memory", 2, 0), export(handler, 0, handle), export("cabi_realloc", 0, realloc))),
		section(10, vector(body(handleCode), body(reallocCode))),
		section(11, vector(
			segment(addrBegin, words(addrLines, len(begin), addrLines+len(begin), len(end))),
			segment(addrText, []byte(constants)),
		)),
	)
}

const (
	typeI32   = 0x7f
	typeEmpty = 0x40 // of a block that leaves nothing
	maxParams = 5
)

// signatures lists every function type of up to maxParams i32s, without a result and with one; typeIndex finds one.
func signatures() []byte {
	var all [][]byte
	for params := range maxParams + 1 {
		for results := range 2 {
			all = append(all, join(op(0x60), i32s(params), i32s(results)))
		}
	}
	return vector(all...)
}

func typeIndex(params, results int) int { return 2*params + results }

func i32s(n int) []byte {
	items := make([][]byte, n)
	for i := range items {
		items[i] = op(typeI32)
	}
	return vector(items...)
}

func op(b ...byte) []byte { return b }

// only returns the code if it is wanted.
func only(wanted bool, code []byte) []byte {
	if wanted {
		return code
	}
	return nil
}

func join(parts ...[]byte) []byte {
	var out []byte
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func unsigned(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }

// number pushes a constant, in signed LEB128.
func number(n int) []byte {
	out := op(0x41)
	for {
		b := byte(n & 0x7f)
		n >>= 7
		if n == 0 && b&0x40 == 0 || n == -1 && b&0x40 != 0 {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}

func call(f int) []byte { return join(op(0x10), unsigned(f)) }

// when runs code if the popped i32 isn't 0.
func when(code ...[]byte) []byte { return join(op(0x04, typeEmpty), join(code...), op(0x0b)) }

func vector(items ...[]byte) []byte { return join(unsigned(len(items)), join(items...)) }

func text(s string) []byte { return join(unsigned(len(s)), []byte(s)) }

func section(id byte, content []byte) []byte { return join(op(id), unsigned(len(content)), content) }

func function(module, name string, typ int) []byte {
	return join(text(module), text(name), op(0), unsigned(typ))
}

func export(name string, kind byte, index int) []byte {
	return join(text(name), op(kind), unsigned(index))
}

// body is the code of a function with one local beside its parameters.
func body(code []byte) []byte {
	all := join(unsigned(1), unsigned(1), op(typeI32), code, op(0x0b))
	return join(unsigned(len(all)), all)
}

func segment(addr int, data []byte) []byte {
	return join(op(0), number(addr), op(0x0b), unsigned(len(data)), data)
}

func words(values ...int) []byte {
	var out []byte
	for _, v := range values {
		out = binary.LittleEndian.AppendUint32(out, uint32(v))
	}
	return out
}
