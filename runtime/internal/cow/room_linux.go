package cow

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// room is the address space of memories: how much they may reserve, and have. A process that may map only so much leaves
// half of it to everything else, because Go ends a process whose heap can't grow.
type room struct{ most, taken atomic.Int64 }

// bound sets how many bytes may be reserved.
func (r *room) bound(bytes int64) {
	var all unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_AS, &all) == nil && all.Cur/2 < uint64(bytes) {
		bytes = int64(all.Cur / 2)
	}
	r.most.Store(bytes)
}

// reserve returns n bytes of address space, zero when first read, without huge pages.
func (r *room) reserve(n uint64) ([]byte, error) {
	if r.taken.Add(int64(n)) > r.most.Load() {
		r.taken.Add(-int64(n))
		return nil, fmt.Errorf("reserving %d bytes of address space beyond %d: %w", n, r.most.Load(), ErrNoRoom)
	}
	const access, flags = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_PRIVATE | unix.MAP_ANON | unix.MAP_NORESERVE
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(n), access, flags)
	if err != nil {
		r.taken.Add(-int64(n))
		return nil, noRoom(fmt.Errorf("reserving %d bytes of address space: %w", n, err))
	}
	all := unsafe.Slice((*byte)(p), n)
	// A kernel without huge pages refuses the advice: then there are none.
	_ = unix.Madvise(all, unix.MADV_NOHUGEPAGE)
	return all, nil
}

// release takes a reservation back.
func (r *room) release(all []byte) error {
	if err := unix.MunmapPtr(unsafe.Pointer(&all[0]), uintptr(len(all))); err != nil {
		return fmt.Errorf("unmapping %d bytes: %w", len(all), err)
	}
	r.taken.Add(-int64(len(all)))
	return nil
}

// noRoom makes an error of the kernel's that says so an ErrNoRoom.
func noRoom(err error) error {
	if errors.Is(err, unix.ENOMEM) {
		return fmt.Errorf("%w: %w", ErrNoRoom, err)
	}
	return err
}
