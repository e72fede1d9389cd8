package messaging

import (
	"context"
	"encoding/binary"

	"github.com/tetratelabs/wazero/api"
)

// The standard streams have handles of their own, outside of the table of a call: a module may ask for them while it is
// initialised, and keeps them in the snapshot that all its calls begin with.
const (
	handleStdin = 1<<30 + iota
	handleStdout
	handleStderr
)

// inputStream is the resource input-stream. The only one is standard input, which is at its end.
type inputStream struct{}

// outputStream is the resource output-stream, by the stream of the log that it goes to.
type outputStream struct{ log string }

// standing returns what a handle outside of the table of a call stands for.
func standing(h uint32) any {
	switch h {
	case handleStdin:
		return inputStream{}
	case handleStdout:
		return outputStream{Stdout}
	case handleStderr:
		return outputStream{Stderr}
	}
	return nil
}

// stdio returns the function that gives a standard stream.
func stdio(h uint32) func(context.Context, *Call, []uint64) {
	return func(_ context.Context, _ *Call, stack []uint64) { stack[0] = api.EncodeU32(h) }
}

var (
	streamErrorShape   = variantOf(handleShape, shape{}) // last-operation-failed, closed
	streamDataShape    = variantOf(listShape(), streamErrorShape)
	streamCountShape   = variantOf(u64Shape, streamErrorShape)
	streamNothingShape = variantOf(shape{}, streamErrorShape)
)

// streamClosed is the case of stream-error for a stream at its end.
const streamClosed = 1

// writableBytes is what check-write answers: a stream takes that much without being asked again.
const writableBytes = 4096

func inputStreamFuncs() []hostFunc {
	data, count := returnClosed[inputStream](streamDataShape, 2), returnClosed[inputStream](streamCountShape, 2)
	return []hostFunc{
		{name: "[method]input-stream.read", params: "ili", call: data},
		{name: "[method]input-stream.blocking-read", params: "ili", call: data},
		{name: "[method]input-stream.skip", params: "ili", call: count},
		{name: "[method]input-stream.blocking-skip", params: "ili", call: count},
		{name: "[method]input-stream.subscribe", params: "i", results: "i", call: streamSubscribe[inputStream]},
		{name: "[resource-drop]input-stream", params: "i", call: streamDrop[inputStream]},
	}
}

func outputStreamFuncs() []hostFunc {
	// What is spliced comes from standard input, and so ends at once.
	splice := returnClosed[outputStream](streamCountShape, 3)
	return []hostFunc{
		{name: "[method]output-stream.check-write", params: "ii", call: streamCheckWrite},
		{name: "[method]output-stream.write", params: "iiii", call: streamWrite},
		{name: "[method]output-stream.blocking-write-and-flush", params: "iiii", call: streamWrite},
		{name: "[method]output-stream.flush", params: "ii", call: streamFlush},
		{name: "[method]output-stream.blocking-flush", params: "ii", call: streamFlush},
		{name: "[method]output-stream.write-zeroes", params: "ili", call: streamWriteZeroes},
		{name: "[method]output-stream.blocking-write-zeroes-and-flush", params: "ili", call: streamWriteZeroes},
		{name: "[method]output-stream.splice", params: "iili", call: splice},
		{name: "[method]output-stream.blocking-splice", params: "iili", call: splice},
		{name: "[method]output-stream.subscribe", params: "i", results: "i", call: streamSubscribe[outputStream]},
		{name: "[resource-drop]output-stream", params: "i", call: streamDrop[outputStream]},
	}
}

// returnClosed answers that a stream is at its end, in a result of shape s at parameter ret.
func returnClosed[T any](s shape, ret int) func(context.Context, *Call, []uint64) {
	return func(_ context.Context, c *Call, stack []uint64) {
		lookup[T](&c.handles, arg(stack, 0))
		b := make([]byte, s.size)
		b[0], b[s.payload] = 1, streamClosed
		c.guest.store(arg(stack, ret), s, b)
	}
}

// streamSubscribe gives a pollable that is ready.
func streamSubscribe[T any](_ context.Context, c *Call, stack []uint64) {
	lookup[T](&c.handles, arg(stack, 0))
	stack[0] = api.EncodeU32(c.handles.add(&pollable{}))
}

// streamDrop drops a standard stream, which a guest may ask for again.
func streamDrop[T any](_ context.Context, c *Call, stack []uint64) {
	lookup[T](&c.handles, arg(stack, 0))
}

// streamCheckWrite is output-stream.check-write: func() -> result<u64, stream-error>.
func streamCheckWrite(_ context.Context, c *Call, stack []uint64) {
	lookup[outputStream](&c.handles, arg(stack, 0))
	b := make([]byte, streamCountShape.size)
	binary.LittleEndian.PutUint64(b[streamCountShape.payload:], writableBytes)
	c.guest.store(arg(stack, 1), streamCountShape, b)
}

// streamWrite is output-stream.write: func(contents: list<u8>) -> result<_, stream-error>.
func streamWrite(_ context.Context, c *Call, stack []uint64) {
	to := lookup[outputStream](&c.handles, arg(stack, 0))
	c.WriteLog(to.log, c.guest.view(arg(stack, 1), arg(stack, 2)))
	c.guest.store(arg(stack, 3), streamNothingShape, make([]byte, streamNothingShape.size))
}

// streamFlush is output-stream.flush: func() -> result<_, stream-error>.
func streamFlush(_ context.Context, c *Call, stack []uint64) {
	lookup[outputStream](&c.handles, arg(stack, 0))
	c.guest.store(arg(stack, 1), streamNothingShape, make([]byte, streamNothingShape.size))
}

// streamWriteZeroes is output-stream.write-zeroes: func(len: u64) -> result<_, stream-error>. The log takes no more of them
// than it has room for, and the call ends with the one after.
func streamWriteZeroes(_ context.Context, c *Call, stack []uint64) {
	to := lookup[outputStream](&c.handles, arg(stack, 0))
	room := uint64(max(c.o.Limits.LogBytes-c.log.written, 0)) + 1
	c.WriteLog(to.log, make([]byte, min(stack[1], room)))
	c.guest.store(arg(stack, 2), streamNothingShape, make([]byte, streamNothingShape.size))
}
