package substrate

import (
	"errors"
	"fmt"
	"slices"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/store"
)

// A message is in the tail of its topic until the write-behind has stored it, and in the store from then on. All
// positions of the tail are above all of those that only the store has.

// ahead is a view of a stream's messages from a position on, as of one moment.
type ahead struct {
	from      uint64
	stored    uint64   // the store is read up to this position
	tail      []*entry // what follows
	evictions uint64   // to tell whether the tail was cut since
	visible   uint64
	jumps     int
	skipped   spans
	others    []uint8 // the priorities of the lane's other streams
}

// owns reports whether a message that is read belongs to the stream. It holds no lock.
func (st *stream) owns(e *entry, a *ahead) bool {
	return st.lane.level(&e.origin) == st.level && !a.skipped.has(e.position)
}

// lookAhead takes a view of n messages at least, as far as there are. Log.mu is held.
func (l *Log) lookAhead(st *stream, from uint64, n int) ahead {
	t := st.lane.topic
	a := ahead{from: from, stored: l.state.nextPosition - 1, evictions: t.evictions, visible: t.visible, jumps: st.jumps}
	a.skipped = slices.Clone(st.lane.skipped)
	for _, other := range st.lane.streams {
		if other.level > 0 {
			a.others = append(a.others, other.level)
		}
	}
	if len(t.tail) > 0 {
		a.stored = t.tail[0].position - 1
	}
	for _, e := range t.tail[t.tailFrom(from):] {
		if len(a.tail) == n {
			break
		}
		if !e.gone && st.owns(e, &a) {
			a.tail = append(a.tail, e)
		}
	}
	return a
}

// read returns up to n entries of a view that was taken for as many, and whether these are all there were. It holds no
// lock.
func (l *Log) read(st *stream, a ahead, n int) (entries []*entry, all bool, err error) {
	var bytes int64
	take := func(e *entry) bool {
		bytes += int64(len(e.body))
		if all = len(entries) < n && (bytes <= limits.WindowBytes || len(entries) == 0); all {
			entries = append(entries, e)
		}
		return all
	}
	all = true
	switch {
	case a.from > a.stored:
	case st.level > 0:
		err = l.readPriority(st, a, take)
	default:
		err = l.readStored(st, a, take)
	}
	if err != nil {
		return nil, false, closedOr(err)
	}
	for _, e := range a.tail {
		if !all || !take(e) {
			break
		}
	}
	return entries, all && len(a.tail) < n, nil
}

