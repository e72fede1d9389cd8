package substrate

import (
	"errors"
	"fmt"
	"maps"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/store"
)

// A message is in the tail of its topic until the write-behind has stored it, and in the store from then on. All
// positions of the tail are above all of those that only the store has.

// ahead is a view of a topic's messages from a position on, as of one moment.
type ahead struct {
	stored    uint64   // the store is read up to this position
	tail      []*entry // what follows
	evictions uint64   // to tell whether the tail was cut since
	shown     uint64
}

// lookAhead takes a view of n messages at least, as far as there are. Log.mu is held.
func (l *Log) lookAhead(t *topic, from uint64, n int) ahead {
	a := ahead{stored: l.state.nextPosition - 1, evictions: t.evictions, shown: t.shown()}
	if len(t.tail) > 0 {
		a.stored = t.tail[0].position - 1
	}
	for _, e := range t.tail {
		if len(a.tail) == n {
			break
		}
		if e.position >= from && !e.gone {
			a.tail = append(a.tail, e)
		}
	}
	return a
}

// read returns up to n entries of a view that was taken for as many, from the position from on, and whether these are all
// there were. It holds no lock.
func (l *Log) read(t *topic, a ahead, from uint64, n int) (entries []*entry, all bool, err error) {
	var bytes int64
	fits := func(e *entry) bool {
		bytes += int64(len(e.body))
		return len(entries) < n && (bytes <= limits.WindowBytes || len(entries) == 0)
	}
	all = true
	if from <= a.stored {
		key := t.key()
		err = l.store.Scan(key.Messages(), key.Message(from), func(k, body []byte, err error) bool {
			e := &entry{position: store.Position(k)}
			if e.position > a.stored {
				return false
			}
			e.fill(body, err)
			if all = fits(e); all {
				entries = append(entries, e)
			}
			return all
		})
		if err != nil {
			return nil, false, closedOr(err)
		}
	}
	for _, e := range a.tail {
		if !all {
			break
		}
		if all = fits(e); all {
			entries = append(entries, e)
		}
	}
	return entries, all && len(a.tail) < n, nil
}

// closedOr returns ErrClosed for the store's own word for it.
func closedOr(err error) error {
	if errors.Is(err, store.ErrClosed) {
		return ErrClosed
	}
	return err
}

// fill takes a stored record. One that does not check leaves the entry without a body: it is buried when claimed.
func (e *entry) fill(body []byte, err error) {
	if err != nil {
		return
	}
	h, err := messageHead(body)
	if err != nil {
		return
	}
	e.origin, e.body = origin{id: h.id, payloadBytes: h.payloadBytes}, body
}

// fillWindow makes sure that the topic's window holds the next messages, if there are any.
func (l *Log) fillWindow(t *topic) error {
	if !l.windowEmpty(t) {
		return nil
	}
	t.filling.Lock()
	defer t.filling.Unlock()
	l.mu.Lock()
	if len(t.window) > 0 || t.whole {
		l.mu.Unlock()
		return nil
	}
	from, view := t.unread, l.lookAhead(t, t.unread, limits.WindowMessages)
	l.mu.Unlock()

	entries, all, err := l.read(t, view, from, limits.WindowMessages)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t.install(entries, all, view)
	t.forget()
	return nil
}

func (l *Log) windowEmpty(t *topic) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(t.window) == 0 && !t.whole
}

// install makes entries the window. What was published since the view is in the tail still, unless that was cut.
func (t *topic) install(entries []*entry, all bool, view ahead) {
	t.window, t.wbytes, t.whole = nil, 0, false
	for _, e := range entries {
		if e.position < t.unread || t.leftOut(e.position) {
			continue
		}
		t.window = append(t.window, e)
		t.wbytes += int64(len(e.body))
		t.unread = e.position + 1
	}
	if !all || t.shown() != view.shown && t.evictions != view.evictions {
		return
	}
	for _, e := range t.tail {
		if e.position >= t.unread && !e.gone && !t.leftOut(e.position) && !t.extendWindow(e) {
			return
		}
	}
	t.whole = true
}

// forget drops what is remembered of positions that are read.
func (t *topic) forget() {
	maps.DeleteFunc(t.aside, func(position uint64, _ struct{}) bool { return position < t.unread })
}

// leftOut reports whether a position that is being read is not fresh any more. It is not read again.
func (t *topic) leftOut(position uint64) bool {
	_, aside := t.aside[position]
	if aside {
		t.unread = position + 1
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
