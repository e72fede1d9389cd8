package cow

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapped is a memory in a reservation of its own.
type mapped struct {
	system  *mappedSystem
	image   *mappedImage // nil for a template
	all     []byte       // the reservation
	high    uint64       // most bytes since the last Reset
	publish uint64       // what the next Reallocate returns; 0 = what it is asked for
	resets  int          // since private copies were last given back
	touched uint64       // bytes in private copies, see Memory.Touched
	scan    scanBuffer
	entries []byte // of findRead, made when first needed
}

// mapOver puts a file's content at the start of a reservation.
func mapOver(all []byte, fd int, n uint64, flags int) error {
	if n == 0 {
		return nil
	}
	const access = unix.PROT_READ | unix.PROT_WRITE
	if _, err := unix.MmapPtr(fd, 0, unsafe.Pointer(&all[0]), uintptr(n), access, flags|unix.MAP_FIXED|unix.MAP_NORESERVE); err != nil {
		return noRoom(fmt.Errorf("mapping %d bytes: %w", n, err))
	}
	_ = unix.Madvise(all[:n], unix.MADV_NOHUGEPAGE) // as in reserve
	return nil
}

// Reallocate implements Memory.
func (m *mapped) Reallocate(size uint64) []byte {
	if m.publish != 0 {
		size, m.publish = m.publish, 0
	}
	if size > uint64(len(m.all)) {
		return nil
	}
	m.high = max(m.high, size)
	return m.all[:size:len(m.all)]
}

// Publish implements Memory.
func (m *mapped) Publish(size uint64) { m.publish = size }

// Free implements Memory.
func (m *mapped) Free() {}

// When private copies go back to the kernel.
const (
	overgrownBytes = 8 << 20 // past the image; then at once, because clearing them would take as long
	trimPages      = 512     // found by one Reset; then before long
	trimResets     = 64      // Resets from one such to the next, because other processors are interrupted
)

// Reset implements Memory.
func (m *mapped) Reset() (pages int, err error) {
	if m.high > m.image.size+overgrownBytes {
		if err := m.giveBack(m.image.size, m.high); err != nil {
			return 0, err
		}
		m.high = m.image.size
	}
	if pages, err = m.system.find(m, max(m.high, m.image.size), (*mapped).put); err != nil {
		return 0, err
	}
	m.high, m.touched = m.image.size, uint64(pages)*uint64(os.Getpagesize())
	if m.resets++; pages > trimPages && m.resets >= trimResets {
		return pages, m.Trim()
	}
	return pages, nil
}

// Touched implements Memory.
func (m *mapped) Touched() uint64 { return m.touched }

// Look implements Memory.
func (m *mapped) Look() {
	if m.system.pagemap < 0 {
		return
	}
	pages, err := m.system.find(m, m.high, (*mapped).pages)
	if err != nil {
		pages = 0
	}
	m.touched = uint64(pages) * uint64(os.Getpagesize())
}

// pages returns the length of a range in pages.
func (*mapped) pages(from, to uint64) int { return int((to - from) / uint64(os.Getpagesize())) }

// Trim implements Memory.
func (m *mapped) Trim() error {
	m.resets = 0
	return m.giveBack(0, uint64(len(m.all)))
}

// giveBack drops the private copies of a range: the next read finds the image, or zeros.
func (m *mapped) giveBack(from, to uint64) error {
	if from >= to {
		return nil
	}
	m.touched = 0
	if err := unix.Madvise(m.all[from:to], unix.MADV_DONTNEED); err != nil {
		return fmt.Errorf("giving memory back: %w", err)
	}
	return nil
}

// Close implements Memory.
func (m *mapped) Close() error {
	if m.all == nil {
		return nil
	}
	all := m.all
	m.all = nil
	return m.system.room.release(all)
}

// put writes the content of the image to a range of the memory, or zeros past its data, and returns its length in pages.
func (m *mapped) put(from, to uint64) int {
	if end := min(to, m.image.data); from < end {
		m.image.read(m.all[from:end], from)
	}
	if start := max(from, m.image.data); start < to {
		clear(m.all[start:to])
	}
	return m.pages(from, to)
}

// mappedTemplate is a memory whose first bytes are a file that becomes the image.
type mappedTemplate struct {
	mapped
	fd int
}

