// Package mapped keeps small files of a fixed size in memory. What is stored there is in the system's hands at once, without a
// call to the system: it survives the end of the process at whatever instant, but for what was half stored then. A crash of
// the machine may lose any of it, and any part, up to what the last Sync made durable.
//
// Whoever stores something puts a checksum beside it, and keeps what it replaces until the new is whole.
package mapped

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// SizeError says that a file does not have the size that it was made with.
type SizeError struct {
	Name        string
	Bytes, Want int64
}

// Error implements error.
func (e *SizeError) Error() string {
	return fmt.Sprintf("%s has %d bytes: want %d", e.Name, e.Bytes, e.Want)
}

// File is a mapped file. Who stores into Bytes sees to it that only one goroutine does so at a time, and none after Close;
// Sync and Close are safe for concurrent use.
type File struct {
	mu    sync.Mutex // guards bytes against Close
	name  string
	bytes []byte
}

// Create durably makes the file name with that content, in place of one that may exist. Its blocks are written, so that the
// disk can't be found full when something is stored later. A crash leaves the old file or the new.
func Create(name string, content []byte) error {
	temporary := name + ".new"
	f, err := os.OpenFile(temporary, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(temporary, name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	return SyncFolder(filepath.Dir(name))
}

// SyncFolder makes the names in a folder durable.
func SyncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Open maps a file of so many bytes. The error wraps os.ErrNotExist, or is a *SizeError, or one of the system.
func Open(name string, bytes int) (*File, error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // the mapping stays
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() != int64(bytes) {
		return nil, &SizeError{Name: name, Bytes: info.Size(), Want: int64(bytes)}
	}
	b, err := unix.Mmap(int(f.Fd()), 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", name, err)
	}
	return &File{name: name, bytes: b}, nil
}

// Bytes returns the content, valid until Close.
func (f *File) Bytes() []byte { return f.bytes }

// Sync makes what was stored durable. It does nothing after Close.
func (f *File) Sync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bytes == nil {
		return nil
	}
	if err := unix.Msync(f.bytes, unix.MS_SYNC); err != nil {
		return fmt.Errorf("sync %s: %w", f.name, err)
	}
	return nil
}

// Close unmaps the file. What was stored stays, and is not synced. Closing again does nothing.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bytes == nil {
		return nil
	}
	b := f.bytes
	f.bytes = nil
	if err := unix.Munmap(b); err != nil {
		return fmt.Errorf("unmap %s: %w", f.name, err)
	}
	return nil
}
