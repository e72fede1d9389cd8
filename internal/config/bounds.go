package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/longshore/longshore/limits"
)

// DefaultDelivery returns what a consumer gets when neither its manifest nor the host config says.
func DefaultDelivery() Delivery {
	return Delivery{
		Guest:       limits.DefaultGuest(),
		Concurrency: limits.Concurrency,
		MaxAttempts: limits.MaxAttempts,
		Lease:       limits.LeaseDuration,
		Retry:       Retry{Base: limits.RetryBaseDuration, Cap: limits.RetryCapDuration},
	}
}

// DefaultCeilings returns the most that a manifest may ask for when the host config doesn't say: generous, but finite, so
// that one consumer can't take the host.
func DefaultCeilings() Delivery {
	return Delivery{
		Guest: limits.Guest{
			Fuel:           100_000_000_000,
			CallDuration:   5 * time.Minute,
			MemoryBytes:    1 * limits.GiB,
			TableElements:  1_000_000,
			CallDepth:      10_000,
			OutboxMessages: 4_096,
			OutboxBytes:    limits.CommitGroupBytes,
			HostCalls:      10_000_000,
			LogBytes:       1 * limits.MiB,
			ResultBytes:    16 * limits.MiB,
		},
		Concurrency: limits.InFlightMessages,
		MaxAttempts: 100,
		Lease:       time.Hour,
		Retry:       Retry{Base: time.Hour, Cap: 24 * time.Hour},
	}
}

// Hard bounds: no ceiling can be set above them.
const (
	maxMemoryBytes  = 4 * limits.GiB // what 32-bit WebAssembly can address
	wasmPageBytes   = 64 * limits.KiB
	maxWaitDuration = 365 * 24 * time.Hour
	maxGrace        = time.Hour
)

// unit says how a bound's value is written.
type unit uint8

const (
	unitCount unit = iota
	unitBytes
	unitTime
)

func (u unit) format(n int64) string {
	switch u {
	case unitBytes:
		return FormatSize(n)
	case unitTime:
		return FormatDuration(time.Duration(n))
	case unitCount:
	}
	return strconv.FormatInt(n, 10)
}

// bound is one bounded value of Delivery: what both files call it, the least and the most that even a ceiling may be, and
// where it is kept.
type bound struct {
	path     string
	unit     unit
	min, max int64
	asked    func(*deliveryFile) (n int64, given bool)
	get      func(*Delivery) int64
	set      func(*Delivery, int64)
}

func newBound[F ~int64, D ~int64 | ~int](
	path string, u unit, least, most int64, file func(*deliveryFile) *F, field func(*Delivery) *D,
) bound {
	return bound{
		path: path, unit: u, min: least, max: most,
		asked: func(f *deliveryFile) (int64, bool) {
			if p := file(f); p != nil {
				return int64(*p), true
			}
			return 0, false
		},
		get: func(d *Delivery) int64 { return int64(*field(d)) },
		set: func(d *Delivery, n int64) { *field(d) = D(n) },
	}
}

// key returns the last word of the bound's path.
func (b bound) key() string { return b.path[strings.LastIndexByte(b.path, '.')+1:] }

