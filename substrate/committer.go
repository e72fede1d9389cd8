package substrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/failpoint"
	"github.com/longshore/longshore/substrate/internal/journal"
)

// request asks the committer for one frame.
type request struct {
	// plan decides under Log.mu, given the state of all frames before. It returns the frame, or nil if there is nothing to
	// change, or the error to answer with.
	// A nil plan asks for nothing but that the store be brought up to date.
	plan func(now time.Time) (frame, error)
	// before, if not nil, is called first: the state is what plan will see, the store holds every frame appended, and nothing
	// is being written to it.
	before      func(checkpoint) error
	bytes       int64 // an upper bound of the frame's body
	need        need  // of the disk
	abandonable bool  // the caller may leave when its context ends
	err         error // set before done is closed
	done        chan struct{}
}

// submit hands a request to the committer and returns its error once it is answered.
func (l *Log) submit(ctx context.Context, r *request) error {
	if err := limits.Check(limits.NameBatchBytes, r.bytes, l.maxCommitBytes); err != nil {
		return err
	}
	r.done = make(chan struct{})
	select {
	case <-l.stop:
		return ErrClosed
	default:
	}
	select {
	case l.requests <- r:
	case <-ctx.Done():
		return ctx.Err()
	case <-l.stopped:
		return ErrClosed
	}
	var abandoned <-chan struct{}
	if r.abandonable {
		abandoned = ctx.Done()
	}
	select {
	case <-r.done:
		return r.err
	case <-abandoned:
		return ctx.Err()
	case <-l.stopped:
	}
	select { // the committer may have answered as its last act
	case <-r.done:
		return r.err
	default:
		return ErrClosed
	}
}

// committer is the one goroutine that changes the state and writes the journal. It gathers what was asked meanwhile into
// a group, which costs one flush.
type committer struct {
	log   *Log
	group []*request
	bytes int64      // journal bytes that the group needs at most
	held  []*request // did not fit into the last group: the first of the next
	body  []byte     // bodies of the group's frames, reused

	behind   writeBehind
	lastDone uint64        // number of the last frame appended
	alarm    *time.Timer   // of the next message that becomes visible or expires
	rest     time.Duration // after a sweep that failed
	flush    *time.Timer   // of what relaxed topics wrote
	flushing bool          // the timer runs
	chores   chores
}

func newCommitter(l *Log) committer {
	return committer{log: l, behind: newWriteBehind(l), lastDone: l.journal.Next() - 1, alarm: time.NewTimer(0), flush: stoppedTimer(), chores: newChores()}
}

func (c *committer) run() {
	defer close(c.log.stopped)
	for {
		select {
		case r := <-c.log.requests:
			c.commitAll(r)
		case err := <-c.behind.stored:
			c.behindDone(err)
		case <-c.behind.timer.C:
			c.behind.due, c.behind.armed = true, false
		case <-c.alarm.C:
			c.sweep()
		case <-c.flush.C:
			c.flushing = false
			_ = c.sync() // an error is told through Log.Err: no caller waits for this
		case <-c.chores.timer.C:
			c.chore()
		case <-c.log.stop:
			c.log.closeErr = c.close()
			return
		}
		c.writeBehind()
		c.setAlarm()
		c.armChores()
	}
}

// gather takes what waits, up to the bounds of a group: what one segment of the journal holds is one of them.
func (c *committer) gather(first *request) {
	c.group, c.bytes = append(c.group[:0], first), journal.FrameBytes(first.bytes)
	room := min(limits.CommitGroupBytes, journal.FrameBytes(c.log.maxCommitBytes))
	for len(c.group) < limits.CommitGroupRequests {
		r := c.next()
		if r == nil {
			return
		}
		if r.before != nil || c.bytes+journal.FrameBytes(r.bytes) > room {
			c.held = slices.Insert(c.held, 0, r)
			return
		}
		c.group, c.bytes = append(c.group, r), c.bytes+journal.FrameBytes(r.bytes)
	}
}

// next returns a request that waits, or nil.
func (c *committer) next() *request {
	if len(c.held) > 0 {
		r := c.held[0]
		c.held = c.held[1:]
		return r
	}
	select {
	case r := <-c.log.requests:
		return r
	default:
		return nil
	}
}

// commitAll commits the group that begins with r, then those of the requests that did not fit into it.
func (c *committer) commitAll(r *request) {
	for r != nil {
		c.gather(r)
		c.commit()
		if len(c.held) == 0 {
			return
		}
		select { // the write-behind goes on meanwhile
		case err := <-c.behind.stored:
			c.behindDone(err)
		default:
		}
		c.writeBehind()
		r = c.next()
	}
}

