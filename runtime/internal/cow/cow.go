package cow

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/longshore/longshore/limits"
)

// Method is a way to set a memory back to its image.
type Method uint8

// The methods, the fastest first. The package comment explains them.
const (
	Scan Method = iota
	Pagemap
	Copy
	Heap
)

// String returns the method as logs name it.
func (m Method) String() string {
	switch m {
	case Scan:
		return "pagemap-scan"
	case Pagemap:
		return "pagemap"
	case Copy:
		return "copy"
	case Heap:
		return "heap-copy"
	}
	return fmt.Sprintf("method %d", uint8(m))
}

// pageBytes is the unit of all sizes: a page of linear memory, and a multiple of the pages of every processor.
const pageBytes = 64 << 10

// Memory is the linear memory of one instance at a time, as wazero's experimental.LinearMemory. It is not safe for
// concurrent use.
type Memory interface {
	// Reallocate returns the first size bytes, or nil if that is over the limit. After Publish it returns so many bytes
	// as Publish was given, once.
	Reallocate(size uint64) []byte
	// Publish makes the next Reallocate return size bytes, whatever it is asked for: a memory of wazero can't be made
	// smaller in any other way.
	Publish(size uint64)
	// Free does nothing: whoever made the memory closes it.
	Free()
	// Reset makes the content that of the image, and zero past it. It returns how many pages of the processor it wrote.
	// After an error the content is undefined, and the memory can only be closed. Views stay valid.
	Reset() (pages int, err error)
	// Touched returns how many bytes are known to be in pages of their own, so that writing to them is no work for the
	// kernel: what Reset or Look found, and what was not given back to the kernel since.
	Touched() uint64
	// Look finds out what Touched returns. It takes some microseconds. What it can't find counts as not there.
	Look()
	// Trim gives the memory of a memory that was reset back to the kernel, as far as that can be.
	Trim() error
	// Close gives everything back. No view may be used afterwards.
	Close() error
}

// Template is a memory that begins without content and becomes an image.
type Template interface {
	Memory
	// Freeze makes an image of the first size bytes. The template can only be closed afterwards.
	Freeze(size uint64) (Image, error)
}

// Image is a content that memories start from. It never changes. It is safe for concurrent use.
type Image interface {
	// Memory returns a memory that holds the image and may grow to limit bytes.
	Memory(limit uint64) (Memory, error)
	// Close gives the image back. Its memories must have been closed before.
	Close() error
}

// System makes memories by one method. It is safe for concurrent use.
type System struct {
	method Method
	impl   system
}

// system is how a System does it.
type system interface {
	template(limit uint64) (Template, error)
	bound(bytes int64)
	close() error
}

// ErrNoRoom says that there is no address space for one more memory. There will be once another one is closed.
var ErrNoRoom = errors.New("no room for another memory")

// Open returns a System with the first of the methods that works here; without any it tries all of them.
func Open(methods ...Method) (*System, error) {
	if len(methods) == 0 {
		methods = []Method{Scan, Pagemap, Copy, Heap}
	}
	var errs []error
	for _, m := range methods {
		s, err := openMethod(m)
		if err == nil {
			return s, nil
		}
		errs = append(errs, fmt.Errorf("memory by %s: %w", m, err))
	}
	return nil, errors.Join(errs...)
}

func openMethod(m Method) (*System, error) {
	impl, err := open(m)
	if err != nil {
		return nil, err
	}
	s := &System{method: m, impl: impl}
	s.Bound(limits.ReservedBytes)
	if err := s.probe(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Method returns the method.
func (s *System) Method() Method { return s.method }

// Bound sets how much address space all memories may take together, instead of limits.ReservedBytes. Of what the process
// may map it is half at most. Memories on the heap have no such bound.
func (s *System) Bound(bytes int64) { s.impl.bound(bytes) }

// Template returns a memory of zeros that may grow to limit bytes.
func (s *System) Template(limit uint64) (Template, error) { return s.impl.template(limit) }

// Close gives back what the System holds. Its memories must have been closed before.
func (s *System) Close() error { return s.impl.close() }

// probe sees whether a memory comes back to its image, and finds no more pages than were written.
func (s *System) probe() (err error) {
	const pages, limit = 2, 4
	t, err := s.Template(limit * pageBytes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	content := t.Reallocate(pages * pageBytes)
	content[0], content[len(content)-1] = 1, 2
	want := bytes.Clone(content)
	image, err := t.Freeze(pages * pageBytes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, image.Close()) }()
	m, err := image.Memory(limit * pageBytes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	return s.tryReset(m, append(want, make([]byte, (limit-pages)*pageBytes)...))
}

// tryReset writes to a page of the image and to one past it, and resets the memory.
func (s *System) tryReset(m Memory, want []byte) error {
	const written = 2
	for range 2 {
		content := m.Reallocate(uint64(len(want)))
		if !bytes.Equal(content, want) { // reads all of it
			return errors.New("the memory doesn't hold its image")
		}
		content[0], content[len(content)-1] = 7, 8
		n, err := m.Reset()
		if err != nil {
			return err
		}
		if !bytes.Equal(content, want) {
			return errors.New("the memory wasn't set back to its image")
		}
		if s.method == Scan && n != written {
			return fmt.Errorf("%d pages were found, %d were written", n, written)
		}
	}
	return nil
}
