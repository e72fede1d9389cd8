package wasmbin

import (
	"fmt"
	"unicode/utf8"

	"github.com/longshore/longshore/limits"
)

// cursor reads a region of a module. The first failure sticks: every later read returns zero, and atEnd is true, so
// that callers check err once, after their loops.
type cursor struct {
	buf     []byte
	pos     int
	base    int // offset of buf in the module
	section string
	padded  bool // an integer was not in its shortest form
	err     error
}

func (c *cursor) atEnd() bool { return c.pos >= len(c.buf) }

func (c *cursor) left() int { return len(c.buf) - c.pos }

func (c *cursor) stop(err error) {
	if c.err == nil {
		c.err = err
	}
	c.pos = len(c.buf)
}

func (c *cursor) fail(format string, args ...any) {
	c.stop(&DecodeError{Offset: c.base + c.pos, Section: c.section, Msg: fmt.Sprintf(format, args...)})
}

func (c *cursor) refuse(feature, msg string) {
	c.stop(&DecodeError{Offset: c.base + c.pos, Section: c.section, Msg: msg, Feature: feature})
}

// check stops with a *limits.Error if actual is over the cap, and reports whether it isn't.
func (c *cursor) check(name limits.Name, actual, limit int64) bool {
	if actual <= limit {
		return true
	}
	c.stop(&limits.Error{Name: name, Limit: limit, Actual: actual, Where: fmt.Sprintf("offset %#x, %s section", c.base+c.pos, c.section)})
	return false
}

func (c *cursor) byte() byte {
	if c.pos >= len(c.buf) {
		c.fail("ends too early")
		return 0
	}
	b := c.buf[c.pos]
	c.pos++
	return b
}

func (c *cursor) bytes(n int) []byte {
	if n < 0 || n > c.left() {
		c.fail("%d bytes wanted, %d are left", n, c.left())
		return nil
	}
	b := c.buf[c.pos : c.pos+n : c.pos+n]
	c.pos += n
	return b
}

// u32 reads an unsigned LEB128 of at most 32 bits and 5 bytes.
func (c *cursor) u32() uint32 {
	if c.pos < len(c.buf) && c.buf[c.pos] < 0x80 {
		c.pos++
		return uint32(c.buf[c.pos-1])
	}
	var v uint32
	for shift := 0; ; shift += 7 {
		b := c.byte()
		if shift == 28 && b > 0x0f {
			c.fail("integer is over 32 bits")
			return 0
		}
		v |= uint32(b&0x7f) << shift
		if b < 0x80 {
			c.padded = c.padded || b == 0
			return v
		}
	}
}

// signed reads a signed LEB128 of the given number of bits: 32, 33 or 64.
func (c *cursor) signed(bits int) int64 {
	var v int64
	var sign byte // the bit before those of b
	for shift := 0; ; shift += 7 {
		b := c.byte()
		if spare := bits - shift; spare < 7 {
			// The last byte: its bits above the sign bit must repeat it.
			top := int8(b<<1) >> spare // sign bit and above, sign-extended
			if b >= 0x80 || top != 0 && top != -1 {
				c.fail("integer is over %d bits", bits)
				return 0
			}
		}
		v |= int64(b&0x7f) << shift
		if b < 0x80 {
			c.padded = c.padded || shift > 0 && (b == 0 && sign == 0 || b == 0x7f && sign != 0)
			if shift+7 < 64 && b&0x40 != 0 {
				v |= -1 << (shift + 7)
			}
			return v
		}
		sign = b & 0x40
	}
}

// count reads the length of a vector whose items take at least itemBytes each.
func (c *cursor) count(itemBytes int, name limits.Name, limit int64) int {
	n := c.u32()
	if !c.check(name, int64(n), limit) {
		return 0
	}
	if int64(n)*int64(itemBytes) > int64(c.left()) {
		c.fail("%d %s can't fit into the %d bytes that are left", n, name, c.left())
		return 0
	}
	return int(n)
}

func (c *cursor) name(limit int64) string {
	n := c.u32()
	if !c.check(NameNameBytes, int64(n), limit) {
		return ""
	}
	b := c.bytes(int(n))
	if !utf8.Valid(b) {
		c.fail("name is not UTF-8")
	}
	return string(b)
}

// sub cuts the next size bytes off as a cursor of their own.
func (c *cursor) sub(size uint32, section string) *cursor {
	base := c.base + c.pos
	buf := c.bytes(int(size))
	return &cursor{buf: buf, base: base, section: section, err: c.err}
}
