package api

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// socketUID returns the user that connected the Unix socket fd.
func socketUID(fd int) (uint32, error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, fmt.Errorf("LOCAL_PEERCRED: %w", err)
	}
	return cred.Uid, nil
}
