package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/longshore/longshore/substrate/internal/failpoint"
)

// disk is the folder of segment files. A segment's place in the ring is its slot. Tests put a disk with crashes and
// faults in place of the real one.
type disk interface {
	// list returns the slots that have a file.
	list() ([]int, error)
	// open opens the file of a slot and returns its size in bytes.
	open(slot int) (file, int64, error)
	// create makes the file of a slot, of bytes zero bytes, in place of one that may exist. When it returns, file and
	// name are durable and their blocks allocated; after an error the slot has the old file, or one like the new.
	create(slot int, bytes int64) (file, error)
	// remove deletes the file of a slot.
	remove(slot int) error
}

// file is an open segment file.
type file interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Datasync returns when everything written is durable. After an error nothing is known of what was written since
	// the last success, whatever a later call says.
	Datasync() error
}

// segmentName returns the name of a slot's file.
func segmentName(slot int) string { return "seg-" + strconv.Itoa(slot) }

// zeroChunkBytes is the size of the writes that fill a new segment.
const zeroChunkBytes = 1 << 20

// folder is the disk of the operating system.
type folder string

func (d folder) path(slot int) string { return filepath.Join(string(d), segmentName(slot)) }

func (d folder) list() ([]int, error) {
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return nil, err
	}
	var slots []int
	for _, e := range entries {
		digits, found := strings.CutPrefix(e.Name(), "seg-")
		slot, err := strconv.Atoi(digits)
		if found && err == nil && slot >= 0 && segmentName(slot) == e.Name() && e.Type().IsRegular() {
			slots = append(slots, slot)
		}
	}
	return slots, nil
}

func (d folder) open(slot int) (file, int64, error) {
	f, err := os.OpenFile(d.path(slot), os.O_RDWR, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return osFile{f}, info.Size(), nil
}

func (d folder) create(slot int, bytes int64) (file, error) {
	temporary := d.path(slot) + ".new"
	f, err := os.OpenFile(temporary, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	if err = fillZero(f, bytes); err == nil {
		err = os.Rename(temporary, d.path(slot))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(temporary))
	}
	if err := failpoint.Hit("journal.created"); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err = d.sync(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return osFile{f}, nil
}

func (d folder) remove(slot int) error { return os.Remove(d.path(slot)) }

// sync makes the names in the folder durable.
func (d folder) sync() error {
	f, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// fillZero writes bytes zero bytes to f and makes them, and its size, durable. Only written blocks are overwritten
// later without a change of metadata: a hole, or blocks that were merely allocated, would cost every sync more.
func fillZero(f *os.File, bytes int64) error {
	chunk := make([]byte, min(bytes, zeroChunkBytes))
	for off := int64(0); off < bytes; off += int64(len(chunk)) {
		chunk = chunk[:min(bytes-off, int64(len(chunk)))]
		if _, err := f.WriteAt(chunk, off); err != nil {
			return fmt.Errorf("allocate %d bytes: %w", bytes, err)
		}
	}
	return f.Sync()
}

// osFile is a file of the operating system.
type osFile struct{ *os.File }
