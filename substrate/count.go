package substrate

import (
	"errors"
	"sort"
	"time"

	"github.com/longshore/longshore/substrate/internal/store"
)

// counted says where a start is, and how many messages are stored from there on.
type counted struct {
	first uint64
	n     int64
	aside []uint64 // those that are dead letters of the lane: they don't count
}

// count finds a start in what is stored. It is called by the committer while the store is up to date and nothing else
// changes the state.
func (l *Log) count(name TopicName, s Start, dead positions) (counted, error) {
	t := l.state.topics[name]
	next := l.state.nextPosition
	if t == nil || s.Kind == StartLatest {
		return counted{first: next}, nil
	}
	c := counted{first: next}
	from := uint64(1)
	switch s.Kind {
	case StartPosition:
		if from = s.Position; from > next {
			return counted{}, &StartError{Position: from, Next: next}
		}
	case StartTime:
		var err error
		if from, err = l.positionAt(t, s.Time); err != nil {
			return counted{}, err
		}
	case StartEarliest, StartLatest:
	}
	err := l.store.Keys(t.key().Messages(), t.key().Message(from), func(key []byte) bool {
		p := store.Position(key)
		if t.quarantined.has(p) {
			return true
		}
		c.first = min(c.first, p)
		if dead.has(p) {
			c.aside = append(c.aside, p)
		} else {
			c.n++
		}
		return true
	})
	return c, closedOr(err)
}

// positionAt returns the position of the first message that is stored and became visible at a time or later, or the next
// position. Messages come nearly in the order of their ids and delays: of those within some milliseconds of the time some
// may be on the other side.
func (l *Log) positionAt(t *topic, at time.Time) (uint64, error) {
	next := l.nextPosition()
	var fault error
	found := sort.Search(int(next), func(i int) bool {
		visible, position, err := l.visibleFrom(t, uint64(i))
		if err != nil {
			fault = err
		}
		return err != nil || position == 0 || !visible.Before(at)
	})
	if fault != nil {
		return 0, fault
	}
	if _, position, err := l.visibleFrom(t, uint64(found)); err != nil || position != 0 {
		return position, err
	}
	return next, nil
}

func (l *Log) nextPosition() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.nextPosition
}

// visibleFrom returns when the first message in the store from a position on became visible, and its position: 0 if there is
// none.
func (l *Log) visibleFrom(t *topic, from uint64) (at time.Time, position uint64, err error) {
	key := t.key()
	scanned := l.store.Scan(key.Messages(), key.Message(from), func(k, body []byte, recordErr error) bool {
		if recordErr != nil {
			return true
		}
		h, headErr := messageHead(body)
		if headErr != nil {
			return true
		}
		at, position = h.id.time().Add(h.options.Delay), store.Position(k)
		return false
	})
	return at, position, errors.Join(err, closedOr(scanned))
}
