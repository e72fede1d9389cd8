package hostile

import (
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
)

// Imports of messaging.
var (
	connect     = imported{fromTypes, "[static]client.connect", "iii", ""}
	disconnect  = imported{fromTypes, "[method]client.disconnect", "ii", ""}
	clientDrop  = imported{fromTypes, "[resource-drop]client", "i", ""}
	messageNew  = imported{fromTypes, "[constructor]message", "ii", "i"}
	messageTop  = imported{fromTypes, "[method]message.topic", "ii", ""}
	contentType = imported{fromTypes, "[method]message.content-type", "ii", ""}
	setType     = imported{fromTypes, "[method]message.set-content-type", "iii", ""}
	messageData = imported{fromTypes, "[method]message.data", "ii", ""}
	setData     = imported{fromTypes, "[method]message.set-data", "iii", ""}
	metadata    = imported{fromTypes, "[method]message.metadata", "ii", ""}
	addMetadata = imported{fromTypes, "[method]message.add-metadata", "iiiii", ""}
	setMetadata = imported{fromTypes, "[method]message.set-metadata", "iii", ""}
	removeMeta  = imported{fromTypes, "[method]message.remove-metadata", "iii", ""}
	messageDrop = imported{fromTypes, "[resource-drop]message", "i", ""}
	sendMessage = imported{fromProducer, "send", "iiiii", ""}
	publish     = imported{fromPublish, "publish", "ii", ""}
	batch       = imported{fromPublish, "publish-batch", "iiii", ""}
)

// floods call one host function again and again, rightly.
func floods() []Module {
	const client, message = 1, 2 // functions
	const def = "default"
	open := konst(dataAt) + konst(int32(len(def))) + konst(retAt) + call(client)
	pair := u32s(dataAt, 7, dataAt, 7)
	// A guest that has a client, handle 2, and does something for ever. Its data is a name, then 1 KB of pairs at 1032.
	with := func(f imported, results string, args string) guest {
		body := args + call(0)
		if results != "" {
			body += drop
		}
		f.results = results
		return guest{
			imports: []imported{f, connect, messageNew}, data: def + "\x00" + times(64, pair),
			handler: open + forever(body),
		}
	}
	const pairsAt = dataAt + 8
	wide := with(setMetadata, "", get(0)+konst(pairsAt)+konst(64))
	publishing := with(publish, "", konst(8_192)+konst(retAt))
	publishing.handler = open + storeAt(8_192, 2) + storeAt(8_196, dataAt) + storeAt(8_200, 7) + storeAt(8_204, 1) +
		forever(konst(8_192)+konst(retAt)+call(0))
	sending := with(sendMessage, "", konst(2)+konst(dataAt)+konst(7)+konst(0)+konst(0)+call(message)+konst(retAt))
	many := with(addMetadata, "", "")
	many.handler = forever(konst(2_000) + get(1) + store + bump(1) +
		// Four bytes of a counter are a key only while they are UTF-8: each is kept below 128.
		konst(2_000) + konst(2_000) + load + konst(0x7f7f7f7f) + and + store +
		get(0) + konst(2_000) + konst(4) + konst(2_000) + konst(4) + call(0))
	held := guest{imports: []imported{messageNew}, handler: growTo(32) + forever(konst(0)+konst(1<<20)+call(0)+drop)}
	return []Module{
		flood("asking for the topic", with(messageTop, "", get(0)+konst(retAt))),
		flood("asking for the content type", with(contentType, "", get(0)+konst(retAt))),
		flood("setting the content type", with(setType, "", get(0)+konst(dataAt)+konst(7))),
		flood("asking for the data", with(messageData, "", get(0)+konst(retAt))),
		flood("setting the data", with(setData, "", get(0)+konst(0)+konst(60_000))),
		flood("asking for the metadata", with(metadata, "", get(0)+konst(retAt))),
		flood("adding the same metadata", with(addMetadata, "", get(0)+konst(dataAt)+konst(7)+konst(dataAt)+konst(7))),
		flood("setting the metadata", wide),
		flood("removing metadata", with(removeMeta, "", get(0)+konst(dataAt)+konst(7))),
		flood("disconnecting", with(disconnect, "", konst(2)+konst(retAt))),
		flood("publishing", publishing),
		flood("publishing no batch", with(batch, "", konst(2)+konst(0)+konst(0)+konst(retAt))),
		flood("sending", sending),
		ends("connecting", "handle-limit", with(connect, "", konst(dataAt)+konst(7)+konst(retAt))),
		flood("connecting as nobody", with(connect, "", konst(dataAt)+konst(3)+konst(retAt))),
		ends("making small messages", "handle-limit", with(messageNew, "i", konst(0)+konst(0))),
		ends("making large messages", "out-of-memory", held),
		ends("adding new metadata", "out-of-memory", many),
	}
}

