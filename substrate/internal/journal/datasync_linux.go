package journal

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Datasync syncs the file's data, and of its metadata only what reading the data needs.
func (f osFile) Datasync() error {
	for {
		err := unix.Fdatasync(int(f.Fd())) // a descriptor fits an int
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
