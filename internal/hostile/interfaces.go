package hostile

import (
	"github.com/longshore/longshore/limits"
)

// Interfaces beside messaging, as guests import them.
const (
	fromClock    = "wasi:clocks/monotonic-clock@0.2.0"
	fromPoll     = "wasi:io/poll@0.2.0"
	fromStreams  = "wasi:io/streams@0.2.0"
	fromStdout   = "wasi:cli/stdout@0.2.0"
	fromStdin    = "wasi:cli/stdin@0.2.0"
	fromRandom   = "wasi:random/random@0.2.0"
	fromConfig   = "wasi:config/store@0.2.0-draft"
	fromLogging  = "wasi:logging/logging@0.1.0-draft"
	fromKeyvalue = "wasi:keyvalue/store@0.2.0-draft2"
	fromRequests = "wasi:messaging/request-reply@0.2.0-draft"
	fromDelivery = "longshore:messaging/delivery@0.1.0"
)

// Imports of theirs.
var (
	subscribe   = imported{fromClock, "subscribe-duration", "l", "i"}
	ready       = imported{fromPoll, "[method]pollable.ready", "i", "i"}
	blockOn     = imported{fromPoll, "[method]pollable.block", "i", ""}
	pollList    = imported{fromPoll, "poll", "iii", ""}
	stdout      = imported{fromStdout, "get-stdout", "", "i"}
	stdin       = imported{fromStdin, "get-stdin", "", "i"}
	streamDrop  = imported{fromStreams, "[resource-drop]output-stream", "i", ""}
	streamWrite = imported{fromStreams, "[method]output-stream.blocking-write-and-flush", "iiii", ""}
	streamZeros = imported{fromStreams, "[method]output-stream.write-zeroes", "ili", ""}
	streamReady = imported{fromStreams, "[method]output-stream.subscribe", "i", "i"}
	streamRead  = imported{fromStreams, "[method]input-stream.blocking-read", "ili", ""}
	randomBytes = imported{fromRandom, "get-random-bytes", "li", ""}
	configGet   = imported{fromConfig, "get", "iii", ""}
	configAll   = imported{fromConfig, "get-all", "i", ""}
	logLine     = imported{fromLogging, "log", "iiiii", ""}
	storeOpen   = imported{fromKeyvalue, "open", "iii", ""}
	bucketSet   = imported{fromKeyvalue, "[method]bucket.set", "iiiiii", ""}
	optionsNew  = imported{fromRequests, "[constructor]request-options", "", "i"}
	ask         = imported{fromRequests, "request", "iiiiiii", ""}
	answerTo    = imported{fromRequests, "reply", "iii", ""}
	deliveryOf  = imported{fromDelivery, "info", "ii", ""}
	timeLeft    = imported{fromDelivery, "time-left", "", "l"}
)

const (
	year      = "\x42\x80\x80\x80\xbf\xc5\xd9\xf8\xb7\x01" // 365 days in nanoseconds, an i64
	mostI64   = "\x42\x7f"                                 // of its bits
	badABI    = "bad-abi"
	noHandles = "handle-limit"
)

