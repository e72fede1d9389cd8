package substrate

import (
	"errors"
	"maps"
)

// What a rehearsal asks of the log: it looks, takes nothing, and leaves no trace.

// Room is what a message takes in a topic.
type Room struct {
	Topic        string
	PayloadBytes int
}

// WouldReserve returns the error of the first Reserve that is refused if messages of a tenant are reserved one after the other
// and none is given back; nil if none is. Nobody sees room or rate taken, and refusals are not counted.
func (l *Log) WouldReserve(tenant string, wanted ...Room) error {
	for _, w := range wanted {
		if err := validName(tenant, w.Topic); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	refused := maps.Clone(l.admission.refused)
	defer func() { l.admission.refused = refused }()
	for _, w := range wanted {
		r, err := l.reserve(TopicName{tenant, w.Topic}, int64(w.PayloadBytes))
		if err != nil {
			return err
		}
		defer r.release()
	}
	return nil
}

// FenceMark returns what a lane accepted for a fence key, and whether it knows the key. A lane that isn't there knows none. lane is
// the name of a group, or "" for the default lane.
func (l *Log) FenceMark(tenant, topic, lane, key string) (FenceMark, bool, error) {
	ln, err := l.knownLane(tenant, topic, lane)
	switch {
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrNoGroup):
		return FenceMark{}, false, nil
	case err != nil:
		return FenceMark{}, false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	m := ln.fences[key]
	if m == nil {
		return FenceMark{}, false, nil
	}
	return m.of(key), true, nil
}
