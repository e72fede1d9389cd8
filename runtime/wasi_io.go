package runtime

import (
	"context"
	"crypto/rand"
	"encoding/binary"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/wasi/messaging"
)

// The standard streams.
const (
	fdStdin  = 0
	fdStdout = 1
	fdStderr = 2
)

// The clocks.
const (
	clockRealtime  = 0
	clockMonotonic = 1
)

// clockNow reads a clock, in nanoseconds. ok is false if there is no such clock.
func clockNow(id uint32) (ns int64, ok bool) {
	switch id {
	case clockRealtime:
		return messaging.WallNow().UnixNano(), true
	case clockMonotonic:
		return int64(messaging.MonotonicNow()), true
	}
	return 0, false
}

// wasiClockRes answers the grain of a clock.
//
//	clock id, ret ns u64
func wasiClockRes(_ context.Context, w wasiCall) errno {
	if _, ok := clockNow(w.arg(0)); !ok {
		return errnoInval
	}
	if !w.memory().WriteUint64Le(w.arg(1), uint64(messaging.ClockGrain)) {
		return errnoFault
	}
	return errnoSuccess
}

// wasiClockTime answers the time of a clock.
//
//	clock id, precision u64, ret ns u64
func wasiClockTime(_ context.Context, w wasiCall) errno {
	ns, ok := clockNow(w.arg(0))
	if !ok {
		return errnoInval
	}
	if !w.memory().WriteUint64Le(w.arg(2), uint64(ns)) {
		return errnoFault
	}
	return errnoSuccess
}

// fdstat: | file type u8, pad | flags u16 | 4 pad | rights u64 | inherited rights u64 |.
const (
	fdstatBytes       = 24
	fileTypeCharacter = 2
	rightFdRead       = 1 << 1
	rightFdWrite      = 1 << 6
	fdstatRightsAt    = 8
	iovecBytes        = 8
	maxIovecs         = 1024 // IOV_MAX of POSIX systems
	randomChunkBytes  = 64 * limits.KiB
)

// wasiFdstat describes a standard stream.
//
//	fd, ret fdstat
func wasiFdstat(_ context.Context, w wasiCall) errno {
	if !w.isStream() {
		return errnoBadf
	}
	var b [fdstatBytes]byte
	b[0] = fileTypeCharacter
	rights := uint64(rightFdWrite)
	if w.arg(0) == fdStdin {
		rights = rightFdRead
	}
	binary.LittleEndian.PutUint64(b[fdstatRightsAt:], rights)
	if !w.memory().Write(w.arg(1), b[:]) {
		return errnoFault
	}
	return errnoSuccess
}

// wasiRead reads nothing: the input is empty.
//
//	fd, iovecs ptr, iovecs len, ret n u32
func wasiRead(_ context.Context, w wasiCall) errno {
	if w.arg(0) != fdStdin {
		return errnoBadf
	}
	if w.arg(2) > maxIovecs {
		return errnoInval
	}
	if !w.memory().WriteUint32Le(w.arg(3), 0) {
		return errnoFault
	}
	return errnoSuccess
}

// wasiWrite appends to the call's log.
//
//	fd, iovecs ptr, iovecs len, ret n u32
func wasiWrite(_ context.Context, w wasiCall) errno {
	stream := messaging.Stdout
	switch w.arg(0) {
	case fdStdout:
	case fdStderr:
		stream = messaging.Stderr
	default:
		return errnoBadf
	}
	if w.arg(2) > maxIovecs {
		return errnoInval
	}
	iovecs, ok := w.memory().Read(w.arg(1), w.arg(2)*iovecBytes)
	if !ok {
		return errnoFault
	}
	var n uint32
	for ; len(iovecs) > 0; iovecs = iovecs[iovecBytes:] {
		ptr, size := binary.LittleEndian.Uint32(iovecs), binary.LittleEndian.Uint32(iovecs[4:])
		b, ok := w.memory().Read(ptr, size)
		if !ok {
			return errnoFault
		}
		w.call.WriteLog(stream, b)
		n += size
	}
	if !w.memory().WriteUint32Le(w.arg(3), n) {
		return errnoFault
	}
	return errnoSuccess
}

// wasiRandom fills memory with random bytes of the system, looking at the deadline between chunks.
//
//	ptr, len
func wasiRandom(ctx context.Context, w wasiCall) errno {
	b, ok := w.memory().Read(w.arg(0), w.arg(1))
	if !ok {
		return errnoFault
	}
	for len(b) > 0 {
		n := min(len(b), randomChunkBytes)
		// Never fails: the Go runtime ends the process where the system has no randomness.
		_, _ = rand.Read(b[:n])
		b = b[n:]
		if err := w.call.Check(ctx); err != nil {
			panic(err)
		}
	}
	return errnoSuccess
}
