package component

import (
	"fmt"
	"unicode/utf8"
)

// reader reads a region of a component. The first failure sticks: later reads return zero, so that callers look at err
// once, after their loops.
type reader struct {
	buf  []byte
	pos  int
	base int // offset of buf in the component
	err  error
}

func (r *reader) atEnd() bool { return r.pos >= len(r.buf) }

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("offset %#x: %s", r.base+r.pos, fmt.Sprintf(format, args...))
	}
	r.pos = len(r.buf)
}

func (r *reader) byte() byte {
	if r.atEnd() {
		r.fail("the section ends too early")
		return 0
	}
	r.pos++
	return r.buf[r.pos-1]
}

// u32 reads an unsigned LEB128 of at most 32 bits.
func (r *reader) u32() uint32 {
	var v uint32
	for shift := 0; ; shift += 7 {
		b := r.byte()
		if shift == 28 && b > 0x0f {
			r.fail("an integer is over 32 bits")
			return 0
		}
		v |= uint32(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
}

func (r *reader) bytes(n uint32) []byte {
	if int64(n) > int64(len(r.buf)-r.pos) {
		r.fail("%d bytes are wanted, %d are left", n, len(r.buf)-r.pos)
		return nil
	}
	r.pos += int(n)
	return r.buf[r.pos-int(n) : r.pos : r.pos]
}

// maxNameBytes bounds a name.
const maxNameBytes = 4096

func (r *reader) name() string {
	n := r.u32()
	if n > maxNameBytes {
		r.fail("a name has %d bytes, the limit is %d", n, maxNameBytes)
		return ""
	}
	b := r.bytes(n)
	if !utf8.Valid(b) {
		r.fail("a name is not UTF-8")
	}
	return string(b)
}

// externName reads the name of an import or export.
func (r *reader) externName() string {
	if kind := r.byte(); kind > 1 {
		r.fail("a name of kind %d is not supported", kind)
	}
	return r.name()
}

// count reads how many items follow, each of which takes at least one byte.
func (r *reader) count() int {
	n := r.u32()
	if int64(n) > int64(len(r.buf)-r.pos) {
		r.fail("%d items can't fit into the %d bytes that are left", n, len(r.buf)-r.pos)
		return 0
	}
	return int(n)
}

// section cuts the next section off. Its error is the caller's to look at.
func (r *reader) section() (id byte, s *reader) {
	id = r.byte()
	size := r.u32()
	base := r.base + r.pos
	return id, &reader{buf: r.bytes(size), base: base}
}
