package journal

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// Sizes and places in a segment, in bytes. The package comment draws them.
const (
	formatVersion   = 1
	pageBytes       = 4096 // header page of a segment
	headerBytes     = 64   // one copy of the header
	headerCopy      = 2048 // offset of the second copy
	frameHeadBytes  = 32
	frameAlignBytes = 8
)

const magic = "longshrj"

// castagnoli returns the table of CRC-32C, which the standard library builds once.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// header is a segment's header. The zero header means a segment that was never used.
type header struct {
	epoch    uint64 // of the journal; each Restart begins one
	sequence uint64 // of the segment, one more for each segment begun
	first    uint64 // number of the segment's first frame
	salt     uint32 // seed of the CRCs of the segment's frames
}

// before orders headers by age.
func (h header) before(o header) bool {
	if h.epoch != o.epoch {
		return h.epoch < o.epoch
	}
	return h.sequence < o.sequence
}

// page returns the header page: two copies in different sectors, so that one bad sector doesn't cost the segment.
func (h header) page() []byte {
	p := make([]byte, pageBytes)
	h.put(p[:headerBytes])
	h.put(p[headerCopy : headerCopy+headerBytes])
	return p
}

func (h header) put(b []byte) {
	copy(b, magic)
	binary.LittleEndian.PutUint32(b[8:], formatVersion)
	binary.LittleEndian.PutUint32(b[12:], h.salt)
	binary.LittleEndian.PutUint64(b[16:], h.epoch)
	binary.LittleEndian.PutUint64(b[24:], h.sequence)
	binary.LittleEndian.PutUint64(b[32:], h.first)
	binary.LittleEndian.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli()))
}

// parsePage returns the younger of the copies that check, or the zero header if none does: the segment is unused, or its
// header was torn while the segment was recycled. A copy of another format version is returned as that version.
func parsePage(p []byte) (h header, version uint32) {
	version = formatVersion
	for _, b := range [][]byte{p[:headerBytes], p[headerCopy : headerCopy+headerBytes]} {
		if !bytes.HasPrefix(b, []byte(magic)) || binary.LittleEndian.Uint32(b[60:]) != crc32.Checksum(b[:60], castagnoli()) {
			continue
		}
		if v := binary.LittleEndian.Uint32(b[8:]); v != formatVersion {
			return header{}, v
		}
		c := header{
			salt:     binary.LittleEndian.Uint32(b[12:]),
			epoch:    binary.LittleEndian.Uint64(b[16:]),
			sequence: binary.LittleEndian.Uint64(b[24:]),
			first:    binary.LittleEndian.Uint64(b[32:]),
		}
		if h.before(c) {
			h = c
		}
	}
	return h, version
}

// frameHead is the header of a frame.
type frameHead struct {
	number  uint64
	durable uint64 // all frames up to this number were durable when this one was written
	length  uint32 // bytes of the body
	bodyCRC uint32
	version uint8
	kind    uint8
}

// FrameBytes returns how many bytes of a segment a frame with a body of bodyBytes takes.
func FrameBytes(bodyBytes int64) int64 {
	n := frameHeadBytes + bodyBytes
	return (n + frameAlignBytes - 1) / frameAlignBytes * frameAlignBytes
}

// appendFrame appends the bytes of f to b.
func appendFrame(b []byte, f Frame, durable uint64, salt uint32) []byte {
	var h [frameHeadBytes]byte
	binary.LittleEndian.PutUint32(h[4:], crc32.Update(salt, castagnoli(), f.Body))
	binary.LittleEndian.PutUint64(h[8:], f.Number)
	binary.LittleEndian.PutUint64(h[16:], durable)
	binary.LittleEndian.PutUint32(h[24:], uint32(len(f.Body))) // at most MaxFrameBytes, checked by Append
	h[28] = formatVersion
	h[29] = f.Kind
	binary.LittleEndian.PutUint32(h[:], crc32.Update(salt, castagnoli(), h[4:]))
	b = append(append(b, h[:]...), f.Body...)
	pad := FrameBytes(int64(len(f.Body))) - frameHeadBytes - int64(len(f.Body))
	return append(b, make([]byte, pad)...)
}

// parseHead reads a frame's header and reports whether its number is from low to high and its CRC checks. Most bytes
// that are no header fail by their number, which costs nothing.
func parseHead(b []byte, salt uint32, low, high uint64) (frameHead, bool) {
	h := frameHead{
		bodyCRC: binary.LittleEndian.Uint32(b[4:]),
		number:  binary.LittleEndian.Uint64(b[8:]),
		durable: binary.LittleEndian.Uint64(b[16:]),
		length:  binary.LittleEndian.Uint32(b[24:]),
		version: b[28],
		kind:    b[29],
	}
	if h.number < low || h.number > high {
		return frameHead{}, false
	}
	return h, binary.LittleEndian.Uint32(b) == crc32.Update(salt, castagnoli(), b[4:frameHeadBytes])
}
