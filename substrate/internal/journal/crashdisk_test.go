package journal

import (
	"errors"
	"io"
	"slices"
)

var errInjected = errors.New("injected fault")

// crashDisk is a disk in memory that knows what was synced. A power cut keeps any part of what was not.
type crashDisk struct {
	files     map[int]*crashFile
	full      bool // create fails
	failWrite int  // the write after so many fails, half done; below 0 never
	failSync  int  // the sync after so many fails; below 0 never
	syncs     int
}

type crashFile struct {
	disk    *crashDisk
	data    []byte        // as a process sees it
	durable []byte        // as the platter has it
	pending []crashedBits // written since the last sync, in order
}

// crashedBits is a piece of a write that a power cut keeps or loses whole.
type crashedBits struct {
	off   int64
	bytes []byte
}

const crashPieceBytes = 24 // no divisor of anything: cuts go through headers, frames and padding

func newCrashDisk() *crashDisk {
	return &crashDisk{files: map[int]*crashFile{}, failWrite: -1, failSync: -1}
}

func (d *crashDisk) list() ([]int, error) {
	var slots []int
	for slot := range d.files {
		slots = append(slots, slot)
	}
	return slots, nil
}

func (d *crashDisk) open(slot int) (file, int64, error) {
	f := d.files[slot]
	return f, int64(len(f.data)), nil
}

func (d *crashDisk) create(slot int, bytes int64) (file, error) {
	if d.full {
		return nil, errInjected
	}
	d.files[slot] = &crashFile{disk: d, data: make([]byte, bytes), durable: make([]byte, bytes)}
	return d.files[slot], nil
}

func (d *crashDisk) remove(slot int) error {
	delete(d.files, slot)
	return nil
}

// powerCut loses each piece that was written and not synced unless keep says otherwise.
func (d *crashDisk) powerCut(keep func() bool) {
	slots, _ := d.list()
	slices.Sort(slots)
	for _, slot := range slots {
		f := d.files[slot]
		for _, p := range f.pending {
			if keep() {
				copy(f.durable[p.off:], p.bytes)
			}
		}
		f.pending = nil
		f.data = slices.Clone(f.durable)
	}
}

func (f *crashFile) ReadAt(b []byte, off int64) (int, error) {
	n := copy(b, f.data[min(off, int64(len(f.data))):])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *crashFile) write(b []byte, off int64) {
	copy(f.data[off:], b)
	for i := 0; i < len(b); i += crashPieceBytes {
		piece := b[i:min(i+crashPieceBytes, len(b))]
		f.pending = append(f.pending, crashedBits{off + int64(i), slices.Clone(piece)})
	}
}

func (f *crashFile) WriteAt(b []byte, off int64) (int, error) {
	if off+int64(len(b)) > int64(len(f.data)) {
		return 0, errors.New("a write beyond the end of the file")
	}
	if fires(&f.disk.failWrite) {
		f.write(b[:len(b)/2], off)
		return len(b) / 2, errInjected
	}
	f.write(b, off)
	return len(b), nil
}

// Datasync fails as Linux does: the pages are taken for clean then, and a later success says nothing about them.
func (f *crashFile) Datasync() error {
	if fires(&f.disk.failSync) {
		f.pending = nil
		return errInjected
	}
	f.disk.syncs++
	for _, p := range f.pending {
		copy(f.durable[p.off:], p.bytes)
	}
	f.pending = nil
	return nil
}

func (f *crashFile) Close() error { return nil }

// fires counts n down and reports whether it has just passed zero.
func fires(n *int) bool {
	if *n < 0 {
		return false
	}
	*n--
	return *n < 0
}
