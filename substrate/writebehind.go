package substrate

import (
	"time"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/failpoint"
)

// writeBehind carries cuts of the state into the store, one at a time. The committer owns it; its goroutine writes.
type writeBehind struct {
	log      *Log
	batches  chan *batch
	stored   chan error // one answer for each batch
	busy     bool       // a batch is being stored
	storing  *batch     // that one
	last     uint64     // the frame up to which the store held the journal before it
	unsynced int64      // journal bytes since the store was last synced on demand
	timer    *time.Timer
	armed    bool // the timer runs
	due      bool // the timer fired: what is owed has waited long enough
}

func newWriteBehind(l *Log) writeBehind {
	w := writeBehind{
		log: l, batches: make(chan *batch), stored: make(chan error, 1), timer: stoppedTimer(),
	}
	go (&keeper{log: l, batches: w.batches, stored: w.stored}).run()
	return w
}

func (w *writeBehind) close() {
	w.timer.Stop()
	close(w.batches)
	for range w.stored { // until run has ended
	}
}

// abandon ends the write-behind of a log that has failed. A database whose disk refuses may never answer: then its
// goroutine is left behind, and only the end of the process ends it.
func (w *writeBehind) abandon() {
	w.timer.Stop()
	close(w.batches)
	if !w.busy {
		return
	}
	select {
	case <-w.stored: //nolint:errcheck // the log has failed already
	case <-time.After(limits.AbandonWait):
	}
}

func (l *Log) storeBatch(b *batch) error {
	var err error
	if b.erase != nil {
		if l.housekeeping.erasing != nil {
			l.housekeeping.erasing()
		}
		b.synced, err = l.store.Erase(b.erase, l.housekeeping.eraseKeys, b.early, b.last, b.record)
		b.freed += b.erase.Bytes
	} else {
		b.synced, err = l.store.Write(b.early, b.last, b.record)
	}
	if err != nil {
		return err
	}
	if b.sync {
		if err := failpoint.Hit("behind.sync"); err != nil {
			return err
		}
		if err := l.store.Sync(); err != nil {
			return err
		}
	}
	if err := failpoint.Hit("behind.stored"); err != nil {
		return err
	}
	if b.sync || b.synced { // segments of the journal become free: nothing else tells of their frames
		if err := l.mark.file.Sync(); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b.stored()
	l.flushing = nil
	return nil
}

// evict drops the tail up to position: the store has it.
func (t *topic) evict(position uint64) {
	n := 0
	for n < len(t.tail) && t.tail[n].position <= position {
		t.tail[n] = nil
		n++
	}
	t.tail = t.tail[n:]
	t.evictions++
}

// writeBehind starts a cut if one is due and none is under way. It is called between groups, where the state is exactly
// that of the frames appended.
func (c *committer) writeBehind() {
	e := c.log.state.effects
	w := &c.behind
	switch {
	case w.busy || c.log.Err() != nil:
	case e.ops() == 0:
		w.due = false
	case w.due || e.bytes >= limits.WriteBehindBytes || e.full():
		if err := c.cut(false); err != nil {
			_ = c.fail(err) // told through Log.Err: no caller waits for this
		}
	case !w.armed:
		w.timer.Reset(limits.WriteBehindDelay)
		w.armed = true
	}
}

// cut hands the effects to the write-behind. Only what is durable in the journal may reach the store.
func (c *committer) cut(sync bool) error {
	if err := failpoint.Hit("behind.cut"); err != nil {
		return err
	}
	l, w := c.log, &c.behind
	if l.journal.Synced() < c.lastDone {
		if err := c.sync(); err != nil {
			return err
		}
	}
	l.mu.Lock()
	b := l.state.effects.cut(c.checkpoint())
	l.state.effects = newEffectsFor(len(l.state.effects.messages))
	l.flushing = b
	l.mu.Unlock()
	if e := c.chores.erasure; e != nil && !e.Done {
		b.erase = e
	}
	if b.sync = sync || w.unsynced >= l.maxCommitBytes; b.sync {
		w.unsynced = 0
	}
	w.busy, w.due, w.armed, w.storing = true, false, false, b
	w.timer.Stop()
	w.batches <- b
	return nil
}

// behindDone takes the answer of the write-behind: segments whose frames are safe in the store become free.
func (c *committer) behindDone(err error) {
	c.behind.busy = false
	if err != nil {
		_ = c.fail(err) // told through Log.Err: no caller waits for this
		return
	}
	_ = failpoint.Hit("behind.release") // nothing can fail here
	b := c.behind.storing
	c.behind.storing = nil // it holds the messages' bytes
	switch {
	case b.sync:
		c.log.journal.Release(b.frame)
	case b.synced:
		c.log.journal.Release(c.behind.last)
	}
	c.behind.last = b.frame
}

// flushStore brings the store up to date and waits for it; with sync, durably, so that the whole journal is free.
func (c *committer) flushStore(sync bool) error {
	c.await()
	if c.log.Err() == nil && (sync || c.log.state.effects.ops() > 0) {
		if err := c.cut(sync); err != nil {
			return c.fail(err)
		}
		c.await()
	}
	if c.log.Err() != nil {
		return ErrClosed
	}
	return nil
}

// await waits for the batch that is being stored.
func (c *committer) await() {
	if c.behind.busy {
		c.behindDone(<-c.behind.stored)
	}
}
