package dump

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/longshore/longshore/limits"
)

const readAhead = 256 << 10

// Reader reads a stream and verifies it. What it returned before the end may belong to a stream that turns out to be cut or
// damaged: nothing counts before Next returned io.EOF.
type Reader struct {
	from   *bufio.Reader
	digest hash.Hash
	crc    uint32
	head   []byte
	total  Total
	record bytes.Buffer // key and value of the last record
	err    error        // of the first Next that failed, io.EOF included
}

// NewReader reads and verifies the head of a stream.
//
// Errors of this and of Next: ErrForeign, ErrCut, ErrDamaged, a *VersionError, or one of from.
func NewReader(from io.Reader) (*Reader, error) {
	r := &Reader{from: bufio.NewReaderSize(from, readAhead), digest: sha256.New()}
	return r, r.readHead()
}

// Head returns the body of the head. It belongs to the caller.
func (r *Reader) Head() []byte { return r.head }

// Total says what the stream holds, once Next returned io.EOF.
func (r *Reader) Total() Total { return r.total }

func (r *Reader) readHead() error {
	prefix := make([]byte, headPrefix)
	if err := r.read(prefix[:len(magic)]); err != nil {
		return foreignIfCut(err)
	}
	if string(prefix[:len(magic)]) != magic {
		return ErrForeign
	}
	if err := r.read(prefix[len(magic):]); err != nil {
		return err
	}
	if v := binary.LittleEndian.Uint32(prefix[8:]); v != formatVersion {
		return &VersionError{Version: v}
	}
	n := binary.LittleEndian.Uint32(prefix[12:])
	if n > maxHeadBytes {
		return r.damaged("its head")
	}
	body := make([]byte, n+crcBytes)
	if err := r.read(body); err != nil {
		return err
	}
	r.head = body[:n:n]
	r.crc = chain(0, prefix, r.head)
	if binary.LittleEndian.Uint32(body[n:]) != r.crc {
		return r.damaged("its head")
	}
	return nil
}

// foreignIfCut says of a stream that is shorter than the magic that it is none of ours.
func foreignIfCut(err error) error {
	if errors.Is(err, ErrCut) {
		return ErrForeign
	}
	return err
}

// Next returns the next record, or io.EOF after the end of a stream that is whole. The slices are valid until the next call.
func (r *Reader) Next() (key, value []byte, err error) {
	if r.err != nil {
		return nil, nil, r.err
	}
	key, value, r.err = r.next()
	return key, value, r.err
}

func (r *Reader) next() (key, value []byte, err error) {
	first, err := r.from.Peek(4)
	if err != nil {
		return nil, nil, cutIfEOF(err)
	}
	if binary.LittleEndian.Uint32(first) == 0 {
		return nil, nil, r.readEnd()
	}
	var prefix [recordPrefix]byte
	if err := r.read(prefix[:]); err != nil {
		return nil, nil, err
	}
	keyBytes, valueBytes := binary.LittleEndian.Uint32(prefix[0:]), binary.LittleEndian.Uint32(prefix[4:])
	if keyBytes > maxKeyBytes || valueBytes > limits.BackupRecordBytes {
		return nil, nil, r.damaged("record %d", r.total.Records+1)
	}
	if err := r.readRecord(int64(keyBytes) + int64(valueBytes)); err != nil {
		return nil, nil, err
	}
	body := r.record.Bytes()
	r.crc = chain(r.crc, prefix[:8], body)
	if binary.LittleEndian.Uint32(prefix[8:]) != r.crc {
		return nil, nil, r.damaged("record %d", r.total.Records+1)
	}
	r.total.Records++
	return body[:keyBytes:keyBytes], body[keyBytes:], nil
}

// readRecord reads n bytes into r.record, which grows with what is there: a length that isn't true costs nothing.
func (r *Reader) readRecord(n int64) error {
	r.record.Reset()
	got, err := io.CopyN(&r.record, r.from, n)
	r.total.Bytes += got
	r.digest.Write(r.record.Bytes())
	return cutIfEOF(err)
}

// readEnd verifies the end, and that nothing follows it.
func (r *Reader) readEnd() error {
	digest := r.digest.Sum(nil)
	end := make([]byte, endBytes)
	if err := r.read(end); err != nil {
		return err
	}
	switch {
	case binary.LittleEndian.Uint32(end[4:]) != chain(r.crc, end[:4], end[8:]):
		return r.damaged("its end")
	case binary.LittleEndian.Uint64(end[8:]) != r.total.Records:
		return r.damaged("the number of its records")
	case !bytes.Equal(end[16:], digest):
		return r.damaged("its SHA-256")
	}
	switch _, err := r.from.ReadByte(); {
	case err == nil:
		return fmt.Errorf("%w: something follows its end at byte %d", ErrDamaged, r.total.Bytes)
	case !errors.Is(err, io.EOF):
		return err
	}
	return io.EOF
}

func (r *Reader) read(b []byte) error {
	n, err := io.ReadFull(r.from, b)
	r.total.Bytes += int64(n)
	r.digest.Write(b[:n])
	return cutIfEOF(err)
}

func cutIfEOF(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrCut
	}
	return err
}

func (r *Reader) damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s does not check, before byte %d", ErrDamaged, fmt.Sprintf(format, args...), r.total.Bytes)
}
