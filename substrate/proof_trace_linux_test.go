package substrate

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// traceFileSyncs makes every thread of this process stop at the calls that make something durable, and at those that delete
// a file, so that its tracer sees them. All others cost nothing.
func traceFileSyncs() error {
	return filterCalls(unix.SECCOMP_RET_TRACE, unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_MSYNC, unix.SYS_UNLINKAT)
}

// skipFileSyncs makes the calls that make something durable do nothing, in this process, and return success.
func skipFileSyncs() error {
	return filterCalls(unix.SECCOMP_RET_ERRNO, unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_MSYNC)
}

// filterCalls has the kernel do something else than the system calls of these numbers.
func filterCalls(action uint32, numbers ...uint32) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}} // the number of the call
	for _, number := range numbers {
		filter = append(filter,
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 0, Jf: 1, K: number},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action})
	}
	filter = append(filter, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return fmt.Errorf("filter system calls: %w", errno)
	}
	return nil
}

// tracedCall is a system call of a traced process, at which one of its threads stands: before it, or after.
type tracedCall struct {
	pid, thread int
	number      uint64
	args        [6]uint64
	after       bool
	failed      bool
}

// tracer watches the system calls of a child. All its methods run on one thread of the system.
type tracer struct {
	pid   int
	watch func(tracedCall) (kill bool)
	calls map[int]tracedCall // by thread, those under way
}

// Parts of ptrace that package unix doesn't have.
const (
	ptraceSyscallInfo   = 0x420e
	ptraceEntrySeccomp  = 3
	ptraceOptionSysGood = 1
)

// syscallInfo is the kernel's struct ptrace_syscall_info.
type syscallInfo struct {
	Op      uint8
	_       [3]uint8
	Arch    uint32
	IP      uint64
	SP      uint64
	Number  uint64 // at an exit: the result
	Args    [6]uint64
	RetData uint32
	_       uint32
}

// startTraced starts a child that traceFileSyncs will make stop. The calling goroutine has to be locked to its thread.
func startTraced(args, env []string, files []uintptr, watch func(tracedCall) bool) (*tracer, error) {
	pid, err := syscall.ForkExec(args[0], args, &syscall.ProcAttr{Env: env, Files: files, Sys: &syscall.SysProcAttr{Ptrace: true}})
	if err != nil {
		return nil, fmt.Errorf("start a traced child: %w", err)
	}
	t := &tracer{pid: pid, watch: watch, calls: map[int]tracedCall{}}
	var status unix.WaitStatus
	if _, err := unix.Wait4(pid, &status, 0, nil); err != nil {
		return nil, fmt.Errorf("wait for a traced child: %w", err)
	}
	err = unix.PtraceSetOptions(pid, unix.PTRACE_O_TRACESECCOMP|unix.PTRACE_O_TRACECLONE|unix.PTRACE_O_EXITKILL|ptraceOptionSysGood)
	if err == nil {
		err = unix.PtraceCont(pid, 0)
	}
	return t, err
}

// run serves the child until it has ended.
func (t *tracer) run() error {
	for {
		var status unix.WaitStatus
		thread, err := unix.Wait4(-1, &status, unix.WALL|unix.WNOTHREAD, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ECHILD):
			return nil
		case err != nil:
			return fmt.Errorf("wait for a traced child: %w", err)
		case status.Stopped():
			if err := t.stopped(thread, status); err != nil && !errors.Is(err, unix.ESRCH) { // it was killed meanwhile
				return err
			}
		}
	}
}

func (t *tracer) stopped(thread int, status unix.WaitStatus) error {
	switch sig := status.StopSignal(); {
	case status.TrapCause() == unix.PTRACE_EVENT_SECCOMP:
		return t.before(thread)
	case sig == unix.SIGTRAP|0x80:
		return t.afterwards(thread)
	case sig == unix.SIGTRAP, sig == unix.SIGSTOP: // a new thread, or its first stop
		return unix.PtraceCont(thread, 0)
	default:
		return unix.PtraceCont(thread, int(sig))
	}
}

func (t *tracer) before(thread int) error {
	info, err := ptraceInfo(thread)
	if err != nil {
		return err
	}
	if info.Op != ptraceEntrySeccomp {
		return unix.PtraceCont(thread, 0)
	}
	c := tracedCall{pid: t.pid, thread: thread, number: info.Number, args: info.Args}
	t.calls[thread] = c
	if t.watch(c) {
		return unix.Kill(t.pid, unix.SIGKILL)
	}
	return unix.PtraceSyscall(thread, 0)
}

func (t *tracer) afterwards(thread int) error {
	info, err := ptraceInfo(thread)
	if err != nil {
		return err
	}
	c := t.calls[thread]
	delete(t.calls, thread)
	c.after, c.failed = true, info.Number > math.MaxInt64
	if t.watch(c) {
		return unix.Kill(t.pid, unix.SIGKILL)
	}
	return unix.PtraceCont(thread, 0)
}

func ptraceInfo(thread int) (syscallInfo, error) {
	var info syscallInfo
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, ptraceSyscallInfo, uintptr(thread), unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info)), 0, 0)
	if errno != 0 {
		return info, errno
	}
	return info, nil
}
