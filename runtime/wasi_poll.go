package runtime

import (
	"context"
	"encoding/binary"
	"math"
	"time"
)

// Layouts of poll_oneoff.
//
//	subscription | userdata u64 | type u8, pad to 16 | clock id u32, pad | timeout u64 | precision u64 | flags u16, pad |
//	             | userdata u64 | type u8, pad to 16 | fd u32, pad to 48                                            |
//	event        | userdata u64 | errno u16 | type u8, pad | bytes u64 | flags u16, pad |
const (
	subscriptionBytes = 48
	subTypeAt         = 8
	subClockAt        = 16
	subFdAt           = 16
	subTimeoutAt      = 24
	subFlagsAt        = 40
	eventBytes        = 32
	eventErrnoAt      = 8
	eventTypeAt       = 10

	subClock        = 0
	subFdRead       = 1
	subFdWrite      = 2
	flagAbstime     = 1
	maxPollSubs     = 4096
	maxSleepNanosec = math.MaxInt64
)

// subscription is what a guest waits for. wait is how long until it is due: 0 for what is ready or failed.
type subscription struct {
	raw   []byte
	errno errno
	wait  time.Duration
}

// wasiPoll waits until the first of some subscriptions is due, or the call must end.
//
//	in ptr, out ptr, count, ret events u32
func wasiPoll(ctx context.Context, w wasiCall) errno {
	n := w.arg(2)
	if n == 0 || n > maxPollSubs {
		return errnoInval
	}
	in, ok := w.memory().Read(w.arg(0), n*subscriptionBytes)
	if !ok {
		return errnoFault
	}
	out, ok := w.memory().Read(w.arg(1), n*eventBytes)
	if !ok {
		return errnoFault
	}
	subs := make([]subscription, n)
	wait := time.Duration(maxSleepNanosec)
	for i := range subs {
		subs[i] = parseSubscription(in[i*subscriptionBytes:][:subscriptionBytes])
		wait = min(wait, subs[i].wait)
	}
	w.call.Sleep(ctx, wait)
	var events uint32
	for _, s := range subs {
		if s.wait <= wait {
			s.putEvent(out[events*eventBytes:][:eventBytes])
			events++
		}
	}
	if !w.memory().WriteUint32Le(w.arg(3), events) {
		return errnoFault
	}
	return errnoSuccess
}

// parseSubscription copies b, because events may be written over it.
func parseSubscription(b []byte) subscription {
	s := subscription{raw: append([]byte(nil), b[:subClockAt]...)}
	switch b[subTypeAt] {
	case subClock:
		now, ok := clockNow(binary.LittleEndian.Uint32(b[subClockAt:]))
		if !ok {
			s.errno = errnoInval
			return s
		}
		timeout := binary.LittleEndian.Uint64(b[subTimeoutAt:])
		if binary.LittleEndian.Uint16(b[subFlagsAt:])&flagAbstime != 0 {
			timeout -= min(timeout, uint64(now))
		}
		s.wait = time.Duration(min(timeout, maxSleepNanosec))
	case subFdRead, subFdWrite:
		if binary.LittleEndian.Uint32(b[subFdAt:]) > fdStderr {
			s.errno = errnoBadf
		}
	default:
		s.errno = errnoInval
	}
	return s
}

func (s subscription) putEvent(b []byte) {
	clear(b)
	copy(b, s.raw[:subTypeAt])
	binary.LittleEndian.PutUint16(b[eventErrnoAt:], uint16(s.errno))
	b[eventTypeAt] = s.raw[subTypeAt]
}
