package runtime

import (
	"fmt"
	"os"
	"runtime/debug"
	"syscall"

	"github.com/longshore/longshore/limits"
)

// limitAddressSpace bounds what the process may map beyond what it has mapped, and has the garbage collector work harder
// before that. Go reserves more than a gigabyte at its start, and uses little of it.
func limitAddressSpace(bytes uint64) error {
	debug.SetMemoryLimit(limits.CompileHeapBytes)
	sizes, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return err
	}
	var pages uint64
	if _, err := fmt.Sscan(string(sizes), &pages); err != nil {
		return fmt.Errorf("/proc/self/statm: %w", err)
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_AS, &limit); err != nil {
		return err
	}
	limit.Max = min(limit.Max, bytes+pages*uint64(os.Getpagesize())) // the host's own bound, if it has one, can't be raised
	limit.Cur = limit.Max
	return syscall.Setrlimit(syscall.RLIMIT_AS, &limit)
}