// besides misuse what there is beside messaging and WASI preview 1: pollables, streams, logs, configuration, values and requests.
func besides() []Module {
	one := func(f imported, body string) guest { return guest{imports: []imported{f}, handler: body + konst(0)} }
	many := func(body string, data string, imports ...imported) guest {
		return guest{imports: imports, data: data, handler: body}
	}
	// A list of handles 2, n of them, where the memory of the guest is 64 pages.
	listed := loop(get(1) + konst(2) + "\x36\x02\x00" + bump(4) + get(1) + konst(4<<20) + ltU + brIf0)
	logged := konst(4) + konst(dataAt) + konst(7) + konst(dataAt) + konst(1_000)
	text := times(125, "12345 \x1b\n")
	return []Module{
		ends("subscribing for ever", noHandles, many(forever(year+call(0)+drop), "", subscribe)),
		ends("subscribing to a stream for ever", noHandles, many(call(0)+set(1)+forever(get(1)+call(1)+drop), "", stdout, streamReady)),
		waits("blocking for a year", many(year+call(0)+call(1)+konst(0), "", subscribe, blockOn)),
		waits("polling for a year", many(year+call(0)+drop+storeAt(64, 2)+konst(64)+konst(1)+konst(retAt)+call(1)+konst(0), "", subscribe, pollList)),
		ends("polling nothing", badABI, one(pollList, konst(0)+konst(0)+konst(retAt)+call(0))),
		ends("polling a million pollables", noHandles, guest{
			imports: []imported{subscribe, pollList}, memory: "\x00\x50",
			handler: "\x42\x00" + call(0) + drop + listed + konst(0) + konst(1<<20) + konst(retAt) + call(1) + konst(0),
		}),
		ends("polling four billion pollables", badABI, one(pollList, konst(0)+konst(-1)+konst(retAt)+call(0))),
		flood("asking whether a pollable is ready", many(year+call(0)+set(1)+forever(get(1)+call(1)+drop), "", subscribe, ready)),
		ends("polling a stream as a pollable", badABI, many(call(0)+call(1)+drop+konst(0), "", stdout, ready)),
		flood("dropping standard output again and again", many(call(0)+set(1)+forever(get(1)+call(1)), "", stdout, streamDrop)),
		flood("reading standard input", many(call(0)+set(1)+forever(get(1)+mostI64+konst(retAt)+call(1)), "", stdin, streamRead)),
		ends("reading standard output", badABI, many(call(0)+mostI64+konst(retAt)+call(1)+konst(0), "", stdout, streamRead)),
		ends("writing to a stream for ever", "output-limit", many(call(0)+set(1)+forever(get(1)+konst(dataAt)+konst(1_000)+konst(retAt)+call(1)), text, stdout, streamWrite)),
		ends("writing all zeros there are", "output-limit", many(call(0)+mostI64+konst(retAt)+call(1)+konst(0), "", stdout, streamZeros)),
		ends("writing to a stream what is behind memory", badABI, many(call(0)+konst(-8)+konst(4)+konst(retAt)+call(1)+konst(0), "", stdout, streamWrite)),
		ends("all randomness there is", badABI, one(randomBytes, mostI64+konst(retAt)+call(0))),
		flood("asking for a key of the configuration", many(forever(konst(dataAt)+konst(7)+konst(retAt)+call(0)), text, configGet)),
		flood("asking for all of the configuration", many(forever(konst(retAt)+call(0)), "", configAll)),
		ends("a key of the configuration of four gigabytes", "out-of-memory", one(configGet, konst(0)+konst(-1)+konst(retAt)+call(0))),
		ends("logging for ever", "output-limit", many(forever(logged+call(0)), text, logLine)),
		ends("logging at a level that isn't there", badABI, many(konst(6)+konst(0)+konst(0)+konst(0)+konst(0)+call(0)+konst(0), "", logLine)),
		ends("logging four gigabytes", "out-of-memory", one(logLine, konst(0)+konst(0)+konst(0)+konst(0)+konst(-1)+call(0))),
		flood("opening a bucket that isn't granted", many(forever(konst(dataAt)+konst(7)+konst(retAt)+call(0)), "default", storeOpen)),
		ends("writing to a bucket that isn't open", badABI, one(bucketSet, zeros("iiiiii")+call(0))),
		ends("request options for ever", noHandles, many(forever(call(0)+drop), "", optionsNew)),
		ends("a request by nobody", badABI, one(ask, zeros("iiiiiii")+call(0))),
		flood("requesting where nobody answers", many(konst(dataAt)+konst(7)+konst(retAt)+call(0)+
			forever(konst(2)+konst(dataAt)+konst(7)+get(0)+konst(0)+konst(0)+konst(retAt)+call(1)), "default", connect, ask)),
		ends("options of a request that were taken before", badABI, many(konst(dataAt)+konst(7)+konst(retAt)+call(0)+call(2)+set(1)+
			times(2, konst(2)+konst(dataAt)+konst(7)+get(0)+konst(1)+get(1)+konst(retAt)+call(1))+konst(0), "default", connect, ask, optionsNew)),
		ends("a reply to the same message with itself", badABI, many(times(2, get(0)+get(0)+konst(retAt)+call(0))+konst(0), "", answerTo)),
		ends("messages of a hundred thousand empty metadata", "out-of-memory", guest{
			imports: []imported{messageNew, setMetadata}, memory: "\x00\x40",
			handler: forever(konst(0) + konst(0) + call(0) + konst(0) + konst(100_000) + call(1)),
		}),
		flood("asking about the delivery", many(forever(get(0)+konst(retAt)+call(0)), "", deliveryOf)),
		flood("asking for the time that is left", many(forever(call(0)+drop), "", timeLeft)),
	}
}

