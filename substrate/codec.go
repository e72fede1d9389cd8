package substrate

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// errTruncated says that a record or a frame ends before its fields do, or holds a value that no writer makes. Checksums
// are verified before anything is decoded, so it means a fault of the program or a file of another one.
var errTruncated = errors.New("malformed record")

// formatVersion is the first byte of every record and frame. A newer one is refused, older ones have to be read for ever.
// Version 2 came with consumer groups, priorities and ordering keys, version 3 with what is stored of a topic.
const formatVersion = 3

// Integers are unsigned varints, signed ones zig-zag varints, strings and byte slices have their length before them.

func appendString[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// decoder reads what the append functions wrote. After the first fault every read returns zero and err is set.
type decoder struct {
	b      []byte
	format byte // version of the record or frame
	err    error
}

func (d *decoder) fail() {
	if d.err == nil {
		d.err = errTruncated
	}
	d.b = nil
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.fail()
		return 0
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v
}

// bytes returns the next byte slice, which aliases the input.
func (d *decoder) bytes() []byte {
	n := d.uint()
	if n > uint64(len(d.b)) {
		d.fail()
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) string() string { return string(d.bytes()) }

// count returns the number of elements that follow, each of at least size bytes: more than the input can hold is a fault.
func (d *decoder) count(size int) int {
	n := d.uint()
	if n > uint64(len(d.b)/size) {
		d.fail()
		return 0
	}
	return int(n)
}

// end returns the error of what was read, or a fault if bytes are left.
func (d *decoder) end(what string) error {
	if d.err == nil && len(d.b) > 0 {
		d.err = fmt.Errorf("%w: %d bytes left", errTruncated, len(d.b))
	}
	if d.err != nil {
		return fmt.Errorf("%s: %w", what, d.err)
	}
	return nil
}

// version reads the version byte of a record or frame and refuses one that this program doesn't know.
func (d *decoder) version(what string) error {
	v := d.byte()
	if d.err != nil {
		return fmt.Errorf("%s: %w", what, d.err)
	}
	if v == 0 || v > formatVersion {
		return fmt.Errorf("%s: version %d was written by a newer program; this one knows up to %d", what, v, formatVersion)
	}
	d.format = v
	return nil
}

func appendPositions(b []byte, positions []uint64) []byte {
	b = binary.AppendUvarint(b, uint64(len(positions)))
	for _, p := range positions {
		b = binary.AppendUvarint(b, p)
	}
	return b
}

func (d *decoder) positions() []uint64 {
	n := d.count(1)
	if n == 0 {
		return nil
	}
	list := make([]uint64, n)
	for i := range list {
		list[i] = d.uint()
	}
	return list
}