func (s *mappedSystem) template(limit uint64) (Template, error) {
	limit = max(limit, pageBytes)
	fd, err := unix.MemfdCreate("longshore-image", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	t := &mappedTemplate{mapped: mapped{system: s, image: &mappedImage{}}, fd: fd}
	if err := unix.Ftruncate(fd, int64(limit)); err != nil {
		return nil, errors.Join(fmt.Errorf("growing a memfd to %d bytes: %w", limit, err), t.Close())
	}
	if t.all, err = s.room.reserve(limit); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	if err := mapOver(t.all, fd, limit, unix.MAP_SHARED); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// Freeze implements Template. The content isn't copied: the file is cut to its size and sealed.
func (t *mappedTemplate) Freeze(size uint64) (Image, error) {
	if err := t.mapped.Close(); err != nil { // a file that is mapped for writing can't be sealed
		return nil, fmt.Errorf("unmapping the template: %w", err)
	}
	i := &mappedImage{system: t.system, fd: t.fd, size: size}
	t.fd = -1
	if err := i.seal(); err != nil {
		return nil, errors.Join(err, i.Close())
	}
	return i, nil
}

// Close implements Memory.
func (t *mappedTemplate) Close() error {
	err := t.mapped.Close()
	if t.fd >= 0 {
		err = errors.Join(err, unix.Close(t.fd))
		t.fd = -1
	}
	return err
}

// mappedImage is an image in a sealed memfd.
type mappedImage struct {
	system  *mappedSystem
	fd      int
	size    uint64
	data    uint64 // bytes of the file: those of the image but for zeros at its end that nobody has touched
	content []byte // of the file, for reading
}

// seal makes the file what it will always be, and maps it for reading.
func (i *mappedImage) seal() error {
	if err := unix.Ftruncate(i.fd, int64(i.size)); err != nil {
		return fmt.Errorf("cutting the image to %d bytes: %w", i.size, err)
	}
	if err := i.cut(); err != nil {
		return err
	}
	const seals = unix.F_SEAL_WRITE | unix.F_SEAL_GROW | unix.F_SEAL_SHRINK | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(uintptr(i.fd), unix.F_ADD_SEALS, seals); err != nil {
		return fmt.Errorf("sealing the image: %w", err)
	}
	if i.data == 0 {
		return nil
	}
	p, err := unix.MmapPtr(i.fd, 0, nil, uintptr(i.data), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return noRoom(fmt.Errorf("mapping the image: %w", err))
	}
	i.content = unsafe.Slice((*byte)(p), i.data)
	return nil
}

// cut leaves out of the file what was never touched at its end. Whoever wrote to such a page of a mapping of the file would
// make two of it: one of the file, and a private copy.
func (i *mappedImage) cut() error {
	for at := int64(0); ; {
		start, err := unix.Seek(i.fd, at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) { // there is no more
			break
		}
		if err == nil {
			at, err = unix.Seek(i.fd, start, unix.SEEK_HOLE)
		}
		if err != nil {
			return fmt.Errorf("looking for the end of the image: %w", err)
		}
		i.data = uint64(at)
	}
	if err := unix.Ftruncate(i.fd, int64(i.data)); err != nil {
		return fmt.Errorf("cutting the image to %d bytes of data: %w", i.data, err)
	}
	return nil
}

// readBytes is the size from which on a piece of the image is read, and not copied from its mapping, which would count as
// memory of the process then.
const readBytes = 1 << 20

// read fills b with the image from an offset on.
func (i *mappedImage) read(b []byte, from uint64) {
	n := 0
	if len(b) >= readBytes {
		n, _ = unix.Pread(i.fd, b, int64(from)) // what it leaves out is copied
	}
	if n = max(n, 0); n < len(b) {
		copy(b[n:], i.content[from+uint64(n):])
	}
}

// Memory implements Image.
func (i *mappedImage) Memory(limit uint64) (Memory, error) {
	all, err := i.system.room.reserve(max(limit, i.size, pageBytes))
	if err != nil {
		return nil, err
	}
	m := &mapped{system: i.system, image: i, all: all, high: i.size}
	if err := mapOver(all, i.fd, i.data, unix.MAP_PRIVATE); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// Close implements Image.
func (i *mappedImage) Close() error {
	var err error
	if i.content != nil {
		err = unix.MunmapPtr(unsafe.Pointer(&i.content[0]), uintptr(len(i.content)))
		i.content = nil
	}
	if i.fd >= 0 {
		err = errors.Join(err, unix.Close(i.fd))
		i.fd = -1
	}
	return err
}
