package cow

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// PAGEMAP_SCAN of linux/fs.h: the number of the ioctl, and the categories of a page.
const (
	pagemapScan = 0xc0606610 // _IOWR('f', 16, struct pm_scan_arg)

	pageIsFile    = 1 << 2 // or shared: not a private copy
	pageIsPresent = 1 << 3
	pageIsSwapped = 1 << 4
	pageIsZero    = 1 << 5 // the kernel's page of zeros, which a read of untouched memory maps
)

// scanArg is struct pm_scan_arg.
type scanArg struct {
	size, flags, start, end, walkEnd                        uint64
	ranges, rangesLen, maxPages                             uint64
	categoryInverted, categoryMask, categoryAny, returnMask uint64
}

// scanRange is struct page_region.
type scanRange struct {
	start, end uint64
	_          uint64 // categories
}

// scanRanges is how many ranges one ioctl may answer; where there are more, it is called again.
const scanRanges = 128

// scanBuffer is what an ioctl reads and writes. It is part of a mapped, which never moves.
type scanBuffer struct {
	arg    scanArg
	ranges [scanRanges]scanRange
}

// findScanned finds private copies by PAGEMAP_SCAN: pages that are there, or swapped out, and are neither the file's nor
// the page of zeros.
func (m *mapped) findScanned(end uint64, each eachRange) (pages int, err error) {
	if end == 0 {
		return 0, nil
	}
	base := uint64(uintptr(unsafe.Pointer(&m.all[0])))
	for at := base; at < base+end; {
		n, walked, err := m.scanPages(at, base+end)
		if err != nil {
			return 0, err
		}
		for _, r := range m.scan.ranges[:n] {
			pages += each(m, r.start-base, r.end-base)
		}
		if walked <= at {
			return 0, fmt.Errorf("PAGEMAP_SCAN stopped %d bytes before the end", base+end-at)
		}
		at = walked
	}
	return pages, nil
}

// scanPages fills the ranges of m with the first private pages between two addresses, and returns how many there are and
// how far it came.
func (m *mapped) scanPages(from, to uint64) (n int, walked uint64, err error) {
	const never = pageIsFile | pageIsZero
	a := &m.scan.arg
	*a = scanArg{
		size: uint64(unsafe.Sizeof(*a)), start: from, end: to,
		ranges: uint64(uintptr(unsafe.Pointer(&m.scan.ranges))), rangesLen: scanRanges,
		categoryInverted: never, categoryMask: never, categoryAny: pageIsPresent | pageIsSwapped, returnMask: pageIsPresent,
	}
	for {
		r, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(m.system.pagemap), pagemapScan, uintptr(unsafe.Pointer(a)))
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			return 0, 0, fmt.Errorf("PAGEMAP_SCAN: %w", errno)
		}
		return int(r), a.walkEnd, nil
	}
}

// An entry of /proc/self/pagemap.
const (
	entryBytes   = 8
	entryFile    = 1 << 61 // or shared
	entrySwapped = 1 << 62
	entryPresent = 1 << 63

	entriesAtOnce = 8192 // entries of one read: 32 MiB of memory with pages of 4 KiB
)

// findRead finds them by the entries of /proc/self/pagemap, as findScanned, but the page of zeros looks like any
// other.
func (m *mapped) findRead(end uint64, each eachRange) (pages int, err error) {
	page := uint64(os.Getpagesize())
	if m.entries == nil {
		m.entries = make([]byte, min(entriesAtOnce, uint64(len(m.all))/page)*entryBytes)
	}
	for from := uint64(0); from < end; {
		n := min(uint64(len(m.entries))/entryBytes, (end-from)/page)
		if err := m.readEntries(m.entries[:n*entryBytes], from); err != nil {
			return 0, err
		}
		for i := range n {
			e := binary.NativeEndian.Uint64(m.entries[i*entryBytes:])
			if e&(entryPresent|entrySwapped) != 0 && e&entryFile == 0 {
				at := from + i*page
				pages += each(m, at, at+page)
			}
		}
		from += n * page
	}
	return pages, nil
}

// readEntries reads the entries of the pages from an offset of the memory on.
func (m *mapped) readEntries(entries []byte, from uint64) error {
	address := uint64(uintptr(unsafe.Pointer(&m.all[from])))
	n, err := unix.Pread(m.system.pagemap, entries, int64(address/uint64(os.Getpagesize())*entryBytes))
	if err != nil {
		return fmt.Errorf("reading /proc/self/pagemap: %w", err)
	}
	if n != len(entries) {
		return errors.New("/proc/self/pagemap is cut short")
	}
	return nil
}

// findAll takes everything for a private copy, which it is once it was restored.
func (m *mapped) findAll(end uint64, each eachRange) (pages int, err error) {
	return each(m, 0, end), nil
}
