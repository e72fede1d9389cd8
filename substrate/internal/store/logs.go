package store

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// A log of Badger, of a memtable or of values, is a header of 20 bytes and entries:
//
//	meta u8 | meta of the user u8 | length of the key | length of the value | expiry (varints) | key | value | CRC-32C u32
//
// Badger reads it up to the first entry that doesn't check, which is how a crash leaves it. But it takes the lengths of that
// entry at their word first, and makes room for them.
const (
	logHeaderBytes   = 20
	logMaxKeyBytes   = 1 << 16 // Badger reads no further where a key is longer
	logChecksumBytes = 4
)

// verifyLogs refuses logs with an entry that is longer than its file: no crash leaves that.
func verifyLogs(dir string) error {
	names, err := filepath.Glob(filepath.Join(dir, "*.mem"))
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	values, err := filepath.Glob(filepath.Join(dir, "*.vlog"))
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if len(values) > 0 { // of these Badger reads the newest alone; their names are of one length, and numbered
		names = append(names, slices.Max(values))
	}
	for _, name := range names {
		if err := verifyLog(name); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrDamaged, filepath.Base(name), err)
		}
	}
	return nil
}

func verifyLog(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it is only read
	info, err := f.Stat()
	if err != nil {
		return err
	}
	r := logReader{in: bufio.NewReaderSize(f, 1<<20), size: info.Size(), sum: crc32.New(castagnoli)}
	_, err = io.CopyN(io.Discard, &r, logHeaderBytes)
	for err == nil {
		err = r.entry()
	}
	if errors.Is(err, io.EOF) || errors.Is(err, errLogEnds) {
		return nil
	}
	return err
}

// errLogEnds says that what follows is not an entry.
var errLogEnds = errors.New("the log ends")

// logReader reads a log, and sums up what it reads.
type logReader struct {
	in   *bufio.Reader
	sum  hash.Hash32
	at   int64
	size int64
}

// Read implements io.Reader.
func (r *logReader) Read(b []byte) (int, error) {
	n, err := r.in.Read(b)
	r.at += int64(n)
	_, _ = r.sum.Write(b[:n]) // never fails
	return n, err
}

// ReadByte implements io.ByteReader.
func (r *logReader) ReadByte() (byte, error) {
	b, err := r.in.ReadByte()
	if err == nil {
		r.at++
		_, _ = r.sum.Write([]byte{b}) // never fails
	}
	return b, err
}

// entry reads an entry, and returns errLogEnds if there is none.
func (r *logReader) entry() error {
	start := r.at
	r.sum.Reset()
	for range 2 {
		if _, err := r.ReadByte(); err != nil {
			return err
		}
	}
	var lengths [3]uint64 // and the expiry
	for i := range lengths {
		var err error
		if lengths[i], err = binary.ReadUvarint(r); err != nil {
			return err
		}
	}
	key, value := lengths[0], lengths[1]
	if key == 0 || key > logMaxKeyBytes {
		return errLogEnds
	}
	if left := r.size - r.at; value > uint64(left) || int64(key+value) > left {
		return fmt.Errorf("the entry at byte %d is longer than the file", start)
	}
	if _, err := io.CopyN(io.Discard, r, int64(key+value)); err != nil {
		return err
	}
	want := r.sum.Sum32()
	var sum [logChecksumBytes]byte
	if _, err := io.ReadFull(r, sum[:]); err != nil {
		return io.EOF
	}
	if binary.BigEndian.Uint32(sum[:]) != want {
		return errLogEnds
	}
	return nil
}
