package runtime

import (
	"context"

	"github.com/tetratelabs/wazero/experimental"

	"github.com/longshore/longshore/runtime/internal/cow"
)

// withMemory returns a context in which instances are made with m as their memory.
func withMemory(ctx context.Context, m cow.Memory) context.Context {
	allocate := func(uint64, uint64) experimental.LinearMemory { return m }
	return experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(allocate))
}
