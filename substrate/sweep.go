package substrate

import (
	"time"

	"github.com/longshore/longshore/limits"
)

// sweepMessages bounds what one frame of a sweep moves.
const sweepMessages = 256

// setAlarm sets the alarm to when the next message becomes visible or expires.
func (c *committer) setAlarm() {
	s := c.log.state
	var next int64
	if s.delayed.len() > 0 {
		next = s.delayed.first().due
	}
	if s.expiries.len() > 0 && (next == 0 || s.expiries.first().check < next) {
		next = s.expiries.first().check
	}
	switch {
	case next == 0 || c.log.Err() != nil:
		c.alarm.Stop()
	default:
		c.alarm.Reset(max(time.Unix(0, next).Sub(c.log.now()), c.rest))
	}
}

// sweep makes visible what is due and buries what expired, a bounded number of each: the alarm brings the rest.
func (c *committer) sweep() {
	var letters []DeadLetter
	ripen := &request{bytes: sweepMessages * sweptBytes, need: needLittle, done: make(chan struct{}), plan: func(now time.Time) (frame, error) {
		if f := c.log.state.planRipen(now.UnixNano(), sweepMessages); f != nil {
			return f, nil
		}
		return nil, nil
	}}
	expire := &request{bytes: sweepMessages * sweptBytes, need: needLittle, done: make(chan struct{}), plan: func(now time.Time) (frame, error) {
		var f *expireFrame
		if f, letters = c.log.state.planExpire(now.UnixNano(), sweepMessages); f != nil {
			return f, nil
		}
		return nil, nil
	}}
	c.held = append(c.held, ripen, expire)
	c.commitAll()
	c.rest = 0
	if ripen.err != nil || expire.err != nil {
		c.rest = limits.SweepRetry // the disk is full: nothing has changed
	}
	if expire.err == nil && len(letters) > 0 && c.log.expired != nil {
		c.log.expired(letters)
	}
}

// sweptBytes bounds what one message takes in the frame of a sweep.
const sweptBytes = entryOverheadBytes + limits.ReasonBytes
