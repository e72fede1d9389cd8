package cow

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// eachRange does something to a range of a memory, and returns its length in pages.
type eachRange func(m *mapped, from, to uint64) int

// mappedSystem keeps memories in mappings of their own.
type mappedSystem struct {
	room    room
	pagemap int // file descriptor; -1 if the method needs none
	// find gives the private copies below end to each, and adds up their pages.
	find func(m *mapped, end uint64, each eachRange) (pages int, err error)
}

func open(m Method) (system, error) {
	s := &mappedSystem{pagemap: -1}
	switch m {
	case Heap:
		return heapSystem{}, nil
	case Copy:
		s.find = (*mapped).findAll
		return s, nil
	case Scan:
		s.find = (*mapped).findScanned
	case Pagemap:
		s.find = (*mapped).findRead
	default:
		return nil, errors.New("there is no such method")
	}
	var err error
	if s.pagemap, err = unix.Open("/proc/self/pagemap", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		return nil, fmt.Errorf("open /proc/self/pagemap: %w", err)
	}
	return s, nil
}

func (s *mappedSystem) bound(bytes int64) { s.room.bound(bytes) }

func (s *mappedSystem) close() error {
	if s.pagemap < 0 {
		return nil
	}
	fd := s.pagemap
	s.pagemap = -1
	return unix.Close(fd)
}
