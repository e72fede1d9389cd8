package dispatcher

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/longshore/longshore/limits"
)

// room is a number of messages and of payload bytes.
type room struct {
	messages int
	bytes    int64
}

// plus returns r and s together.
func (r room) plus(s room) room {
	return room{messages: r.messages + s.messages, bytes: r.bytes + s.bytes}
}

// less returns r without s.
func (r room) less(s room) room {
	return room{messages: r.messages - s.messages, bytes: r.bytes - s.bytes}
}

// budget bounds what is in flight, for one consumer or for the whole host. Whoever wants to claim takes room before, and
// gives back what it didn't need. Waiters are served in the order in which they came. It is safe for concurrent use.
type budget struct {
	mu      sync.Mutex
	free    room // bytes may be below 0, after a message that was larger than the room that was left
	waiters []*waiter
}

type waiter struct {
	want    room
	least   int       // messages
	granted chan room // buffered: the grant never blocks
}

func newBudget(total room) *budget {
	return &budget{free: total}
}

// take waits until there is any room and takes as much of it as is free, at most want. The error is ctx's.
func (b *budget) take(ctx context.Context, want room) (room, error) {
	return b.takeAtLeast(ctx, want, 1)
}

// takeAtLeast is take for who would rather wait for room for so many messages, but not for long: it waits limits.RoomWait for
// them, and then takes any.
func (b *budget) takeAtLeast(ctx context.Context, want room, messages int) (room, error) {
	w := &waiter{want: want, least: messages, granted: make(chan room, 1)}
	b.wait(w)
	select {
	case got := <-w.granted:
		return got, nil
	default:
	}
	if messages > 1 {
		hurry := time.AfterFunc(limits.RoomWait, func() { b.settleForLess(w) })
		defer hurry.Stop()
	}
	select {
	case got := <-w.granted:
		return got, nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case got := <-w.granted:
		b.free = b.free.plus(got)
		b.serve()
	default:
		b.waiters = slices.DeleteFunc(b.waiters, func(other *waiter) bool { return other == w })
	}
	return room{}, ctx.Err()
}

func (b *budget) wait(w *waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiters = append(b.waiters, w)
	b.serve()
}

func (b *budget) settleForLess(w *waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w.least = 1
	b.serve()
}

// give returns room. Negative bytes take more of it than was granted.
func (b *budget) give(r room) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free = b.free.plus(r)
	b.serve()
}

// serve grants what is free to those who wait, first come first served.
func (b *budget) serve() {
	for len(b.waiters) > 0 && b.free.messages >= b.waiters[0].least && b.free.bytes > 0 {
		w := b.waiters[0]
		b.waiters = slices.Delete(b.waiters, 0, 1)
		got := room{messages: min(w.want.messages, b.free.messages), bytes: min(w.want.bytes, b.free.bytes)}
		b.free = b.free.less(got)
		w.granted <- got
	}
}
