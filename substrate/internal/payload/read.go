package payload

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/longshore/longshore/substrate/internal/failpoint"
)

// Numbers returns the numbers of the files that are there.
func (f *Files) Numbers() []uint32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	var numbers []uint32
	for number, in := range f.files {
		if !in.gone {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// Size returns how long a file is.
func (f *Files) Size(number uint32) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	in := f.files[number]
	if in == nil {
		return 0, fmt.Errorf("payload: %s: %w", fileName(number), os.ErrNotExist)
	}
	return in.size()
}

// Remove deletes a file, but not for those who pinned the files before. That no place names it any more has to be durable,
// if places are. The file that is written to stays.
func (f *Files) Remove(number uint32) error {
	f.mu.Lock()
	in := f.files[number]
	f.mu.Unlock()
	if in == nil || in.gone || f.out != nil && f.out.number == number {
		return nil
	}
	if err := failpoint.Hit("payload.remove"); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(f.dir, fileName(number))); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("payload: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	in.gone = true
	return f.drop(f.pins.retire(in))
}

// drop closes files that nobody reads any more. f.mu is held.
func (f *Files) drop(gone []*file) error {
	var errs []error
	for _, in := range gone {
		delete(f.files, in.number)
		errs = append(errs, in.close())
	}
	return errors.Join(errs...)
}

// Pin keeps all files that are there until the function that it returns is called, once.
func (f *Files) Pin() (unpin func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.pins.pin()
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		_ = f.drop(f.pins.unpin(g)) // they were only read, and are deleted
	}
}

// Read reads n bytes of a run from an offset in it into b, which it returns with another length, and anew if it is too
// small. Of what is missing, os.ErrNotExist or io.ErrUnexpectedEOF tells; it returns what there is. The files are pinned.
func (f *Files) Read(b []byte, p Place, from, n int) ([]byte, error) {
	f.mu.Lock()
	in := f.files[p.File]
	f.mu.Unlock()
	if in == nil {
		return nil, fmt.Errorf("payload: %s: %w", fileName(p.File), os.ErrNotExist)
	}
	if from < 0 || n < 0 || from+n > p.Bytes {
		return nil, fmt.Errorf("payload: bytes %d to %d of a run of %d", from, from+n, p.Bytes)
	}
	if cap(b) < n {
		b = make([]byte, n)
	}
	got, err := in.read(b[:n], p.Offset+int64(from), p.Offset+int64(p.Bytes))
	return b[:got], err
}

// Bytes returns what the files take on the disk.
func (f *Files) Bytes() (bytes int64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, in := range f.files {
		var s syscall.Stat_t
		if err := syscall.Fstat(int(in.in.Fd()), &s); err != nil {
			return 0, fmt.Errorf("payload: %s: %w", fileName(in.number), err)
		}
		bytes += s.Blocks * 512
	}
	return bytes, nil
}
