package substrate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/journal"
)

// openJournal replays the journal, checks that its end is there, brings the store up to date, and begins the journal anew
// with numbers that were never given away.
func (r *recovery) openJournal(o Options, k *known) (*journal.Journal, error) {
	dir := filepath.Join(o.Dir, "journal")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	jo := journal.Options{Dir: dir, SegmentBytes: o.SegmentBytes, Segments: limits.JournalSegments}
	if !k.accepted {
		jo.Epoch = k.mark.epoch
	}
	j, err := journal.Open(jo, r.checkpoint.frame, r.replay)
	if err != nil {
		return nil, err
	}
	if err := r.checkEnd(k, j.Fresh()); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	if !k.accepted {
		if err := r.checkAhead(); err != nil {
			return nil, errors.Join(err, j.Close())
		}
	}
	r.state.nextPosition = max(r.state.nextPosition, k.given.position)
	r.checkpoint.opening = max(r.checkpoint.opening, k.given.opening)
	if err := r.finish(j); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	if k.given.written <= r.checkpoint.frame {
		return j, nil
	}
	// The store may not say that it has more frames than were replayed while the old epoch counts: what comes after a gap in
	// that must stay out. So the numbers are skipped in a second step, with an epoch that holds nothing.
	if err := j.Close(); err != nil {
		return nil, err
	}
	return r.skipNumbers(jo, k.given.written)
}

// checkEnd returns an error if the journal, or its end, is gone. A log that was killed before its first frame may have no
// journal yet.
func (r *recovery) checkEnd(k *known, fresh bool) error {
	last := max(r.checkpoint.frame, k.mark.durable)
	if fresh && last > 0 && !k.accepted {
		return fmt.Errorf("%w: the store has the frames up to %d, frames up to %d were on disk, and there is no journal to tell of later ones; "+
			"to go on without it, rename %s to %s", ErrJournalMissing, r.checkpoint.frame, last, filepath.Join(k.dir, markName), acceptedName)
	}
	return k.check(r.checkpoint.frame)
}

// skipNumbers opens a journal without frames again, so that its next frame is the one after last.
func (r *recovery) skipNumbers(jo journal.Options, last uint64) (*journal.Journal, error) {
	r.checkpoint.frame = last
	if err := errors.Join(r.flush(), r.store.Sync()); err != nil {
		return nil, err
	}
	j, err := journal.Open(jo, last, r.replay)
	if err != nil {
		return nil, err
	}
	if err := j.Restart(); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}
