package main

import (
	"os"
	"syscall"
)

// datasync makes the file's data durable, as the journal does.
func datasync(f *os.File) error {
	return os.NewSyscallError("fdatasync", syscall.Fdatasync(int(f.Fd())))
}
