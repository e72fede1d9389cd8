//go:build unix && !linux

package runtime

import (
	"runtime/debug"

	"github.com/longshore/longshore/limits"
)

// limitAddressSpace has the garbage collector work harder towards the bound; the system has none that works.
func limitAddressSpace(uint64) error {
	debug.SetMemoryLimit(limits.CompileHeapBytes)
	return nil
}