// readStored reads messages in the order of their positions, hopping over ranges that the lane was not owed.
func (l *Log) readStored(st *stream, a ahead, take func(*entry) bool) error {
	key := st.lane.topic.key()
	for from, more := a.from, true; more; {
		more = false
		err := l.store.Scan(key.Messages(), key.Message(from), func(k, body []byte, err error) bool {
			e := &entry{position: store.Position(k)}
			if e.position > a.stored {
				return false
			}
			if past := a.skipped.end(e.position); past > e.position {
				from, more = past, past <= a.stored
				return false
			}
			e.fill(body, err)
			return !st.owns(e, &a) || e.body == nil && l.pointedTo(st, e.position, a.others) || take(e)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// pointedTo reports whether a message whose record does not check belongs to another stream.
func (l *Log) pointedTo(st *stream, position uint64, levels []uint8) bool {
	return slices.ContainsFunc(levels, func(level uint8) bool {
		_, err := l.store.Get(st.lane.topic.key().Priority(level, position))
		return err == nil
	})
}

// readPriority reads messages by the pointers of their priority.
func (l *Log) readPriority(st *stream, a ahead, take func(*entry) bool) error {
	key := st.lane.topic.key()
	var fault error
	err := l.store.Scan(key.Priorities(st.level), key.Priority(st.level, a.from), func(k, _ []byte, _ error) bool {
		e := &entry{position: store.Position(k)}
		if e.position > a.stored {
			return false
		}
		body, err := l.store.Get(key.Message(e.position))
		if errors.Is(err, store.ErrClosed) {
			fault = err
			return false
		}
		if e.fill(body, err); e.body == nil {
			e.origin.priority = st.level
		}
		return take(e)
	})
	return errors.Join(fault, err)
}

// freshFrom returns the first n or more of the stream's messages from a position on, if there are so many. What is dead or in
// flight among them is read and left out.
func (l *Log) freshFrom(st *stream, from uint64, n int) (found []*entry, err error) {
	for all := false; !all && len(found) < n; {
		l.mu.Lock()
		view := l.lookAhead(st, max(from, st.cursor), n)
		l.mu.Unlock()
		var entries []*entry
		if entries, all, err = l.read(st, view, n); err != nil {
			return nil, err
		}
		l.mu.Lock()
		for _, e := range entries {
			if st.fresh(e.position) {
				found = append(found, e)
			}
			from = e.position + 1
		}
		l.mu.Unlock()
	}
	return found, nil
}

// closedOr returns ErrClosed for the store's own word for it.
func closedOr(err error) error {
	if errors.Is(err, store.ErrClosed) {
		return ErrClosed
	}
	return err
}

// fill takes a stored record. One that does not check leaves the entry without a body: it is quarantined when claimed.
func (e *entry) fill(body []byte, err error) {
	if err != nil {
		return
	}
	h, err := messageHead(body)
	if err != nil {
		return
	}
	e.origin, e.body = h.known(), body
}

// fill makes sure that the next messages of a lane are in memory, up to n, if there are any.
func (l *Log) fill(ln *lane, n int) error {
	for _, st := range l.emptyStreams(ln, n) {
		if err := l.fillWindow(st); err != nil {
			return err
		}
	}
	return l.fillRunnable(ln, n)
}

// emptyStreams returns the streams whose windows have to be filled for n messages, as far as their priority matters.
func (l *Log) emptyStreams(ln *lane, n int) []*stream {
	l.mu.Lock()
	defer l.mu.Unlock()
	var empty []*stream
	for _, st := range ln.streams {
		if len(st.window) == 0 && !st.whole {
			empty = append(empty, st)
		}
		if n -= int(min(st.ready, limits.WindowMessages)); n <= 0 {
			break
		}
	}
	return empty
}

// fillWindow reads a stream's window, if that is empty.
func (l *Log) fillWindow(st *stream) error {
	st.filling.Lock()
	defer st.filling.Unlock()
	l.mu.Lock()
	if len(st.window) > 0 || st.whole {
		l.mu.Unlock()
		return nil
	}
	view := l.lookAhead(st, st.unread, limits.WindowMessages)
	l.mu.Unlock()

	entries, all, err := l.read(st, view, limits.WindowMessages)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	st.install(entries, all, view)
	st.aside.removeBelow(st.unread)
	return nil
}

// fillRunnable reads parked messages whose key is free, up to n.
func (l *Log) fillRunnable(ln *lane, n int) error {
	wanted := l.wantedParked(ln, n)
	for q, positions := range wanted {
		var entries []*entry
		var bytes int64
		for _, p := range positions {
			body, err := l.body(ln.topic, p)
			if err != nil && !unreadable(err) {
				return err
			}
			e := &entry{position: p, origin: origin{order: q.hash}}
			e.fill(body, err)
			entries = append(entries, e)
			if bytes += int64(len(body)); bytes > limits.WindowBytes {
				break
			}
		}
		l.mu.Lock()
		if len(q.loaded) == 0 {
			q.loaded = entries
		}
		l.mu.Unlock()
	}
	return nil
}

// wantedParked returns what has to be read of the keys that are free.
func (l *Log) wantedParked(ln *lane, n int) map[*keyQueue][]uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ln.runnable.len() == 0 {
		return nil
	}
	wanted := map[*keyQueue][]uint64{}
	ln.runnable.each(func(q *keyQueue) bool {
		if n <= 0 {
			return false
		}
		if len(q.loaded) > 0 && q.loaded[0].position == q.awake {
			n -= len(q.loaded)
			return true
		}
		q.loaded = nil
		for _, p := range q.pending {
			if n <= 0 || !ln.parked.has(p) {
				break
			}
			wanted[q] = append(wanted[q], p)
			n--
		}
		return true
	})
	return wanted
}

// install makes entries the window. What was published since the view is in the tail still, unless that was cut.
func (st *stream) install(entries []*entry, all bool, view ahead) {
	if len(st.window) > 0 || st.whole || st.jumps != view.jumps {
		return
	}
	st.wbytes = 0
	for _, e := range entries {
		if e.position < st.unread || st.leftOut(e.position) || e.body == nil && st.lane.met(e.position) {
			continue
		}
		st.window = append(st.window, e)
		st.wbytes += int64(len(e.body))
		st.unread = e.position + 1
	}
	t := st.lane.topic
	if !all || t.visible != view.visible && t.evictions != view.evictions {
		return
	}
	for _, e := range t.tail[t.tailFrom(st.unread):] {
		if !e.gone && st.owns(e, &view) && !st.leftOut(e.position) && !st.extendWindow(e) {
			return
		}
	}
	st.whole = true
}

// met reports whether the lane has the message at position in hand, or did have it and buried it.
func (ln *lane) met(position uint64) bool {
	return ln.flights[position] != nil || ln.parked.has(position) || ln.dead.has(position)
}

// leftOut reports whether a position that is being read is not fresh any more. It is not read again.
func (st *stream) leftOut(position uint64) bool {
	aside := st.aside.has(position) || st.lane.topic.quarantined.has(position)
	if aside {
		st.unread = position + 1
	}
	return aside
}

// body returns the record of a message: from the tail or the store. It takes Log.mu.
func (l *Log) body(t *topic, position uint64) ([]byte, error) {
	l.mu.Lock()
	e := t.inTail(position)
	l.mu.Unlock()
	if e != nil {
		if body, err := l.bodyOf(e); body != nil || err != nil {
			return body, err
		}
	}
	body, err := l.store.Get(t.key().Message(position))
	if errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("message at position %d: %w", position, err)
	}
	return body, closedOr(err)
}

// message returns a message, decoded. Its slices are the caller's.
func (l *Log) message(t *topic, position uint64) (Message, error) {
	body, err := l.body(t, position)
	if err != nil {
		return Message{}, err
	}
	return decodeMessage(t.name, append([]byte(nil), body...))
}

// find returns the named topic, or nil.
func (l *Log) find(name TopicName) *topic {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.topics[name]
}

// findLane returns the named lane: nil if it is the default lane of a topic that does not exist yet.
func (l *Log) findLane(name laneName) (*lane, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.state.topics[name.topic]
	switch {
	case name.lane == "" && t == nil:
		return nil, nil
	case name.lane == "":
		return t.work, nil
	case t == nil || t.groups[name.lane] == nil || t.groups[name.lane].closing:
		return nil, ErrNoGroup
	}
	return t.groups[name.lane], nil
}
