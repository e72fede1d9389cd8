package substrate

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// need is how much of the disk a request may use up.
type need uint8

const (
	needNothing need = iota // it reads, or gives space back
	needLittle              // it changes what is there: a claim, a settlement without an outbox
	needMuch                // it stores messages
)

// space watches the free space of the log's disk. Badger maps its files into memory: if the disk is full when a page is
// written back, the process dies of SIGBUS, and again at every start. So the log stops growing before that: below low it
// takes no messages, below reserve it changes nothing but what gives space back. Whatever else writes to the disk has to
// leave the reserve alone between two commits.
type space struct {
	low, reserve uint64 // bytes
	free         func() (uint64, error)
}

// room is the free space of the disk at one moment. A disk that can't be asked is full.
type room struct {
	*space
	bytes uint64
	err   error
}

func (s *space) look() room {
	free, err := s.free()
	return room{s, free, err}
}

// admits returns ErrStorageFull if there is not enough room for what a request needs.
func (r room) admits(n need) error {
	least := r.reserve
	if n == needMuch {
		least = r.low
	}
	switch {
	case n == needNothing:
		return nil
	case r.err != nil:
		return fmt.Errorf("%w: %w", ErrStorageFull, r.err)
	case r.bytes < least:
		return fmt.Errorf("%w: %d bytes are free, fewer than the %d that are kept", ErrStorageFull, r.bytes, least)
	}
	return nil
}

// Room returns ErrStorageFull if the disk of the log has no room for messages. Whatever else writes to it asks before: it takes
// from the same reserve.
func (l *Log) Room() error { return l.space.look().admits(needMuch) }

// freeBytes returns the space that an ordinary user may still fill on the disk of dir.
func freeBytes(dir string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", dir, err)
	}
	return st.Bavail * uint64(st.Bsize), nil
}
