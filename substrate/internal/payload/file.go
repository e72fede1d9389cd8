package payload

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const (
	suffix        = ".pay"
	magic         = "longshrp"
	formatVersion = 1
	headerBytes   = 64
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// VersionError says that a file, whose header checks, is of a version that this program doesn't know.
type VersionError struct {
	File    string
	Version uint32
}

// Error implements error.
func (e *VersionError) Error() string {
	return fmt.Sprintf("payload: %s: version %d was written by a newer program; this one knows up to %d", e.File, e.Version, formatVersion)
}

// file is a file that is read.
type file struct {
	number uint32
	in     *os.File
	gone   bool // it is deleted, but for those who read it still; guarded by Files.mu
}

func fileName(number uint32) string { return fmt.Sprintf("%06d%s", number, suffix) }

// numberOf returns the number of the file of that name.
func numberOf(name string) (uint32, bool) {
	n, err := strconv.ParseUint(strings.TrimSuffix(filepath.Base(name), suffix), 10, 32)
	return uint32(n), err == nil && n > 0 && n < 1<<32-1 && fileName(uint32(n)) == filepath.Base(name)
}

func openFile(dir string, number uint32) (*file, error) {
	name := filepath.Join(dir, fileName(number))
	in, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("payload: %w", err)
	}
	header := make([]byte, headerBytes)
	if n, err := in.ReadAt(header, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.Join(fmt.Errorf("payload: read %s: %w", fileName(number), err), in.Close())
	} else if v := versionOf(header[:n]); v > formatVersion {
		return nil, errors.Join(&VersionError{File: fileName(number), Version: v}, in.Close())
	}
	return &file{number: number, in: in}, nil
}

func makeFile(dir string, number uint32) (*file, error) {
	in, err := os.OpenFile(filepath.Join(dir, fileName(number)), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("payload: %w", err)
	}
	return &file{number: number, in: in}, nil
}

// appendHeader appends the first page of a file.
func appendHeader(b []byte, number uint32) []byte {
	page := make([]byte, pageBytes)
	copy(page, magic)
	binary.LittleEndian.PutUint32(page[8:], formatVersion)
	binary.LittleEndian.PutUint32(page[12:], number)
	binary.LittleEndian.PutUint32(page[headerBytes-4:], crc32.Checksum(page[:headerBytes-4], castagnoli))
	return append(b, page...)
}

// versionOf returns the version that a header tells, or 0 if it does not check: then the runs have to speak for themselves.
func versionOf(header []byte) uint32 {
	if len(header) < headerBytes || string(header[:len(magic)]) != magic ||
		binary.LittleEndian.Uint32(header[headerBytes-4:]) != crc32.Checksum(header[:headerBytes-4], castagnoli) {
		return 0
	}
	return binary.LittleEndian.Uint32(header[8:])
}

func (f *file) size() (int64, error) {
	info, err := f.in.Stat()
	if err != nil {
		return 0, fmt.Errorf("payload: %w", err)
	}
	return info.Size(), nil
}

// read fills b from an offset, and lets the system read on if a run was read up to its end: who reads one mostly reads the
// next.
func (f *file) read(b []byte, off, end int64) (n int, err error) {
	n, err = f.in.ReadAt(b, off)
	if errors.Is(err, io.EOF) && n < len(b) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil && n < len(b) {
		return n, fmt.Errorf("payload: read %s at byte %d: %w", fileName(f.number), off, err)
	}
	if off+int64(len(b)) == end {
		readAhead(f.in, end)
	}
	return n, nil
}

func (f *file) sync() error {
	if err := datasync(f.in); err != nil {
		return fmt.Errorf("payload: sync %s: %w", fileName(f.number), err)
	}
	return nil
}

func (f *file) close() error { return f.in.Close() }

// output is the file that is written to.
type output struct {
	*file
	to  *os.File
	end int64 // of what is written
}

// openOutput opens a file for writing from end on, past the system's cache if it can be.
func openOutput(dir string, f *file, end int64) (*output, error) {
	name := filepath.Join(dir, fileName(f.number))
	to, err := os.OpenFile(name, os.O_WRONLY|direct, 0)
	if errors.Is(err, syscall.EINVAL) { // a file system without that
		to, err = os.OpenFile(name, os.O_WRONLY, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("payload: %w", err)
	}
	return &output{file: f, to: to, end: end}, nil
}

func (o *output) write(b []byte) error {
	if _, err := o.to.WriteAt(b, o.end); err != nil {
		return fmt.Errorf("payload: write %s: %w", fileName(o.number), err)
	}
	o.end += int64(len(b))
	return nil
}

func (o *output) close() error { return o.to.Close() }

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("payload: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("payload: sync of the folder: %w", err)
	}
	return nil
}