// lies are pointers, lengths and handles that are wrong, and allocators that can't be trusted.
func lies() []Module {
	one := func(f imported, args string) guest {
		return guest{imports: []imported{f, connect, messageNew}, handler: args + call(0) + unreachable}
	}
	abi := func(name string, g guest) Module { return ends(name, "bad-abi", g) }
	allocator := func(realloc string) guest {
		return guest{imports: []imported{messageData}, realloc: realloc, handler: get(0) + konst(retAt) + call(0) + konst(0)}
	}
	answer := func(words ...uint32) guest { return guest{data: u32s(words...), handler: konst(dataAt)} }
	const last = -16
	all := []Module{
		abi("data of four gigabytes", one(setData, get(0)+konst(0)+konst(-1))),
		abi("data behind memory", one(setData, get(0)+konst(last)+konst(15))),
		ends("a text of four gigabytes", "out-of-memory", one(setType, get(0)+konst(0)+konst(-1))),
		abi("a text that isn't UTF-8", guest{imports: []imported{setType}, data: "\xff\xfe", handler: get(0) + konst(dataAt) + konst(2) + call(0) + konst(0)}),
		abi("a return area behind memory", one(messageData, get(0)+konst(last))),
		abi("a return area that isn't aligned", one(messageData, get(0)+konst(retAt+1))),
		abi("a batch of four billion", one(batch, konst(0)+konst(0)+konst(-1)+konst(retAt))),
		abi("metadata of four billion pairs", one(setMetadata, get(0)+konst(0)+konst(-1))),
		abi("a message that was sent before", guest{imports: []imported{sendMessage, connect}, data: "default", handler: konst(dataAt) + konst(7) + konst(retAt) + call(1) +
			times(2, konst(2)+konst(dataAt)+konst(7)+get(0)+konst(retAt)+call(0)) + konst(0)}),
		abi("a message that was dropped before", guest{imports: []imported{messageDrop}, handler: times(2, get(0)+call(0)) + konst(0)}),
		abi("a message as a client", one(clientDrop, get(0))),
		abi("an allocator that answers the end of the address space", allocator(konst(-1))),
		abi("an allocator that answers what isn't there", allocator(konst(65_536))),
		ends("an allocator that traps", "guest-trap: unreachable", allocator(unreachable)),
		ends("an allocator that recurses", "stack-overflow", allocator(get(0)+get(1)+get(2)+get(3)+call(1))),
		ends("an allocator that exits", "exit 3", guest{
			imports: []imported{messageData, {fromWASI, "proc_exit", "i", ""}}, realloc: konst(3) + call(1) + unreachable,
			handler: get(0) + konst(retAt) + call(0) + konst(0),
		}),
		abi("an answer behind memory", guest{handler: konst(last)}),
		abi("an answer that isn't aligned", guest{handler: konst(1)}),
		abi("an answer of a case that isn't there", answer(9, 0)),
		abi("an error of a case that isn't there", answer(1, 99)),
		abi("an error whose text is behind memory", answer(1, 3, 1<<31, 100)),
		ends("an error whose text is too long", "output-limit", guest{
			data: u32s(1, 3, 0, limits.ResultBytes+1), memory: "\x00\x20", handler: konst(dataAt),
		}),
		ends("an error whose text is four gigabytes", "output-limit", answer(1, 3, 0, 1<<32-1)),
		ends("an error with a terminal's control characters", "guest-error: other", guest{
			data: u32s(1, 3, dataAt+16, 4) + "\x1b[2J", handler: konst(dataAt),
		}),
	}
	for _, f := range []imported{
		disconnect, clientDrop, messageTop, contentType, setType, messageData, setData, metadata, addMetadata, setMetadata, removeMeta,
		messageDrop, sendMessage, batch,
	} {
		for _, handle := range []int32{0, -1} {
			args := konst(handle) + zeros(f.params[1:])
			all = append(all, abi(handleName(f, handle), one(f, args)))
		}
	}
	return append(all, abi("publish with handle 0", one(publish, konst(retAt)+konst(retAt))))
}