// commit plans, applies and appends the group, then answers it.
func (c *committer) commit() {
	err := c.prepare()
	if err == nil {
		frames, durable := c.plan()
		err = c.append(frames, durable)
	}
	_ = failpoint.Hit("commit.answer") // nothing can fail here
	for _, r := range c.group {
		if r.err == nil {
			r.err = err
		}
		close(r.done)
	}
	c.log.wake()
}

// prepare makes room: in what the write-behind owes, and in the journal. Nothing has changed if it fails.
func (c *committer) prepare() error {
	if c.log.Err() != nil {
		return ErrClosed
	}
	first := c.group[0]
	barrier := slices.ContainsFunc(c.group, func(r *request) bool { return r.plan == nil })
	if barrier || first.before != nil || c.log.state.effects.full() {
		if err := c.flushStore(false); err != nil {
			return err
		}
	}
	if first.before != nil {
		first.err = first.before(c.checkpoint())
	}
	err := c.log.journal.Reserve(c.bytes)
	if errors.Is(err, journal.ErrFull) {
		if err := c.flushStore(true); err != nil {
			return err
		}
		err = c.log.journal.Reserve(c.bytes)
	}
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w: %w", ErrStorageFull, err)
	case err != nil:
		return c.fail(err)
	}
	c.behind.unsynced += c.bytes
	return nil
}

// checkpoint describes the log as of the last frame appended.
func (c *committer) checkpoint() checkpoint {
	return checkpoint{frame: c.lastDone, nextPosition: c.log.state.nextPosition, opening: c.log.mint.opening}
}

// plan turns the group into frames and applies them. Requests that are refused get their error.
func (c *committer) plan() (frames []journal.Frame, durable bool) {
	l := c.log
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	room := l.space.look()
	next := l.journal.Next()
	var ends []int
	c.body = c.body[:0]
	for i, r := range c.group {
		if r.plan == nil || r.err != nil {
			continue
		}
		if r.err = room.admits(r.need); r.err != nil {
			continue
		}
		if l.state.effects.full() { // one batch of the store would not hold the effects of more
			c.held = append(slices.Clone(c.group[i:]), c.held...)
			c.group = c.group[:i]
			break
		}
		f, err := r.plan(now)
		if err != nil {
			r.err = err
			continue
		}
		if f == nil {
			continue
		}
		number := next + uint64(len(frames))
		f.apply(l.state, number)
		c.body = encodeFrame(c.body, f)
		ends = append(ends, len(c.body))
		frames = append(frames, journal.Frame{Number: number, Kind: f.kind()})
		durable = durable || f.durable()
	}
	start := 0
	for i, end := range ends {
		frames[i].Body = c.body[start:end]
		start = end
	}
	return frames, durable
}

func (c *committer) append(frames []journal.Frame, durable bool) error {
	if cap(c.body) > limits.CommitGroupBytes {
		defer func() { c.body = nil }()
	}
	if len(frames) == 0 {
		return nil
	}
	if err := failpoint.Hit("commit.append"); err != nil {
		return c.fail(err)
	}
	start := time.Now()
	if err := c.log.journal.Append(frames, durable); err != nil {
		return c.fail(err)
	}
	if durable {
		c.flushed(time.Since(start))
	} else {
		c.flushLater()
	}
	c.lastDone = frames[len(frames)-1].Number
	c.marked()
	return nil
}

// fail stops the log for good: the state in memory may hold what the disk does not.
func (c *committer) fail(err error) error {
	c.log.fault(err)
	return fmt.Errorf("%w: %w", ErrClosed, err)
}

// fault stops the log for good.
func (l *Log) fault(err error) {
	l.failOnce.Do(func() {
		l.failure = err
		close(l.failed)
	})
}

// close answers what was asked before Close, and leaves a store that holds everything.
func (c *committer) close() error {
	c.alarm.Stop()
	c.flush.Stop()
	c.chores.timer.Stop()
	for len(c.log.requests) > 0 {
		c.commitAll(<-c.log.requests)
	}
	if c.log.Err() == nil {
		if err := c.flushStore(true); err == nil {
			c.behind.close()
			_ = failpoint.Hit("close.stored") // nothing can fail here
			return errors.Join(c.log.journal.Close(), c.log.mark.file.Sync(), c.log.mark.file.Close(), c.log.running.close(), c.log.store.Close())
		}
	}
	c.behind.abandon()
	return errors.Join(c.log.Err(), c.log.journal.Close(), c.log.mark.file.Close(), c.log.running.close(), c.log.store.Abandon())
}

func stoppedTimer() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}
