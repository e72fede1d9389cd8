package substrate

import (
	"math"
	"time"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/store"
)

// keepMarks is how often within a topic's keep time its state is noted. A message is kept for that time, and at most a
// share of 1/keepMarks longer.
const keepMarks = 4

// keepMark says what nobody needed at a time: what lies below to, but for the exceptions.
type keepMark struct {
	at     time.Time
	to     uint64
	except positions
}

// planCollect returns the frame that drops some of the messages that nobody needs, or nil.
func (c *committer) planCollect(t *topic, keep time.Duration, now time.Time) (f *sweepFrame, more bool, err error) {
	span, except := t.unswept, positions(nil)
	if span.from >= span.to {
		return nil, false, nil
	}
	if keep > 0 {
		mark := c.ripeMark(t, keep, now)
		if mark == nil {
			return nil, false, nil
		}
		span.to, except = min(span.to, mark.to), mark.except
	}
	f, more, err = c.planDrop(t, span, except, math.MaxInt64)
	if err != nil {
		return nil, false, err
	}
	if !more && keep > 0 {
		c.chores.marks[t] = c.chores.marks[t][1:]
	}
	if len(f.items) == 0 && f.upTo <= t.unswept.from {
		return nil, false, nil
	}
	return f, more, nil
}

// planDrop returns the frame that drops what nobody needs in a span, but for the exceptions, until so many payload bytes
// are dropped, and whether there is more to look at.
func (c *committer) planDrop(t *topic, s span, except positions, bytes int64) (f *sweepFrame, more bool, err error) {
	if err := c.flushStore(false); err != nil {
		return nil, false, err
	}
	entries, all, err := c.storedIn(t, s)
	if err != nil {
		return nil, false, err
	}
	f = &sweepFrame{name: t.name, upTo: s.to}
	if !all {
		f.upTo = entries[len(entries)-1].position + 1
	}
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	for _, e := range entries {
		switch {
		case t.needed(e.position, &e.origin):
		case bytes <= 0:
			f.upTo = min(f.upTo, e.position)
			return f, true, nil
		case except.has(e.position): // nobody needs it now, but not for long enough
			f.upTo = min(f.upTo, e.position)
		default:
			f.items = append(f.items, swept{e.position, e.origin.payloadBytes, e.origin.level()})
			bytes -= int64(e.origin.payloadBytes)
		}
	}
	return f, !all, nil
}

// storedIn returns the messages of the store in a span, as far as one step looks, without their bodies, and whether these
// are all.
func (c *committer) storedIn(t *topic, s span) (entries []*entry, all bool, err error) {
	key := t.key()
	all = true
	err = c.log.store.Scan(key.Messages(), key.Message(s.from), func(k, body []byte, err error) bool {
		e := &entry{position: store.Position(k)}
		if e.position >= s.to {
			return false
		}
		if all = len(entries) < limits.SweepPositions; !all {
			return false
		}
		e.fill(body, err)
		e.body = nil
		entries = append(entries, e)
		return true
	})
	return entries, all, closedOr(err)
}

// ripeMark notes what nobody needs now, if the last note is old enough, and returns the first that is as old as keep.
func (c *committer) ripeMark(t *topic, keep time.Duration, now time.Time) *keepMark {
	marks := c.chores.marks[t]
	if len(marks) == 0 || now.Sub(marks[len(marks)-1].at) >= keep/keepMarks {
		c.log.mu.Lock()
		marks = append(marks, t.mark(now, c.log.state.nextPosition))
		c.log.mu.Unlock()
		c.chores.marks[t] = marks
	}
	if now.Sub(marks[0].at) < keep {
		return nil
	}
	return &marks[0]
}

// mark notes what nobody needs now.
func (t *topic) mark(now time.Time, next uint64) keepMark {
	m := keepMark{at: now, to: next, except: positions{}}
	t.eachLane(func(ln *lane) bool {
		if !ln.closing {
			m.to = min(m.to, ln.firstFresh(next))
		}
		for p := range ln.flights {
			m.except.add(p)
		}
		m.except.addAll(ln.parked)
		m.except.addAll(ln.dead)
		return true
	})
	return m
}
