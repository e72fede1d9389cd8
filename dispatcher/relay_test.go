package dispatcher

import (
	"encoding/binary"
	"slices"
)

// relayTopic is where the relay publishes.
const relayTopic = "lines"

// relay returns a module that publishes the message "line" to relayTopic for each message that it handles, and answers
// with the result of that publish.
func relay() []byte {
	const (
		client, line, lines    = 16, 32, 48 // texts
		connected, handle, ret = 64, 68, 80 // results: of connect, the client in it, of send
		opCall, opEnd, opLoad  = 0x10, 0x0b, 0x28
		i32, function, memory  = 0x7f, 0x60, 0x02
		unreachable, fixed     = 0x00, 0x00
	)
	handler := slices.Concat(
		number(client), number(7), number(connected), []byte{opCall, 0},
		number(handle), []byte{opLoad, 2, 0},
		number(lines), number(5),
		number(line), number(4), []byte{opCall, 1},
		number(ret), []byte{opCall, 2},
		number(ret), []byte{opEnd},
	)
	const types, producer = "wasi:messaging/types@0.2.0-draft", "wasi:messaging/producer@0.2.0-draft"
	text := func(at byte, s string) []byte {
		return slices.Concat([]byte{0}, number(int32(at)), []byte{opEnd}, name(s))
	}
	return slices.Concat(
		[]byte("\x00asm\x01\x00\x00\x00"),
		section(1,
			[]byte{function, 3, i32, i32, i32, 0}, []byte{function, 2, i32, i32, 1, i32},
			[]byte{function, 5, i32, i32, i32, i32, i32, 0}, []byte{function, 1, i32, 1, i32},
			[]byte{function, 4, i32, i32, i32, i32, 1, i32}),
		section(2,
			slices.Concat(name(types), name("[static]client.connect"), []byte{0, 0}),
			slices.Concat(name(types), name("[constructor]message"), []byte{0, 1}),
			slices.Concat(name(producer), name("send"), []byte{0, 2})),
		section(3, []byte{3}, []byte{4}),
		section(5, []byte{fixed, 1}),
		section(7,
			slices.Concat(name("memory"), []byte{memory, 0}),
			slices.Concat(name("wasi:messaging/incoming-handler@0.2.0-draft#handle"), []byte{0, 3}),
			slices.Concat(name("cabi_realloc"), []byte{0, 4})),
		section(10,
			sized(append([]byte{0}, handler...)),
			sized([]byte{0, unreachable, opEnd})),
		section(11, text(client, "default"), text(line, "line"), text(lines, relayTopic)),
	)
}

// number is the instruction that pushes n, which is below 8192.
func number(n int32) []byte {
	if n < 64 {
		return []byte{0x41, byte(n)}
	}
	return []byte{0x41, byte(n&0x7f) | 0x80, byte(n >> 7)}
}

func name(s string) []byte { return sized([]byte(s)) }

func sized(b []byte) []byte { return append(binary.AppendUvarint(nil, uint64(len(b))), b...) }

func section(id byte, items ...[]byte) []byte {
	body := binary.AppendUvarint(nil, uint64(len(items)))
	return append([]byte{id}, sized(append(body, slices.Concat(items...)...))...)
}