// bounds returns every bounded value, in the order of the files.
func bounds() []bound {
	type (
		f = deliveryFile
		d = Delivery
		t = time.Duration
	)
	return []bound{
		newBound("limits.fuel", unitCount, 1, 1e15, func(f *f) *int64 { return f.Limits.Fuel }, func(d *d) *int64 { return &d.Guest.Fuel }),
		newBound("limits.call_time", unitTime, int64(time.Millisecond), int64(24*time.Hour), func(f *f) *duration { return f.Limits.CallTime }, func(d *d) *t { return &d.Guest.CallDuration }),
		newBound("limits.memory", unitBytes, wasmPageBytes, maxMemoryBytes, func(f *f) *size { return f.Limits.Memory }, func(d *d) *int64 { return &d.Guest.MemoryBytes }),
		newBound("limits.table_elements", unitCount, 0, 10_000_000, func(f *f) *int64 { return f.Limits.TableElements }, func(d *d) *int64 { return &d.Guest.TableElements }),
		newBound("limits.call_depth", unitCount, 1, 100_000, func(f *f) *int64 { return f.Limits.CallDepth }, func(d *d) *int64 { return &d.Guest.CallDepth }),
		newBound("limits.outbox_messages", unitCount, 0, limits.BatchMessages, func(f *f) *int64 { return f.Limits.OutboxMessages }, func(d *d) *int64 { return &d.Guest.OutboxMessages }),
		newBound("limits.outbox_bytes", unitBytes, 0, limits.MessageCeilingBytes, func(f *f) *size { return f.Limits.OutboxBytes }, func(d *d) *int64 { return &d.Guest.OutboxBytes }),
		newBound("limits.host_calls", unitCount, 1, 1_000_000_000, func(f *f) *int64 { return f.Limits.HostCalls }, func(d *d) *int64 { return &d.Guest.HostCalls }),
		newBound("limits.log_bytes", unitBytes, 0, 16*limits.MiB, func(f *f) *size { return f.Limits.LogBytes }, func(d *d) *int64 { return &d.Guest.LogBytes }),
		newBound("limits.result_bytes", unitBytes, 0, 64*limits.MiB, func(f *f) *size { return f.Limits.ResultBytes }, func(d *d) *int64 { return &d.Guest.ResultBytes }),
		newBound("concurrency", unitCount, 1, limits.HostInFlightMsgs, func(f *f) *int64 { return f.Concurrency }, func(d *d) *int { return &d.Concurrency }),
		newBound("max_attempts", unitCount, 1, 1_000, func(f *f) *int64 { return f.MaxAttempts }, func(d *d) *int { return &d.MaxAttempts }),
		newBound("lease", unitTime, int64(2*time.Millisecond), int64(7*24*time.Hour), func(f *f) *duration { return f.Lease }, func(d *d) *t { return &d.Lease }),
		newBound("retry.base", unitTime, int64(time.Millisecond), int64(maxWaitDuration), func(f *f) *duration { return f.Retry.Base }, func(d *d) *t { return &d.Retry.Base }),
		newBound("retry.cap", unitTime, int64(time.Millisecond), int64(maxWaitDuration), func(f *f) *duration { return f.Retry.Cap }, func(d *d) *t { return &d.Retry.Cap }),
	}
}

// resolve returns what a file asks for over what it gets otherwise, and reports what is not within the most. An inherited
// value above the most is lowered to it: only what somebody wrote can be at fault.
func resolve(s *sources, path string, f *deliveryFile, otherwise Delivery, most func(bound) (n int64, why string)) Delivery {
	out := otherwise
	for _, b := range bounds() {
		n, given := b.asked(f)
		at := path + "." + b.path
		ceiling, why := most(b)
		right := fmt.Sprintf("want %s to %s%s", b.unit.format(b.min), b.unit.format(ceiling), why)
		switch {
		case !given || !s.sound(at):
			b.set(&out, min(b.get(&otherwise), ceiling))
		case n > ceiling:
			s.add(at, b.unit.format(n)+" is over the ceiling", right)
		case n < b.min:
			s.add(at, b.unit.format(n)+" is too small", right)
		default:
			b.set(&out, n)
		}
	}
	return out
}

// hardMost is the most that a ceiling may be.
func hardMost(b bound) (n int64, why string) { return b.max, "" }

// most returns the most that a default or a manifest may ask for under these ceilings.
func (ceilings *Delivery) most(b bound) (n int64, why string) {
	return b.get(ceilings), ", the host config's ceilings." + b.path
}

// checkPairs reports the values of one delivery that don't go together.
func checkPairs(s *sources, path string, d Delivery) {
	lease, call := path+".lease", path+".limits.call_time"
	if d.Lease <= d.Guest.CallDuration && s.sound(lease) && s.sound(call) {
		s.add(s.nearer(lease, call),
			fmt.Sprintf("the lease of %s is not longer than the call time of %s", FormatDuration(d.Lease), FormatDuration(d.Guest.CallDuration)),
			"want a lease longer than the call time")
	}
	base, most := path+".retry.base", path+".retry.cap"
	if d.Retry.Base > d.Retry.Cap && s.sound(base) && s.sound(most) {
		s.add(s.nearer(base, most),
			fmt.Sprintf("the base of %s is over the cap of %s", FormatDuration(d.Retry.Base), FormatDuration(d.Retry.Cap)),
			"want a base of at most the cap")
	}
}
