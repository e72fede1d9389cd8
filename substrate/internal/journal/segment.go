package journal

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/failpoint"
)

// maxSegmentBytes bounds Options.SegmentBytes, and how much of a file is read whatever its size.
const maxSegmentBytes = 4 * limits.GiB

// segment is a slot of the ring and the file in it.
type segment struct {
	slot int
	file file   // nil until the segment is first needed
	size int64  // bytes of file
	head header // as read, or as written last
	last uint64 // number of the last frame in it, or below head.first if it has none
	end  int64  // where the next frame goes; used in the current segment only
}

func (s *segment) name() string { return segmentName(s.slot) }

// load opens the segment's file and reads its header.
func (s *segment) load(d disk) error {
	f, size, err := d.open(s.slot)
	if err != nil {
		return err
	}
	s.file, s.size = f, min(size, maxSegmentBytes)
	if s.size < pageBytes {
		return nil
	}
	page := make([]byte, pageBytes)
	if _, err := f.ReadAt(page, 0); err != nil {
		return fmt.Errorf("%s: %w", s.name(), err)
	}
	head, version := parsePage(page)
	if version != formatVersion {
		return &VersionError{File: s.name(), Version: version}
	}
	s.head = head
	return nil
}

// allocate makes the segment's file, in place of one of another size.
func (s *segment) allocate(d disk, bytes int64) error {
	if s.file != nil && s.size == bytes {
		return nil
	}
	if err := s.close(); err != nil {
		return err
	}
	if err := failpoint.Hit("journal.create"); err != nil {
		return err
	}
	f, err := d.create(s.slot, bytes)
	if err != nil {
		return fmt.Errorf("journal: create %s: %w", s.name(), err)
	}
	s.file, s.size, s.head = f, bytes, header{}
	return nil
}

func (s *segment) close() error {
	if s.file == nil {
		return nil
	}
	f := s.file
	s.file, s.size = nil, 0
	if err := f.Close(); err != nil {
		return fmt.Errorf("journal: close %s: %w", s.name(), err)
	}
	return nil
}

// frameReader reads the frames of a segment through a window that moves over the file.
type frameReader struct {
	segment *segment
	window  []byte
	start   int64 // offset of window in the file
}

// windowBytes is how much a frameReader reads at a time; a longer frame is read in one piece.
const windowBytes = 1 << 20

// at returns n bytes of the segment from off, valid until the next call, or nil if the segment ends before.
func (r *frameReader) at(off, n int64) ([]byte, error) {
	if off+n > r.segment.size {
		return nil, nil
	}
	if i := off - r.start; i >= 0 && i+n <= int64(len(r.window)) {
		return r.window[i : i+n], nil
	}
	want := min(max(n, windowBytes), r.segment.size-off)
	if int64(cap(r.window)) < want {
		r.window = make([]byte, want)
	}
	r.window, r.start = r.window[:want], off
	if n, err := r.segment.file.ReadAt(r.window, off); n < len(r.window) {
		r.window = r.window[:0]
		if errors.Is(err, io.EOF) { // the file shrank since it was opened
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("read %s at byte %d: %w", r.segment.name(), off, err)
	}
	return r.window[:n], nil
}

// frame reads the frame at off if it is whole and its number is the one wanted; else ok is false. Nothing that the file
// says is trusted, and nothing allocated for it, before the CRC of the frame's header has checked.
func (r *frameReader) frame(off int64, want uint64) (f Frame, ok bool, err error) {
	b, err := r.at(off, frameHeadBytes)
	if b == nil {
		return Frame{}, false, err
	}
	h, ok := parseHead(b, r.segment.head.salt, want, want)
	if !ok {
		return Frame{}, false, nil
	}
	if h.version != formatVersion {
		return Frame{}, false, &VersionError{File: r.segment.name(), Offset: off, Version: uint32(h.version)}
	}
	body, err := r.at(off+frameHeadBytes, int64(h.length))
	if err != nil || body == nil && h.length > 0 {
		return Frame{}, false, err
	}
	if crc32.Update(r.segment.head.salt, castagnoli(), body) != h.bodyCRC {
		return Frame{}, false, nil
	}
	return Frame{Number: h.number, Kind: h.kind, Body: body}, true, nil
}

// scan looks from off for the next frame header that checks and has a number of at least low. It returns at < 0 if there
// is none.
func (r *frameReader) scan(off int64, low uint64) (h frameHead, at int64, err error) {
	high := r.segment.head.first + uint64(r.segment.size)/frameHeadBytes // a size is not negative
	for ; ; off += frameAlignBytes {
		b, err := r.at(off, frameHeadBytes)
		if b == nil {
			return frameHead{}, -1, err
		}
		h, ok := parseHead(b, r.segment.head.salt, low, high)
		if ok {
			return h, off, nil
		}
	}
}
