package journal

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// replayer gives the frames of the live segments to its callback.
type replayer struct {
	applied uint64
	next    uint64 // number of the next frame; frames below it were given, or are applied
	deliver func(Frame) error
}

// live returns the segments of the youngest epoch, by sequence. What older epochs hold is in the store: a Restart came
// after.
func live(all []*segment) []*segment {
	var epoch uint64
	for _, s := range all {
		epoch = max(epoch, s.head.epoch)
	}
	var segments []*segment
	for _, s := range all {
		if epoch > 0 && s.head.epoch == epoch {
			segments = append(segments, s)
		}
	}
	slices.SortFunc(segments, func(a, b *segment) int { return cmp.Compare(a.head.sequence, b.head.sequence) })
	return segments
}

// run replays segments, which are in order. A segment was begun only after the one before it was durable to its last
// frame: so a gap between two is damage, and a gap in the last is one only if a later frame says that it was durable.
func (r *replayer) run(segments []*segment) error {
	if len(segments) == 0 {
		return nil
	}
	r.next = segments[0].head.first
	if r.next > r.applied+1 {
		return &DamageError{File: segments[0].name(), Offset: pageBytes, From: r.applied + 1, To: r.next - 1}
	}
	for i, s := range segments {
		if i+1 == len(segments) {
			_, err := r.segment(s, math.MaxUint64)
			return err
		}
		following := segments[i+1].head.first
		if following < s.head.first {
			return &DamageError{File: segments[i+1].name(), Offset: 0, From: following, To: s.head.first}
		}
		if following <= r.applied+1 {
			r.next = following
			continue
		}
		stop, err := r.segment(s, following)
		if err != nil {
			return err
		}
		if r.next != following {
			return &DamageError{File: s.name(), Offset: stop, From: r.next, To: following - 1}
		}
	}
	return nil
}

// segment replays the frames of s with numbers below limit, and returns the offset where it stopped.
func (r *replayer) segment(s *segment, limit uint64) (stop int64, err error) {
	reader := frameReader{segment: s}
	off := int64(pageBytes)
	for r.next < limit {
		f, ok, err := reader.frame(off, r.next)
		if err != nil {
			return off, err
		}
		if !ok {
			at, err := r.resume(&reader, off)
			if at < 0 || err != nil {
				return off, err
			}
			off = at
			continue
		}
		if f.Number > r.applied {
			if err := r.deliver(f); err != nil {
				return off, fmt.Errorf("journal: replay frame %d: %w", f.Number, err)
			}
		}
		r.next++
		off += FrameBytes(int64(len(f.Body)))
	}
	return off, nil
}

// resume decides what the unreadable frame at off is. If all frames that are missing are applied, it moves next to the
// frame after them and returns its offset. If some were durable and are needed, it returns a DamageError. Else the log
// ends here, as a crash leaves it: what follows was never durable, and at is below 0.
func (r *replayer) resume(reader *frameReader, off int64) (at int64, err error) {
	for from := off + frameAlignBytes; ; from = at + frameHeadBytes {
		var h frameHead
		h, at, err = reader.scan(from, r.next+1)
		if at < 0 || err != nil {
			return -1, err
		}
		if h.number <= r.applied+1 {
			r.next = h.number
			return at, nil
		}
		if h.durable > r.applied && h.durable >= r.next {
			return -1, &DamageError{File: reader.segment.name(), Offset: off, From: r.next, To: h.durable}
		}
	}
}
