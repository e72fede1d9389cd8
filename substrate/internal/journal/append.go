package journal

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/failpoint"
)

// keepBufferBytes is the largest write buffer kept for the next group.
const keepBufferBytes = limits.CommitGroupBytes

// Reserve makes sure that the next Append has room for bytes: the sum of FrameBytes of the bodies, at most
// FrameBytes(MaxFrameBytes()), else it returns a *limits.Error. If that takes another segment, it makes one or chooses
// one that was released; it writes to no segment that holds live frames.
//
// It returns ErrFull while all segments hold frames that were not released, and an error that wraps ENOSPC if there is
// no space for a segment that isn't made yet. Neither is final: ask again.
func (j *Journal) Reserve(bytes int64) error {
	if j.failure != nil {
		return j.failure
	}
	if j.current == nil {
		return errors.New("journal: Reserve was called before Restart")
	}
	if err := limits.Check(limits.NameBatchBytes, bytes, j.options.SegmentBytes-pageBytes); err != nil {
		return err
	}
	if bytes <= j.current.size-j.current.end || j.spare != nil {
		return nil
	}
	s := j.free()
	if s == nil {
		return ErrFull
	}
	if err := failpoint.Hit("journal.allocate"); err != nil {
		return err
	}
	if err := s.allocate(j.disk, j.options.SegmentBytes); err != nil {
		return err
	}
	j.spare = s
	return nil
}

// free returns a segment that holds no live frame, one that has its file if there is such a one, or nil.
func (j *Journal) free() *segment {
	released := j.released.Load()
	var found *segment
	for _, s := range j.ring {
		if s == j.current || s.last > released {
			continue
		}
		if j.ready(s) {
			return s
		}
		if found == nil {
			found = s
		}
	}
	return found
}

// Release says that all frames up to upTo are applied and durable elsewhere. Segments that hold no others become free.
func (j *Journal) Release(upTo uint64) {
	for {
		old := j.released.Load()
		if upTo <= old || j.released.CompareAndSwap(old, upTo) {
			return
		}
	}
}

// Append writes frames, numbered Next, Next+1 and so on, in one write for each segment touched, and syncs them if
// durable. Without durable they survive a crash of the process, but not one of the machine. Reserve comes before. Between
// writing and syncing it calls written, if that is not nil.
//
// Any error is final, for this and for every later call. None of the frames counts then, and as well as can be they are
// made unreadable, so that a later Open doesn't replay them; but a disk that fails can't promise that.
func (j *Journal) Append(frames []Frame, durable bool, written func()) error {
	if j.failure != nil {
		return j.failure
	}
	fit, err := j.split(frames)
	if err != nil {
		return j.fail(err)
	}
	first, start := j.current, j.current.end
	err = j.write(frames[:fit], frames[fit:])
	if err == nil && written != nil {
		written()
	}
	if err == nil && durable {
		err = j.Sync()
	}
	if err != nil && len(frames) > 0 {
		err = errors.Join(err, j.invalidate(first, start))
	}
	return err
}

// split checks that frames may be appended, and returns how many of them go into the current segment.
func (j *Journal) split(frames []Frame) (fit int, err error) {
	if j.current == nil {
		return 0, errors.New("journal: Append was called before Restart")
	}
	fit = len(frames)
	room := j.current.size - j.current.end
	want := j.number.Load()
	for i, f := range frames {
		if f.Number != want {
			return 0, fmt.Errorf("journal: append of frame %d: its number must be %d", f.Number, want)
		}
		if err := limits.Check(limits.NameBatchBytes, int64(len(f.Body)), j.MaxFrameBytes()); err != nil {
			return 0, fmt.Errorf("journal: append of frame %d: %w", f.Number, err)
		}
		need := FrameBytes(int64(len(f.Body)))
		if need > room && fit == len(frames) && j.spare != nil {
			fit, room = i, j.spare.size-pageBytes
		}
		if need > room {
			return 0, fmt.Errorf("journal: append of frame %d: no room for %d bytes, Reserve must come before", f.Number, need)
		}
		room -= need
		want++
	}
	return fit, nil
}

