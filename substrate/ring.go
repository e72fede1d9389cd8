package substrate

import (
	"sync"

	"github.com/longshore/longshore/limits"
)

// ring holds the last events of a topic that is tailed, numbered as they came. There is one for all tails of the topic, each
// of which knows the number of the event that it reads next: telling of an event costs the same for any number of them.
type ring struct {
	events  [limits.TailRingEvents]ringEvent
	first   uint64 // number of the oldest
	next    uint64 // number of the next
	bytes   int    // of their records
	floor   uint64 // all messages that were published without a delay, at this position or above, are in the ring
	tails   int    // that read it
	told    bool   // it is among those of tails.told
	changed chan struct{}
}

// ringEvent is a message that was published: its position, or 0 if it is delayed, and its record.
type ringEvent struct {
	position uint64
	body     []byte
}

func (r *ring) at(seq uint64) *ringEvent { return &r.events[seq%limits.TailRingEvents] }

// push takes an event and drops the oldest, as the bounds ask for it.
func (r *ring) push(e ringEvent) {
	for r.next-r.first == limits.TailRingEvents || r.next > r.first && r.bytes+len(e.body) > limits.TailRingBytes {
		r.drop()
	}
	*r.at(r.next) = e
	r.next++
	r.bytes += len(e.body)
}

func (r *ring) drop() {
	e := r.at(r.first)
	r.floor = max(r.floor, e.position+1)
	r.bytes -= len(e.body)
	*e = ringEvent{}
	r.first++
}

// after returns the number of the first event whose position is above a given one, or the next number, and that position, or
// 0; and whether the position given is one of the ring's.
func (r *ring) after(position uint64) (seq, above uint64, known bool) {
	for seq = r.first; seq < r.next; seq++ {
		switch e := r.at(seq); {
		case e.position == position:
			known = true
		case e.position > position:
			return seq, e.position, known
		}
	}
	return seq, 0, known
}

// tails are a log's open tails. Its lock is never held while another is taken, or while anything is waited for.
type tails struct {
	mu       sync.Mutex
	rings    map[TopicName]*ring // nil while nobody tails
	open     int
	answered uint64  // messages below this position are answered, or being answered
	told     []*ring // whose readers are to be woken
}

// next returns the position that follows what is answered.
func (s *tails) next() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answered
}

// add lets a tail begin. It returns whether the ring has the message to resume after, and the position of the ring's first
// message above that, or the log's next one.
func (s *tails) add(t *Tail, after uint64) (known bool, next uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if after >= s.answered {
		return false, 0, &PositionError{Position: after, Next: s.answered}
	}
	if err := limits.Check(limits.NameTails, int64(s.open+1), limits.TailSubscribers); err != nil {
		return false, 0, err
	}
	if s.rings == nil {
		s.rings = map[TopicName]*ring{}
	}
	r := s.rings[t.name]
	if r == nil {
		r = &ring{floor: s.answered}
		s.rings[t.name] = r
	}
	s.open++
	r.tails++
	t.ring, t.seq, next = r, r.next, s.answered
	if after == 0 {
		return false, next, nil
	}
	seq, above, known := r.after(after)
	if above > 0 {
		next = above
	}
	if t.seq = seq; after+1 < r.floor {
		t.seq, t.catching, t.from, t.until = r.first, true, after+1, r.floor
	}
	return known, next, nil
}

// remove ends a tail. The last one of a topic takes the ring with it.
func (s *tails) remove(t *Tail) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	if t.ring.tails--; t.ring.tails == 0 {
		delete(s.rings, t.name)
	}
	if len(s.rings) == 0 {
		s.rings = nil
	}
}

// tell tells the tails of the group, which is committed and about to be answered. It reports whether they have to be woken
// after that.
func (c *committer) tell() bool {
	tailed := c.log.tails.publish(c.planned, c.log.state.nextPosition)
	clear(c.planned)
	c.planned = c.planned[:0]
	return tailed
}

// publish takes the frames of a group that is committed, and the position that follows them. It reports whether a ring
// changed: then wake is to be called.
func (s *tails) publish(frames []frame, next uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answered = next
	if s.rings == nil {
		return false
	}
	for _, f := range frames {
		switch f := f.(type) {
		case *publishFrame:
			s.pushAll(f)
		case *settleFrame:
			s.pushAll(&f.outbox)
		}
	}
	return len(s.told) > 0
}

// pushAll adds the messages of a frame to the rings of their topics.
func (s *tails) pushAll(f *publishFrame) {
	position := f.first
	for i := range f.entries {
		e := &f.entries[i]
		event := ringEvent{body: e.body}
		if e.due == 0 {
			event.position = position
			position++
		}
		r := s.rings[e.name]
		if r == nil {
			continue
		}
		r.push(event)
		if !r.told {
			r.told = true
			s.told = append(s.told, r)
		}
	}
}

// wake wakes the tails that wait for what was published.
func (s *tails) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.told {
		r.told = false
		if r.changed != nil {
			close(r.changed)
			r.changed = nil
		}
	}
	clear(s.told)
	s.told = s.told[:0]
}

// read returns the tail's next event, or, if there is none yet, a channel that is closed when there is.
func (s *tails) read(t *Tail) (ringEvent, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := t.ring
	if t.seq < r.first {
		t.dropped += r.first - t.seq
		t.seq = r.first
	}
	if t.seq < r.next {
		t.seq++
		return *r.at(t.seq - 1), nil
	}
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return ringEvent{}, r.changed
}

// meet lets a tail that has read what is stored go on with the ring, unless that has dropped events which the tail has not
// read: these may be in the store by now.
func (s *tails) meet(t *Tail) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := t.ring
	if t.seq >= r.first {
		t.dropped += t.missed
		t.catching, t.missed = false, 0
		return
	}
	t.missed += r.first - t.seq
	t.seq, t.until, t.met = r.first, r.floor, true
}
