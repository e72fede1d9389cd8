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
	// prompt, if not nil, reports whether the request may be answered once its frame is written, although the group is not
	// on disk yet, given that all messages at positions below durable are. It is asked after plan.
	prompt func(durable uint64) bool
	err    error // set before done is closed
	done   chan struct{}
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
	if err := l.queue.put(ctx, r); err != nil {
		return err
	}
	if !r.abandonable {
		<-r.done // every request in the queue is answered, also by Close
		return r.err
	}
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// committer is the one goroutine that changes the state and writes the journal. It gathers what was asked meanwhile into
// a group, which costs one flush.
type committer struct {
	log      *Log
	group    []*request
	bytes    int64      // journal bytes that the group needs at most
	answered int        // requests of the group that were answered at its end
	held     []*request // taken from the queue: they wait for the next group
	planned  []frame    // the group's frames, until tell has seen them; reused
	body     []byte     // bodies of them, reused

	behind   writeBehind
	lastDone uint64        // number of the last frame appended
	durable  uint64        // messages at positions below it are on disk
	alarm    *time.Timer   // of the next message that becomes visible or expires
	rest     time.Duration // after a sweep that failed
	flush    *time.Timer   // of what relaxed topics wrote
	flushing bool          // the timer runs
	chores   chores
	muster   muster // of the next group
}

func newCommitter(l *Log) committer {
	return committer{
		log: l, behind: newWriteBehind(l), lastDone: l.journal.Next() - 1, durable: l.state.nextPosition,
		alarm: time.NewTimer(0), flush: stoppedTimer(), chores: newChores(), muster: newMuster(),
	}
}

func (c *committer) run() {
	defer close(c.log.stopped)
	for {
		select {
		case <-c.log.queue.wake:
			c.commitAll()
		case <-c.muster.timer.C:
			c.muster.end(c.log.queue)
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
		c.erase()
		c.writeBehind()
		c.setAlarm()
		c.armChores()
	}
}

// gather moves what is held to the group, up to the bounds of a group: what one segment of the journal holds is one of
// them.
func (c *committer) gather() {
	clear(c.group)
	c.group, c.bytes = c.group[:0], 0
	room := min(limits.CommitGroupBytes, journal.FrameBytes(c.log.maxCommitBytes))
	n := 0
	for n < min(len(c.held), limits.CommitGroupRequests) {
		bytes := journal.FrameBytes(c.held[n].bytes)
		if n > 0 && (c.held[n].before != nil || c.bytes+bytes > room) {
			break
		}
		c.bytes += bytes
		n++
	}
	c.group = append(c.group, c.held[:n]...)
	c.held = slices.Delete(c.held, 0, n)
}

// commitAll commits what is held and what waits in the queue, in as many groups as it takes, and expects the next.
func (c *committer) commitAll() {
	c.muster.formed()
	for {
		if len(c.held) < limits.CommitGroupRequests {
			c.held = c.log.queue.take(c.held)
		}
		if len(c.held) == 0 {
			return
		}
		c.gather()
		c.commit()
		if len(c.held) == 0 {
			c.muster.begin(c.log.queue, c.answered)
			return
		}
		select { // the write-behind goes on meanwhile
		case err := <-c.behind.stored:
			c.behindDone(err)
		default:
		}
		c.writeBehind()
	}
}

// commit plans, applies and appends the group, then answers it.
func (c *committer) commit() {
	err := c.prepare()
	if err == nil {
		frames, durable := c.plan()
		err = c.append(frames, durable)
	}
	tailed := err == nil && c.tell()
	_ = failpoint.Hit("commit.answer") // nothing can fail here
	c.answered = 0
	for _, r := range c.group {
		if r == nil {
			continue // answered already: it may be back in the queue
		}
		if r.err == nil {
			r.err = err
		}
		close(r.done)
		c.answered++
	}
	c.log.wake()
	if tailed {
		c.log.tails.wake()
	}
}

// answerPrompt answers what need not wait for the group's flush: claims of messages that are durable don't pay for
// publishes that came with them.
func (c *committer) answerPrompt() {
	c.marked() // the numbers are given away
	for i, r := range c.group {
		if r.err == nil && r.prompt != nil && r.prompt(c.durable) {
			c.group[i] = nil
			close(r.done)
		}
	}
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
		c.planned = append(c.planned, f)
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
	if err := c.log.journal.Append(frames, durable, c.answerPrompt); err != nil {
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
	c.muster.timer.Stop()
	c.log.queue.close()
	c.commitAll()
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
