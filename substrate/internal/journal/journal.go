// Package journal keeps numbered frames of bytes, durably and in order, in a ring of preallocated files. It knows
// nothing of what the bodies mean.
//
// A frame is appended, applied elsewhere, and forgotten: once the caller says that everything up to some number is safe
// in its store (Release), the segments that hold nothing younger are used again. After a crash, Open replays what the
// store doesn't have.
//
// # The files
//
// A segment is a file seg-<slot> of Options.SegmentBytes, zero-written once and overwritten ever after, so that syncing
// it never has to change the file's metadata. Numbers are little-endian, CRCs are CRC-32C.
//
//	offset 0       2048               4096                                      SegmentBytes
//	       +------+------------------+-------+-------+-------+- - - - - - - - -+
//	       |header| the header again | frame | frame | frame | old frames or 0 |
//	       +------+------------------+-------+-------+-------+- - - - - - - - -+
//
//	header  0  8 bytes "longshrj"      frame  0  4 CRC of bytes 4 to 31 of this header
//	        8  4 format version, 1            4  4 CRC of the body
//	       12  4 salt                         8  8 number
//	       16  8 epoch                       16  8 number up to which all frames were durable
//	       24  8 sequence                    24  4 length of the body
//	       32  8 number of first frame       28  1 format version, 1
//	       40 20 zero                        29  1 kind, the caller's own
//	       60  4 CRC of bytes 0 to 59        30  2 zero
//	                                         32  … body, then zeros to a multiple of 8
//
// The CRCs of frames start from their segment's salt, which is random and new each time the slot is used. So a frame
// that an earlier use left behind never checks, whatever its number, and no body can contain a forged frame.
//
// # Why a crash loses nothing that was durable, and brings back nothing else
//
//   - Frames are replayed up to the first one that doesn't check: a torn group leaves a prefix of whole frames.
//   - Frames that were written but not synced may survive in any subset. Of these a prefix counts: what follows the first
//     hole is dropped, and was never reported durable. A hole in frames that were durable is told apart by the number
//     that later frames carry, and is an error (DamageError), unless the store already has everything in it.
//   - A segment is begun only after the one before it was synced to its end: between segments there are no holes.
//   - Only the slot of applied frames is overwritten. If its new header is torn, neither copy checks, or the old one does,
//     which again tells of applied frames only; and nothing in the segment was durable yet.
//   - Dropped frames can't come back: Restart makes the header of a new epoch durable before anything is appended, and
//     older epochs are never replayed. Until that header is whole the old epoch counts, and all of it is applied; to that
//     end its youngest header is never the one overwritten.
//   - A group whose write or sync failed was refused to its owners: its first frame is zeroed, as well as can be, so that
//     it isn't replayed, and the journal stops for good.
//
// What can't be seen from here is the loss of the very last frames, if the disk loses what it had confirmed: nothing
// after them says that they were durable. The caller keeps a mark of its own for that, with the Epoch and what was Synced.
package journal

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/failpoint"
)

// Options says where a journal lives and how large it is. Both sizes may differ from one Open to the next.
type Options struct {
	Dir          string // must exist and be the journal's alone to write seg-0, seg-1, … in; nothing here locks it
	SegmentBytes int64  // bytes of a segment file, a multiple of 4096 from 8192 to 4 GiB; 0 means limits.JournalSegmentBytes
	Segments     int    // segments in the ring, 2 to 1024; 0 means limits.JournalSegments
	// Epoch is the youngest that is known to have begun. The frames of a journal that knows only older ones are not replayed:
	// it was put back, and its numbers may have been given to other frames since.
	Epoch uint64
}

const maxSegments = 1024

// withDefaults returns o with its zeros replaced, or an error that names what is out of range.
func (o Options) withDefaults() (Options, error) {
	if o.SegmentBytes == 0 {
		o.SegmentBytes = limits.JournalSegmentBytes
	}
	if o.Segments == 0 {
		o.Segments = limits.JournalSegments
	}
	if o.SegmentBytes < 2*pageBytes || o.SegmentBytes > maxSegmentBytes || o.SegmentBytes%pageBytes != 0 {
		return o, fmt.Errorf("journal: SegmentBytes is %d: it must be a multiple of %d from %d to %d",
			o.SegmentBytes, pageBytes, 2*pageBytes, int64(maxSegmentBytes))
	}
	if o.Segments < 2 || o.Segments > maxSegments {
		return o, fmt.Errorf("journal: Segments is %d: it must be from 2 to %d", o.Segments, maxSegments)
	}
	return o, nil
}

// Frame is one numbered record.
type Frame struct {
	Number uint64 // from 1, without gaps
	Kind   uint8  // the caller's own
	Body   []byte // valid until the replay callback, or Append, returns
}

// Journal is an open journal. One goroutine calls its methods, except Next, Release and Synced, which any goroutine may
// call at any time.
type Journal struct {
	options Options
	disk    disk
	ring    []*segment // by slot
	surplus []*segment // slots beyond the ring, from an earlier Open with more segments; until Restart
	current *segment   // where frames go; nil until Restart
	spare   *segment   // where they go when current is full; nil until Reserve finds that it is needed
	epoch   uint64     // youngest on disk
	seq     uint64     // youngest on disk
	buffer  []byte     // of the write in hand
	failure error      // set for good by the first error that leaves the disk's state unknown, or by Close

	number   atomic.Uint64 // of the next frame
	synced   atomic.Uint64 // last durable frame
	released atomic.Uint64 // last frame that is safe elsewhere
}

