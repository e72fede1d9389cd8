package messaging

import (
	"context"
	"encoding/binary"
	"math"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/longshore/longshore/limits"
)

// pollable is the resource pollable: ready once the monotonic clock says due. Streams are always ready.
type pollable struct{ due time.Duration }

// subscribeInstant is monotonic-clock's subscribe-instant: func(when: instant) -> pollable.
func subscribeInstant(_ context.Context, c *Call, stack []uint64) {
	stack[0] = api.EncodeU32(c.handles.add(&pollable{due: nanoseconds(stack[0])}))
}

// subscribeDuration is monotonic-clock's subscribe-duration: func(when: duration) -> pollable.
func subscribeDuration(_ context.Context, c *Call, stack []uint64) {
	due := nanoseconds(stack[0])
	if now := MonotonicNow(); due < math.MaxInt64-now {
		due += now
	}
	stack[0] = api.EncodeU32(c.handles.add(&pollable{due: due}))
}

// nanoseconds reads a duration; the longest ones are the same.
func nanoseconds(n uint64) time.Duration { return time.Duration(min(n, math.MaxInt64)) }

// wait returns how long until p is ready; at most 0 if it is.
func (p *pollable) wait() time.Duration { return p.due - MonotonicNow() }

// pollableReady is pollable.ready: func() -> bool.
func pollableReady(_ context.Context, c *Call, stack []uint64) {
	ready := lookup[*pollable](&c.handles, arg(stack, 0)).wait() <= 0
	stack[0] = 0
	if ready {
		stack[0] = 1
	}
}

// pollableBlock is pollable.block: func().
func pollableBlock(ctx context.Context, c *Call, stack []uint64) {
	p := lookup[*pollable](&c.handles, arg(stack, 0))
	for p.wait() > 0 {
		c.Sleep(ctx, p.wait())
	}
}

// pollableDrop drops an own<pollable>.
func pollableDrop(_ context.Context, c *Call, stack []uint64) {
	lookup[*pollable](&c.handles, arg(stack, 0))
	c.handles.remove(arg(stack, 0))
}

// pollList is poll's poll: func(in: list<borrow<pollable>>) -> list<u32>. It waits until one of them is ready, and returns
// the indices of all that are.
//
//	list ptr, len, ret | list<u32>
func pollList(ctx context.Context, c *Call, stack []uint64) {
	list := c.guest.list(arg(stack, 0), arg(stack, 1), handleShape)
	n := len(list) / int(handleShape.size)
	if n == 0 {
		panic(&ABIError{Problem: "a poll of nothing never ends"})
	}
	if err := limits.Check(limits.NameHandles, int64(n), limits.HandlesPerCall); err != nil {
		panic(err)
	}
	polled := make([]*pollable, n)
	for i := range polled {
		polled[i] = lookup[*pollable](&c.handles, binary.LittleEndian.Uint32(list[i*int(handleShape.size):]))
	}
	ready := readyOf(polled)
	for len(ready) == 0 {
		wait := polled[0].wait()
		for _, p := range polled[1:] {
			wait = min(wait, p.wait())
		}
		c.Sleep(ctx, wait)
		ready = readyOf(polled)
	}
	ptr := c.guest.alloc(ctx, len(ready)/int(u32Shape.size), u32Shape)
	copy(c.guest.view(ptr, uint32(len(ready))), ready)
	b := make([]byte, textShape.size)
	putList(b, ptr, len(ready)/int(u32Shape.size))
	c.guest.store(arg(stack, 2), textShape, b)
}

// readyOf returns the indices of those that are ready, as a list<u32> in memory.
func readyOf(polled []*pollable) (list []byte) {
	for i, p := range polled {
		if p.wait() <= 0 {
			list = binary.LittleEndian.AppendUint32(list, uint32(i))
		}
	}
	return list
}
