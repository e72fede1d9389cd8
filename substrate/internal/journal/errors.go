package journal

import (
	"errors"
	"fmt"
)

// ErrFull is returned by Reserve while every segment still holds frames that were not released. It is not final: the
// caller waits until its write-behind released more, and asks again.
var ErrFull = errors.New("journal: all segments hold frames that are not applied yet")

// ErrClosed is returned by every call after Close.
var ErrClosed = errors.New("journal: closed")

// DamageError says that frames which were once durable can't be read any more, and that they are needed: what follows
// them must not be applied without them. A torn tail, the usual trace of a crash, is never reported as damage.
type DamageError struct {
	File     string // segment file, a name inside Options.Dir
	Offset   int64  // byte in File where reading stopped
	From, To uint64 // numbers of the missing frames, both inclusive
}

// Error implements error.
func (e *DamageError) Error() string {
	return fmt.Sprintf("journal: frames %d to %d are missing: reading stopped at byte %d of %s", e.From, e.To, e.Offset, e.File)
}

// VersionError says that a file was written by a later release in a format that this one doesn't know.
type VersionError struct {
	File    string // segment file, a name inside Options.Dir
	Offset  int64  // byte in File: 0 for the segment's header, else a frame
	Version uint32 // as found; this release reads version 1
}

// Error implements error.
func (e *VersionError) Error() string {
	return fmt.Sprintf("journal: %s has format version %d at byte %d, this release reads version %d", e.File, e.Version, e.Offset, formatVersion)
}