func handleName(f imported, handle int32) string {
	if handle == 0 {
		return f.name + " of handle 0"
	}
	return f.name + " of handle 4294967295"
}

// outputs write or publish too much.
func outputs() []Module {
	writing := func(fd int32, data string, iovecs int32) guest {
		return guest{
			imports: []imported{{fromWASI, "fd_write", "iiii", "i"}}, data: data,
			handler: forever(konst(fd) + konst(dataAt) + konst(iovecs) + konst(retAt) + call(0) + drop),
		}
	}
	const over = "output-limit"
	line := u32s(dataAt, 1_000) + times(125, "12345 \x1b\n")
	return []Module{
		ends("writing to stdout for ever", over, writing(1, line, 1)),
		ends("writing to stderr for ever", over, writing(2, line, 1)),
		ends("writing without an end of line", over, writing(1, u32s(0, 1), 1)),
		ends("writing memory a thousand times at once", over, writing(1, times(350, u32s(0, 60_000)), 350)),
		flood("writing nothing", writing(1, u32s(0, 0), 1)),
		flood("writing four billion pieces", writing(1, "", -1)),
		flood("writing what is behind memory", writing(1, u32s(1<<31, 1<<31), 1)),
		flood("writing to a file", writing(3, line, 1)),
	}
}

// withinCaps are bombs that stay within all caps.
func withinCaps() []Module {
	handlerOf := func(locals, body string) guest { return guest{locals: locals, handler: body + konst(0)} }
	locals := func(n int) string { return "\x01" + uleb(n) + i64 }
	nest := times(1_900, "\x02\x40") + times(1_900, end)
	return []Module{
		ends("nineteen hundred nested blocks", "", handlerOf(handlerLocals, nest)),
		ends("two thousand locals", "", handlerOf(locals(1_990), konst(0)+drop)),
		ends("eight thousand branches", "", handlerOf(handlerLocals, times(8_000, block(konst(0)+brIf0)))),
		ends("a br_table of four thousand targets", "", handlerOf(handlerLocals, block(konst(9)+"\x0e"+uleb(4_000)+times(4_001, "\x00")))),
		ends("nine hundred locals beside eight hundred branches", "", handlerOf(locals(900), times(400, block(konst(0)+brIf0)))),
		{Name: "a hundred thousand functions", Ends: "", Wasm: (&guest{more: func(m *module) {
			t := m.typ("", "")
			for range 99_000 {
				m.fnOf(t, "\x00", "")
			}
		}}).bytes},
		{Name: "forty megabytes of data", Refused: &Refusal{Stage: runtime.StageInitialise, Words: "outside of memory"}, Wasm: (&guest{
			more: func(m *module) { m.data = []string{"\x00" + konst(0) + end + vec(times(40<<20, "x"))} },
		}).bytes},
	}
}
