package runtime

import (
	"context"

	"github.com/tetratelabs/wazero/experimental"
)

// withMemoryFor returns a context in which instances begin with room for so many bytes of memory, so that restoring a
// snapshot doesn't move it.
func withMemoryFor(ctx context.Context, bytes uint64) context.Context {
	allocate := func(_, limit uint64) experimental.LinearMemory {
		return &linearMemory{limit: limit, buf: make([]byte, 0, min(bytes, limit))}
	}
	return experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(allocate))
}

// linearMemory is the memory of one instance. Bytes between its length and its capacity are zero.
type linearMemory struct {
	limit uint64 // most bytes that will be asked for
	buf   []byte
}

// Reallocate implements experimental.LinearMemory. When memory moves, it doubles, and takes all of its limit once that is
// over half of it. So growing page by page costs linear time, and what is left behind for the garbage collector is less,
// all together, than the limit.
func (m *linearMemory) Reallocate(size uint64) []byte {
	if size > uint64(cap(m.buf)) {
		room := 2 * size
		if room > m.limit/2 {
			room = max(size, m.limit)
		}
		grown := make([]byte, size, room)
		copy(grown, m.buf)
		m.buf = grown
	}
	m.buf = m.buf[:size]
	return m.buf
}

// Free implements experimental.LinearMemory.
func (m *linearMemory) Free() { m.buf = nil }
