//go:build unix

package runtime

import (
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// niceness is how much a compiler yields to whoever else wants the processor.
const niceness = 10

// limitSelf bounds this process, which must be that of a compiler. At the bound on processor time it exits with
// slowStatus; a second later the kernel would kill it. How it was killed is not enough to know why: the kernel counts the
// time for its bound in ticks, and on a busy machine that is more than what it tells the parent.
func (b *compilerBounds) limitSelf() error {
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, niceness); err != nil {
		return fmt.Errorf("lower the priority: %w", err)
	}
	over := make(chan os.Signal, 1)
	signal.Notify(over, syscall.SIGXCPU)
	go func() { // for as long as the process lives
		<-over
		os.Exit(slowStatus)
	}()
	seconds := uint64(b.cpu / time.Second)
	if err := syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: seconds, Max: seconds + 1}); err != nil {
		return fmt.Errorf("limit the processor time: %w", err)
	}
	if err := limitAddressSpace(b.bytes); err != nil {
		return fmt.Errorf("limit the address space: %w", err)
	}
	return nil
}

// ownedByUs reports whether a file is this user's.
func ownedByUs(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
