package store

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// datasync makes the data of f durable, and of its metadata what reading the data needs.
func datasync(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd())) // a descriptor fits an int
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
