package substrate

import "time"

// oldestCached is the publish time of the first message from a cursor on, as of when so many messages were dead.
type oldestCached struct {
	cursor uint64
	dead   int64
	at     time.Time
}

// oldestReads bounds how many messages are read to find one whose record checks.
const oldestReads = 8

// oldest returns when the oldest message that a lane is not done with was published, or zero. Those that are parked don't
// count: what they wait for is older.
func (l *Log) oldest(ln *lane) time.Time {
	oldest := l.oldestFlight(ln)
	for _, st := range l.streamsOf(ln) {
		if at := l.oldestFresh(st); !at.IsZero() && (oldest.IsZero() || at.Before(oldest)) {
			oldest = at
		}
	}
	return oldest
}

func (l *Log) oldestFlight(ln *lane) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ln.ages.len() == 0 {
		return time.Time{}
	}
	id := ln.ages.first().flight.origin.id
	if id == (messageID{}) {
		return time.Time{} // its record doesn't check
	}
	return id.time()
}

func (l *Log) streamsOf(ln *lane) []*stream {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]*stream(nil), ln.streams...)
}

// oldestOf returns the publish time of the first entry whose record checks, or zero.
func oldestOf(entries []*entry) time.Time {
	for _, e := range entries {
		if e.origin.id != (messageID{}) {
			return e.origin.id.time()
		}
	}
	return time.Time{}
}

// oldestFresh returns the publish time of the first message that was never claimed, or zero. It reads a few
// messages, once for each place of the cursor.
func (l *Log) oldestFresh(st *stream) time.Time {
	l.mu.Lock()
	if st.ready == 0 {
		l.mu.Unlock()
		return time.Time{}
	}
	if at := oldestOf(st.window); !at.IsZero() {
		l.mu.Unlock()
		return at
	}
	cached, now := st.oldest, oldestCached{cursor: st.cursor, dead: st.lane.deadN}
	l.mu.Unlock()
	if now.at = cached.at; cached == now && !now.at.IsZero() {
		return now.at
	}
	entries, err := l.freshFrom(st, now.cursor, oldestReads)
	now.at = oldestOf(entries)
	if err != nil || now.at.IsZero() {
		return time.Time{} // closed, claimed since, or no record checks
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	st.oldest = now
	return now.at
}
