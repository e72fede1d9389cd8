package substrate

import (
	"slices"
	"time"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/store"
)

// The chores drop messages that no lane needs any more, move groups that do not keep up past what retention takes from
// them, and take apart lanes that ended. Each step looks at a bounded number of messages and is an ordinary frame; while
// there is more to do, the next step comes at once, after what was asked meanwhile.

// chores is the committer's part that does them.
type chores struct {
	timer *time.Timer
	armed bool
	marks map[*topic][]keepMark // of topics whose messages are kept for a while, by time

	erasure *store.Erasure // of the tenant that is being erased now; nil if none was begun since Open
}

func newChores() chores { return chores{timer: stoppedTimer(), marks: map[*topic][]keepMark{}} }

// armChores sets the timer if a topic has to be looked at.
func (c *committer) armChores() {
	if !c.chores.armed && len(c.log.state.watched) > 0 && c.log.Err() == nil {
		c.chores.timer.Reset(limits.SweepInterval)
		c.chores.armed = true
	}
}

// chore does one step for each topic that is watched.
func (c *committer) chore() {
	c.chores.armed = false
	more := false
	for t := range c.log.state.watched {
		if c.log.Err() != nil {
			return
		}
		more = c.choreOf(t) || more
	}
	if more {
		c.chores.timer.Reset(0)
		c.chores.armed = true
	}
}

// choreOf does one step for a topic, and reports whether there is more to do. A step that fails is tried again later.
func (c *committer) choreOf(t *topic) (more bool) {
	ended, idle := t.toDismantle()
	if ended != nil {
		c.log.mu.Lock()
		f, err := c.log.planDismantle(ended)
		c.log.mu.Unlock()
		return err == nil && c.commitChore(f)
	}
	if idle {
		delete(c.log.state.watched, t)
		delete(c.chores.marks, t)
		return false
	}
	f, more, err := c.planSweep(t)
	if err != nil || f == nil {
		return false
	}
	return c.commitChore(f) && more
}

// toDismantle returns a lane of the topic that has to be taken apart, or nil, and whether there is nothing to look at.
func (t *topic) toDismantle() (ended *lane, idle bool) {
	t.eachLane(func(ln *lane) bool {
		if ln.ended() {
			ended = ln
		}
		return ended == nil
	})
	return ended, ended == nil && len(t.groups) == 0 && t.unswept.from >= t.unswept.to && len(t.keys.order) == 0
}

// commitChore commits a frame that was planned for the state as it is, and reports whether that succeeded.
func (c *committer) commitChore(f frame) bool {
	r := &request{bytes: choreBytes, need: needNothing, done: make(chan struct{}), plan: func(time.Time) (frame, error) { return f, nil }}
	c.held = slices.Insert(c.held, 0, r) // before anything else changes the state
	c.commitAll()
	return r.err == nil
}

// choreBytes bounds the frame of a chore.
const choreBytes = entryOverheadBytes + limits.SweepPositions*parkedBytes + limits.GroupsPerTopic*(limits.GroupBytes+32) + unfenceBytes

// planSweep returns the next step of the retention, or, if that has nothing to do, of the sweep. While too many bytes are
// stored, what nobody needs goes first, also if it is kept for a while: only then groups lose something.
func (c *committer) planSweep(t *topic) (f *sweepFrame, more bool, err error) {
	l := c.log
	l.mu.Lock()
	policy := *l.admission.view(l.state, t.name)
	l.mu.Unlock()
	now := l.now()
	excess := t.excess(policy)
	if excess > 0 && t.unswept.from < t.unswept.to {
		return c.planDrop(t, t.unswept, nil, excess)
	}
	passed, more, err := c.planRetention(t, policy, excess, now)
	if err != nil {
		return nil, false, err
	}
	if len(passed) > 0 {
		return &sweepFrame{name: t.name, passed: passed}, true, nil
	}
	f, moreSwept, err := c.planCollect(t, time.Duration(policy.KeepMilli.Value)*time.Millisecond, now)
	if t.keys.stale(now.UnixNano()) && err == nil {
		if f == nil {
			f = &sweepFrame{name: t.name}
		}
		f.keys, moreSwept = now.UnixNano(), true
	}
	return f, more || moreSwept, err
}
