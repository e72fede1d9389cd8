package store

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

const (
	recordVersion = 1
	placedVersion = 2 // of what a block holds, if its records are in a file beside the database
	recordHeader  = 9 // version, length, CRC
)

// RecordHeaderBytes is what a record takes beside its body.
const RecordHeaderBytes = recordHeader

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// CorruptError says that a stored record does not check. Its bytes are never delivered.
type CorruptError struct {
	Key    []byte
	Reason string
}

// Error implements error.
func (e *CorruptError) Error() string { return fmt.Sprintf("record %q: %s", e.Key, e.Reason) }

// VersionError says that a stored record, which checks, is of a version that this program doesn't know. What begins a record
// stays the same in all versions.
type VersionError struct {
	Key     []byte
	Version uint8
}

// Error implements error.
func (e *VersionError) Error() string {
	return fmt.Sprintf("record %q: version %d was written by a newer program; this one knows up to %d", e.Key, e.Version, newestVersion(e.Key))
}

// newestVersion is that of the records under a key which this program knows.
func newestVersion(key []byte) uint8 {
	if _, _, ok := parseBlock(key); ok {
		return placedVersion
	}
	return recordVersion
}

// seal returns body as a record: version, length and a checksum over key and body, so that a value under the wrong key
// does not check either.
func seal(key, body []byte) []byte {
	return appendSeal(make([]byte, 0, recordHeader+len(body)), key, body)
}

// appendSeal appends the record to b.
func appendSeal(b, key, body []byte) []byte {
	b = append(b, recordVersion)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(body)))
	b = binary.LittleEndian.AppendUint32(b, checksum(key, body))
	return append(b, body...)
}

// open checks a record and returns its body, which aliases r.
func open(key, r []byte) ([]byte, error) {
	corrupt := func(format string, args ...any) error {
		return &CorruptError{Key: append([]byte(nil), key...), Reason: fmt.Sprintf(format, args...)}
	}
	if len(r) < recordHeader {
		return nil, corrupt("%d bytes are too few for a record", len(r))
	}
	body := r[recordHeader:]
	if n := binary.LittleEndian.Uint32(r[1:]); uint64(n) != uint64(len(body)) {
		return nil, corrupt("%d bytes, its header says %d", len(body), n)
	}
	if binary.LittleEndian.Uint32(r[5:]) != checksum(key, body) {
		return nil, corrupt("the checksum does not match")
	}
	switch {
	case r[0] > recordVersion && r[0] > newestVersion(key):
		return nil, &VersionError{Key: append([]byte(nil), key...), Version: r[0]}
	case r[0] < recordVersion:
		return nil, corrupt("there is no record version %d", r[0])
	}
	return body, nil
}

// Unchecked returns what would be the body of a record if it checked, or nil.
func Unchecked(record []byte) []byte {
	if len(record) < recordHeader {
		return nil
	}
	return record[recordHeader:]
}

func checksum(key, body []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, body)
}
