// Package dump is the format of a backup: a stream of keys with their values that says of itself whether it is whole. It
// knows nothing of what they mean.
//
//	+------+--------+--------+- - - -+--------+-----+
//	| head | record | record |       | record | end |
//	+------+--------+--------+- - - -+--------+-----+
//
//	head    0  8 bytes "longshbk"      record  0  4 length of the key, at least 1
//	        8  4 format version, 1             4  4 length of the value
//	       12  4 length of the body            8  4 CRC
//	       16  … body, the caller's own       12  … key, then value
//	        …  4 CRC
//
//	end     0  4 zero, where a record has the length of its key
//	        4  4 CRC
//	        8  8 number of records
//	       16 32 SHA-256 of all before the end
//
// Numbers are little-endian. The CRCs are CRC-32C of all that is new since the CRC before, and begin with that one instead
// of zero: so a record checks only behind the one that it was written behind. A stream that was cut has no end, and what
// follows the end is a fault: a stream is whole, or it is refused. Nothing protects it against somebody who wants to
// forge one.
package dump

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

const (
	magic         = "longshbk"
	formatVersion = 1
	headPrefix    = 16 // magic, version, length
	crcBytes      = 4
	recordPrefix  = 12 // lengths, CRC
	endBytes      = 48
	maxHeadBytes  = 64 << 10
	maxKeyBytes   = 64 << 10 // more than the store takes
)

// Errors of Reader.
var (
	// ErrForeign says that a stream is none of this format.
	ErrForeign = errors.New("this is no backup of a log")
	// ErrCut says that a stream ends before its end.
	ErrCut = errors.New("the backup is cut short")
	// ErrDamaged says that a part of a stream does not check.
	ErrDamaged = errors.New("the backup is damaged")
)

// VersionError says that a stream was written by a newer program.
type VersionError struct{ Version uint32 }

// Error implements error.
func (e *VersionError) Error() string {
	return fmt.Sprintf("the backup has format version %d, and this program knows %d: use a newer one", e.Version, formatVersion)
}

// Total says what a whole stream holds.
type Total struct {
	Records uint64
	Bytes   int64 // of the stream
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// chain continues a CRC over more parts.
func chain(crc uint32, parts ...[]byte) uint32 {
	for _, p := range parts {
		crc = crc32.Update(crc, castagnoli, p)
	}
	return crc
}

func le32(b []byte, n uint32) []byte { return binary.LittleEndian.AppendUint32(b, n) }
