// Package payload keeps runs of bytes in files that are only appended to. It knows nothing of what they mean, nor which of
// them are still wanted: its caller keeps their places, and says which files are to go.
//
// It is what a value log of a database is, but for how it is written: in large pieces that don't pass through the system's
// cache, where it lets them. What is written through memory that is mapped, as Badger's value log is, waits for the disk in
// page faults, of which Go's scheduler knows nothing.
//
// # The files
//
// A file NNNNNN.pay grows to about FileBytes. Its runs lie one after the other; each write begins at a multiple of 4096.
// Numbers are little-endian, the CRC is CRC-32C.
//
//	offset 0       4096
//	       +------+-----+-----+-----+- - -+-----+- - - -
//	       |header| run | run | run | 0   | run |
//	       +------+-----+-----+-----+- - -+-----+- - - -
//
//	header  0  8 bytes "longshrp"
//	        8  4 format version, 1
//	       12  4 number of the file
//	       16 44 zero
//	       60  4 CRC of bytes 0 to 59
//
// Runs have no checksum here: whoever reads one has to know what it should be.
package payload

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"unsafe"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/failpoint"
)

// Bounds of files and of what is written at once.
const (
	FileBytes   = 64 * limits.MiB
	MaxRunBytes = bufferBytes - 2*pageBytes
	bufferBytes = 1 * limits.MiB
	pageBytes   = 4096 // of what is written to a file without the system's cache, each place and length is a multiple
)

// Place says where a run is. That of no run has File 0.
type Place struct {
	File   uint32
	Offset int64
	Bytes  int
}

// Files are the files of a folder. Pin, Read and Bytes are safe for concurrent use; the rest belongs to one goroutine.
type Files struct {
	dir    string
	next   uint32  // number of the next file
	out    *output // where runs go; nil until there is one
	buffer []byte  // of what is not written yet; its memory begins at a multiple of pageBytes
	dirty  []*file // written to since the last sync
	made   bool    // a file was made since the last sync

	mu    sync.Mutex
	files map[uint32]*file
	pins  pins
}

// Open returns the files of dir. ends says of each file that is wanted where its last run ends; a file may be missing, or
// end before.
func Open(dir string, ends map[uint32]int64) (*Files, error) {
	f := &Files{dir: dir, next: 1, files: map[uint32]*file{}, pins: newPins()}
	names, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil {
		return nil, fmt.Errorf("payload: %w", err)
	}
	for _, name := range names {
		if number, ok := numberOf(name); ok {
			if err := f.load(number); err != nil {
				return nil, errors.Join(err, f.closeFiles())
			}
		}
	}
	for number := range ends {
		f.next = max(f.next, number+1)
	}
	if err := f.goOn(ends[f.next-1]); err != nil {
		return nil, errors.Join(err, f.closeFiles())
	}
	return f, nil
}

func (f *Files) load(number uint32) error {
	in, err := openFile(f.dir, number)
	if err != nil {
		return err
	}
	f.files[number] = in
	f.next = max(f.next, number+1)
	return nil
}

// goOn chooses the youngest file to be written to, if there is room in it.
func (f *Files) goOn(end int64) error {
	in := f.files[f.next-1]
	if in == nil {
		return nil
	}
	size, err := in.size()
	if err != nil {
		return err
	}
	if end = pages(max(end, size, pageBytes)); end >= FileBytes {
		return nil
	}
	f.out, err = openOutput(f.dir, in, end)
	return err
}

// Add takes a run of n bytes, at most MaxRunBytes, which fill appends to a slice that is empty and has room for them. It is
// written by Flush at the latest.
func (f *Files) Add(n int, fill func([]byte) []byte) (Place, error) {
	if n > MaxRunBytes {
		return Place{}, fmt.Errorf("payload: a run of %d bytes: %d are the most", n, MaxRunBytes)
	}
	if f.out != nil && f.out.end+int64(len(f.buffer)+n) > FileBytes {
		if err := f.leave(); err != nil {
			return Place{}, err
		}
	}
	if f.out == nil {
		if err := f.begin(); err != nil {
			return Place{}, err
		}
	}
	if f.buffer == nil {
		f.buffer = alignedBuffer()
	}
	if len(f.buffer)+n > cap(f.buffer) {
		if err := f.write(len(f.buffer) &^ (pageBytes - 1)); err != nil {
			return Place{}, err
		}
	}
	start := len(f.buffer)
	run := fill(f.buffer[start : start : start+n])
	if len(run) != n {
		return Place{}, fmt.Errorf("payload: a run has %d bytes, not %d", len(run), n)
	}
	f.buffer = f.buffer[:start+n]
	return Place{File: f.out.number, Offset: f.out.end + int64(start), Bytes: n}, nil
}