// Open replays to its callback, in order, every whole frame with a number above applied, and returns a journal
// positioned after the last of them. It writes nothing. The caller brings what was replayed into its store, makes that
// durable, and calls Restart.
//
// Errors: a *DamageError or *VersionError, an error of replay, wrapped, or one of the file system.
func Open(o Options, applied uint64, replay func(Frame) error) (*Journal, error) {
	return openOn(folder(o.Dir), o, applied, replay)
}

func openOn(d disk, o Options, applied uint64, replay func(Frame) error) (*Journal, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	j := &Journal{options: o, disk: d}
	if err := j.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("journal: open: %w", err), j.closeFiles())
	}
	r := replayer{applied: applied, deliver: replay}
	if j.epoch >= o.Epoch {
		if err := r.run(live(j.segments())); err != nil {
			return nil, errors.Join(err, j.closeFiles())
		}
	}
	j.number.Store(max(r.next, applied+1))
	return j, nil
}

// Fresh reports, until Restart, whether there was no journal: no file with a header that checks.
func (j *Journal) Fresh() bool { return j.epoch == 0 }

// load opens the files that are there and reads their headers.
func (j *Journal) load() error {
	for slot := range j.options.Segments {
		j.ring = append(j.ring, &segment{slot: slot})
	}
	slots, err := j.disk.list()
	if err != nil {
		return err
	}
	for _, slot := range slots {
		s := &segment{slot: slot}
		if slot < len(j.ring) {
			s = j.ring[slot]
		} else {
			j.surplus = append(j.surplus, s)
		}
		if err := s.load(j.disk); err != nil {
			return err
		}
		j.epoch = max(j.epoch, s.head.epoch)
		j.seq = max(j.seq, s.head.sequence)
	}
	return nil
}

func (j *Journal) segments() []*segment {
	return append(j.ring[:len(j.ring):len(j.ring)], j.surplus...)
}

// Restart is called once after Open, when everything replayed is safe in the store. It frees all segments and durably
// begins a new epoch, so that nothing that was left of the old one is ever replayed. On the first start it makes a
// segment; if there is no space for it the error wraps ENOSPC, and Restart may be called again.
func (j *Journal) Restart() error {
	if j.failure != nil {
		return j.failure
	}
	if j.current != nil {
		return errors.New("journal: Restart was called twice")
	}
	if err := failpoint.Hit("journal.restart"); err != nil {
		return err
	}
	oldest := j.oldest()
	if err := oldest.allocate(j.disk, j.options.SegmentBytes); err != nil {
		return err
	}
	j.epoch = max(j.epoch, j.options.Epoch) + 1
	if err := j.begin(oldest, nil); err != nil {
		return err
	}
	if err := j.datasync(oldest); err != nil {
		return err
	}
	for _, s := range j.ring {
		s.last = j.number.Load() - 1
	}
	j.released.Store(j.number.Load() - 1)
	j.synced.Store(j.number.Load() - 1)
	j.current = oldest
	if err := j.dropSurplus(); err != nil {
		return j.fail(err)
	}
	return nil
}

// oldest returns the segment to begin a new epoch in. It is not the one with the youngest header: while that stands, a
// torn header of the new epoch brings no older one back. If there is but one header, none can come back.
func (j *Journal) oldest() *segment {
	var youngest, found *segment
	headers := 0
	for _, s := range j.segments() {
		if s.head == (header{}) {
			continue
		}
		headers++
		if youngest == nil || youngest.head.before(s.head) {
			youngest = s
		}
	}
	for _, s := range j.ring {
		if s == youngest && headers > 1 {
			continue
		}
		if found == nil || j.ready(s) && !j.ready(found) || j.ready(s) == j.ready(found) && s.head.before(found.head) {
			found = s
		}
	}
	return found
}

// ready reports whether s has a file of the right size.
func (j *Journal) ready(s *segment) bool { return s.file != nil && s.size == j.options.SegmentBytes }

// dropSurplus removes the segments beyond the ring. They hold nothing that is needed.
func (j *Journal) dropSurplus() error {
	for ; len(j.surplus) > 0; j.surplus = j.surplus[1:] {
		s := j.surplus[0]
		if err := s.close(); err != nil {
			return err
		}
		if err := j.disk.remove(s.slot); err != nil {
			return fmt.Errorf("journal: remove %s: %w", s.name(), err)
		}
	}
	return nil
}

// Epoch returns the youngest epoch that has begun: after Restart that of all frames that are appended.
func (j *Journal) Epoch() uint64 { return j.epoch }

// Next returns the number of the next frame.
func (j *Journal) Next() uint64 { return j.number.Load() }

// Synced returns the number of the last frame that is durable.
func (j *Journal) Synced() uint64 { return j.synced.Load() }

// MaxFrameBytes returns the length of the largest body that Append takes.
func (j *Journal) MaxFrameBytes() int64 { return j.options.SegmentBytes - pageBytes - frameHeadBytes }

// Close makes what was appended durable, unless the journal has failed, and closes the files. Closing again does
// nothing.
func (j *Journal) Close() error {
	if errors.Is(j.failure, ErrClosed) {
		return nil
	}
	var err error
	if j.failure == nil && j.current != nil {
		err = j.Sync()
	}
	j.failure = ErrClosed
	return errors.Join(err, j.closeFiles())
}

func (j *Journal) closeFiles() error {
	var errs []error
	for _, s := range j.segments() {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}
