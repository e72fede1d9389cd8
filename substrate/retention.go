package substrate

import (
	"time"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/store"
)

// excess returns how many payload bytes more are pinned than the policy allows.
func (t *topic) excess(p PolicyView) int64 {
	if !p.RetentionBytes.Set {
		return 0
	}
	return max(t.pinned-p.RetentionBytes.Value, 0)
}

// planRetention says which groups pass which messages: those that became visible too long ago, and, if too many bytes are
// pinned, the oldest that groups still wait for.
func (c *committer) planRetention(t *topic, p PolicyView, excess int64, now time.Time) (list []passed, more bool, err error) {
	if len(t.groups) == 0 {
		return nil, false, nil
	}
	cutoff, err := c.tooOld(t, now.Add(-time.Duration(p.RetentionMilli.Value)*time.Millisecond))
	if err != nil {
		return nil, false, err
	}
	if cutoff == 0 && excess == 0 {
		return nil, false, nil
	}
	if err := c.flushStore(false); err != nil { // messages are counted in the store
		return nil, false, err
	}
	if excess > 0 {
		bound, err := c.tooMany(t, excess)
		return c.passAll(t, bound, true, err)
	}
	return c.passAll(t, cutoff, false, nil)
}

// tooOld returns the position below which groups are to be moved because of the age of what they wait for, or 0.
func (c *committer) tooOld(t *topic, before time.Time) (uint64, error) {
	late := false
	for _, ln := range t.groups {
		if !ln.waits(false) {
			continue
		}
		oldest := c.log.oldestFresh(ln.base())
		late = late || !oldest.IsZero() && oldest.Before(before)
	}
	if !late {
		return 0, nil
	}
	if err := c.flushStore(false); err != nil {
		return 0, err
	}
	return c.log.positionAt(t, before)
}

// waits reports whether retention may take messages from the group. One that is paused is exempt but for the bytes.
func (ln *lane) waits(bytes bool) bool {
	return ln.base().ready > 0 && !ln.closing && (bytes || !ln.paused && !ln.topic.paused)
}

// tooMany returns the position below which groups are to be moved so that excess bytes go, or as far as one step looks.
func (c *committer) tooMany(t *topic, excess int64) (uint64, error) {
	from := c.log.state.nextPosition
	for _, ln := range t.groups {
		if ln.waits(true) {
			from = min(from, ln.base().cursor)
		}
	}
	bound, looked := from, 0
	key := t.key()
	err := c.log.store.Scan(key.Messages(), key.Message(from), func(k, body []byte, err error) bool {
		e := &entry{position: store.Position(k)}
		e.fill(body, err)
		c.log.mu.Lock()
		pinned := !t.work.needs(e.position, &e.origin) && !t.isDead(e.position)
		c.log.mu.Unlock()
		if pinned {
			excess -= int64(e.origin.payloadBytes)
		}
		bound = e.position + 1
		looked++
		return excess > 0 && looked < limits.SweepPositions
	})
	return bound, closedOr(err)
}

// passAll moves the groups that wait below bound.
func (c *committer) passAll(t *topic, bound uint64, bytes bool, err error) (list []passed, more bool, _ error) {
	if err != nil {
		return nil, false, err
	}
	for name, ln := range t.groups {
		st := ln.base()
		if !ln.waits(bytes) || st.cursor >= bound {
			continue
		}
		e := passed{lane: name, cursor: bound}
		looked := 0
		err := c.log.store.Keys(t.key().Messages(), t.key().Message(st.cursor), func(key []byte) bool {
			position := store.Position(key)
			if position >= bound {
				return false
			}
			if looked++; looked > limits.SweepPositions {
				e.cursor, more = position, true
				return false
			}
			c.log.mu.Lock()
			if st.fresh(position) {
				e.count++
			}
			c.log.mu.Unlock()
			return true
		})
		if err != nil {
			return nil, false, closedOr(err)
		}
		list = append(list, e)
	}
	return list, more, nil
}