// begin makes the next file.
func (f *Files) begin() error {
	if err := failpoint.Hit("payload.create"); err != nil {
		return err
	}
	in, err := makeFile(f.dir, f.next)
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.files[in.number] = in
	f.mu.Unlock()
	f.next++
	f.made = true
	if f.out, err = openOutput(f.dir, in, 0); err != nil {
		return err
	}
	if f.buffer == nil {
		f.buffer = alignedBuffer()
	}
	f.buffer = appendHeader(f.buffer, in.number)
	return nil
}

// leave ends the file that is written to.
func (f *Files) leave() error {
	if f.out == nil {
		return nil
	}
	err := f.Flush()
	err = errors.Join(err, f.out.close())
	f.out = nil
	return err
}

// Flush writes what was added, so that it can be read, and gives the memory for it back.
func (f *Files) Flush() error {
	if len(f.buffer) == 0 {
		return nil
	}
	n := int(pages(int64(len(f.buffer))))
	clear(f.buffer[len(f.buffer):n])
	f.buffer = f.buffer[:n]
	err := f.write(n)
	f.buffer = nil
	return err
}

// write writes the first n bytes of the buffer, a multiple of pageBytes.
func (f *Files) write(n int) error {
	if n == 0 {
		return nil
	}
	if err := failpoint.Hit("payload.write"); err != nil {
		return err
	}
	if len(f.dirty) == 0 || f.dirty[len(f.dirty)-1] != f.out.file {
		f.dirty = append(f.dirty, f.out.file)
	}
	if err := f.out.write(f.buffer[:n]); err != nil {
		return err
	}
	f.buffer = f.buffer[:copy(f.buffer, f.buffer[n:])]
	return failpoint.Hit("payload.written")
}

// Sync makes all that was flushed durable, and the names of the files.
func (f *Files) Sync() error {
	for _, in := range f.dirty {
		if err := failpoint.Hit("payload.sync"); err != nil {
			return err
		}
		if err := in.sync(); err != nil {
			return err
		}
	}
	f.dirty = f.dirty[:0]
	if !f.made {
		return nil
	}
	if err := failpoint.Hit("payload.sync-folder"); err != nil {
		return err
	}
	if err := syncFolder(f.dir); err != nil {
		return err
	}
	f.made = false
	return nil
}

// Leave lets the next run go to a new file, if number is the one that is written to.
func (f *Files) Leave(number uint32) error {
	if f.out == nil || f.out.number != number {
		return nil
	}
	return f.leave()
}

// Close writes what is left, and closes the files. Nobody reads any more.
func (f *Files) Close() error {
	err := f.leave()
	return errors.Join(err, f.closeFiles())
}

func (f *Files) closeFiles() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	if f.out != nil {
		errs = append(errs, f.out.close())
	}
	for _, in := range f.files {
		errs = append(errs, in.close())
	}
	return errors.Join(errs...)
}

// pages rounds n up to a multiple of pageBytes.
func pages(n int64) int64 { return (n + pageBytes - 1) &^ (pageBytes - 1) }

// alignedBuffer returns an empty buffer whose memory begins at a multiple of pageBytes.
func alignedBuffer() []byte {
	b := make([]byte, bufferBytes+pageBytes)
	over := int(uintptr(unsafe.Pointer(unsafe.SliceData(b))) % pageBytes) //nolint:gosec // it is only looked at where the memory begins
	start := (pageBytes - over) % pageBytes
	return b[start : start : start+bufferBytes]
}
