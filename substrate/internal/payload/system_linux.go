package payload

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// direct lets a file be written past the system's cache.
const direct = unix.O_DIRECT

// readAheadBytes is how much the system is asked to read on.
const readAheadBytes = 512 << 10

// readAhead asks the system to read on from off; it may refuse.
func readAhead(f *os.File, off int64) {
	_ = unix.Fadvise(int(f.Fd()), off, readAheadBytes, unix.FADV_WILLNEED) // it is only a hint
}

// datasync makes the data of f durable, and of its metadata what reading the data needs.
func datasync(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd())) // a descriptor fits an int
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