// write writes here into the current segment, and there, if it is not empty, into the spare one, which becomes current.
// The full segment is synced before the first byte of the next is written: no crash leaves a hole between them.
func (j *Journal) write(here, there []Frame) error {
	if len(here) > 0 {
		if err := j.put(j.current, nil, here); err != nil {
			return err
		}
	}
	if len(there) == 0 {
		return nil
	}
	if err := j.Sync(); err != nil {
		return err
	}
	if err := failpoint.Hit("journal.switch"); err != nil {
		return j.fail(err)
	}
	j.current, j.spare = j.spare, nil
	return j.begin(j.current, there)
}

// begin overwrites the header of s, which holds no live frames, and writes its first frames.
func (j *Journal) begin(s *segment, frames []Frame) error {
	j.seq++
	s.head = header{epoch: j.epoch, sequence: j.seq, first: j.number.Load(), salt: newSalt(s.head.salt)}
	s.end = 0
	return j.put(s, s.head.page(), frames)
}

// newSalt returns a random salt that is not the old one: under another salt the CRC of the same bytes always differs.
func newSalt(old uint32) uint32 {
	for {
		var b [4]byte
		_, _ = rand.Read(b[:]) // never fails
		if salt := binary.LittleEndian.Uint32(b[:]); salt != old {
			return salt
		}
	}
}

// put writes page and frames at the end of s, as one write.
func (j *Journal) put(s *segment, page []byte, frames []Frame) error {
	b := append(j.buffer[:0], page...)
	for _, f := range frames {
		b = appendFrame(b, f, j.synced.Load(), s.head.salt)
	}
	if j.buffer = b; cap(b) > keepBufferBytes {
		j.buffer = nil
	}
	off := s.end
	s.end += int64(len(b))
	if err := failpoint.Hit("journal.write"); err != nil {
		return j.fail(err)
	}
	if _, err := s.file.WriteAt(b, off); err != nil {
		return j.fail(fmt.Errorf("journal: write %s: %w", s.name(), err))
	}
	if err := failpoint.Hit("journal.written"); err != nil {
		return j.fail(err)
	}
	j.number.Add(uint64(len(frames)))
	s.last = j.number.Load() - 1
	return nil
}

// Sync makes everything appended durable. An error is final.
func (j *Journal) Sync() error {
	if j.failure != nil {
		return j.failure
	}
	if j.current == nil || j.synced.Load() == j.number.Load()-1 {
		return nil
	}
	if err := j.datasync(j.current); err != nil {
		return err
	}
	j.synced.Store(j.number.Load() - 1)
	return nil
}

func (j *Journal) datasync(s *segment) error {
	if err := failpoint.Hit("journal.sync"); err != nil {
		return j.fail(err)
	}
	if err := s.file.Datasync(); err != nil {
		return j.fail(fmt.Errorf("journal: sync %s: %w", s.name(), err))
	}
	if err := failpoint.Hit("journal.synced"); err != nil {
		return j.fail(err)
	}
	return nil
}

// fail stops the journal for good: after a failed sync nobody knows what is on the disk, and a second sync would lie.
func (j *Journal) fail(err error) error {
	if j.failure == nil {
		j.failure = err
	}
	return err
}

// invalidate makes the frames of a failed group unreadable: those from start in the segment first, and those in the
// segment that was begun after it, if one was. That one goes first, header and all: if it can't be cleared the group is
// left as it is, since a gap before it would be damage.
func (j *Journal) invalidate(first *segment, start int64) error {
	if j.current != first {
		if err := zero(j.current, 0, pageBytes); err != nil {
			return err
		}
	}
	if start == first.end {
		return nil
	}
	return zero(first, start, frameHeadBytes)
}

// zero durably overwrites n bytes of s from off.
func zero(s *segment, off, n int64) error {
	if err := failpoint.Hit("journal.zero"); err != nil {
		return err
	}
	_, err := s.file.WriteAt(make([]byte, n), off)
	if err == nil {
		err = s.file.Datasync()
	}
	if err != nil {
		return fmt.Errorf("journal: take back a failed group from %s: %w", s.name(), err)
	}
	return nil
}