// returns are guests that go on when they have been asked for memory, or have answered.
func returns() []Module {
	asking := func(realloc string, more ...imported) guest {
		return guest{imports: append([]imported{messageData}, more...), realloc: realloc, handler: get(0) + konst(retAt) + call(0) + konst(0)}
	}
	post := func(body string, imports ...imported) guest {
		return guest{imports: imports, more: func(m *module) {
			m.export("cabi_post_"+handleExport, kindFunc, m.fn(i32, "", handlerLocals, body))
		}}
	}
	grown := konst(1) + grow + konst(16) + "\x74" // one more page, and where it begins
	return []Module{
		ends("an allocator that calls the host", badABI, asking(konst(0)+konst(0)+call(1)+drop+konst(allocAt), messageNew)),
		ends("an allocator that asks for memory itself", badABI, asking(konst(1)+konst(retAt)+call(0)+konst(allocAt))),
		ends("an allocator that logs", badABI, asking(zeros("iiiii")+call(1)+konst(allocAt), logLine)),
		ends("an allocator that grows memory each time", "", asking(grown)),
		ends("an allocator that spins", "out-of-fuel", asking(forever(""))),
		ends("an allocator that grows memory for ever", "out-of-fuel", asking(forever(grown+drop))),
		ends("an end that traps", "guest-trap: unreachable", post(unreachable)),
		ends("an end that spins", "out-of-fuel", post(forever(""))),
		ends("an end that calls the host", badABI, post(konst(0)+konst(0)+call(0)+drop, messageNew)),
		ends("an end that exits", "exit 3", post(konst(3)+call(0), imported{fromWASI, "proc_exit", "i", ""})),
		ends("an end that recurses", "stack-overflow", post(get(0)+call(2))),
	}
}

// answers are what handlers of other kinds may not answer, and what they may.
func answers() []Module {
	const outcomes, batches = "longshore:messaging/outcome-handler@0.1.0#handle", "longshore:messaging/batch-handler@0.1.0#handle-batch"
	// outcome's words: case, then at 8 the delay of a retry, an option<u64>, or the text of a reject.
	one := func(words ...uint32) guest {
		return guest{data: u32s(words...), more: func(m *module) {
			m.export(outcomes, kindFunc, m.fn(i32, i32, handlerLocals, konst(dataAt)))
		}}
	}
	all := func(words ...uint32) guest {
		return guest{data: u32s(words...), more: func(m *module) {
			m.export(batches, kindFunc, m.fn(i32+i32, i32, handlerLocals, konst(dataAt)))
		}}
	}
	const most = 1<<32 - 1
	retry := one(1, 0, 1, 0, most, most)
	return []Module{
		ends("an outcome of a case that isn't there", badABI, one(4)),
		ends("a retry in a time that is longest", "", retry),
		ends("a retry after an option that isn't there", badABI, one(1, 0, 2)),
		ends("a reject whose text is behind memory", badABI, one(2, 0, 1<<31, 100)),
		ends("a reject whose text is four gigabytes", "output-limit", one(2, 0, 0, most)),
		ends("a reject whose text is too long", "output-limit", func() guest {
			g := one(2, 0, 0, limits.ResultBytes+1)
			g.memory = "\x00\x20"
			return g
		}()),
		ends("more outcomes than messages", badABI, all(0, dataAt, 2)),
		ends("four billion outcomes", badABI, all(0, dataAt, most)),
		ends("outcomes behind memory", badABI, all(0, 1<<31, 1)),
		ends("no outcome at all", "", all(0, 0, 0)),
		ends("a result of a case that isn't there", badABI, all(2)),
	}
}
