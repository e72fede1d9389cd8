package substrate

import (
	"encoding/binary"

	"github.com/longshore/longshore/limits"
)

type (
	// laneFrame sets what an operator sets of a lane.
	laneFrame struct {
		name     laneName
		paused   bool
		closing  bool
		ordering Ordering
	}

	// groupFrame makes a group, moves its cursor, or ends it.
	groupFrame struct {
		name     laneName
		what     groupChange
		start    Start
		ordering Ordering // of a group that is made
		cursor   uint64
		ready    int64    // messages from the cursor on
		voided   []parked // flights and parked messages that end here
		aside    []uint64 // dead letters from the cursor on
	}

	// sweepFrame drops messages that nobody needs, and lets groups pass those that retention takes from them.
	sweepFrame struct {
		name   TopicName
		upTo   uint64 // everything below was looked at
		keys   int64  // unix ns: some idempotency keys whose window ended by then are forgotten; 0 for none
		items  []swept
		passed []passed
	}

	swept struct {
		position     uint64
		payloadBytes int
		level        uint8
	}

	// passed says how far retention moves the cursor of a group, and over how many messages.
	passed struct {
		lane   string
		cursor uint64
		count  int64
	}

	// modeFrame sets when the default lane is owed messages.
	modeFrame struct {
		name TopicName
		mode LaneMode
		owes bool
	}
)

// groupChange says what a groupFrame does. Numbers are never used again for something else, and are below 16: the ordering
// of a group that is made stands in the upper half of the same byte.
type groupChange uint8

const (
	groupMade   groupChange = 1
	groupReset  groupChange = 2
	groupVoided groupChange = 3 // some of what is in flight or parked ends
	groupEnded  groupChange = 4
)

func (*laneFrame) kind() uint8  { return kindLane }
func (*groupFrame) kind() uint8 { return kindGroup }
func (*sweepFrame) kind() uint8 { return kindSweep }
func (*modeFrame) kind() uint8  { return kindMode }

func (*laneFrame) durable() bool  { return true }
func (*groupFrame) durable() bool { return true }
func (*sweepFrame) durable() bool { return false }
func (*modeFrame) durable() bool  { return true }

func (f *laneFrame) append(b []byte) []byte {
	return append(f.name.append(b), bit(f.paused, 1)|bit(f.closing, 2), byte(f.ordering))
}

func (d *decoder) laneSettings() *laneFrame {
	f := &laneFrame{name: d.laneName()}
	flags := d.byte()
	f.paused, f.closing, f.ordering = flags&1 != 0, flags&2 != 0, Ordering(d.byte())
	return f
}

func (f *groupFrame) append(b []byte) []byte {
	b = append(f.name.append(b), byte(f.what)|byte(f.ordering)<<4)
	b = f.start.append(b)
	b = binary.AppendUvarint(binary.AppendUvarint(b, f.cursor), uint64(f.ready))
	return appendPositions(appendParked(b, f.voided), f.aside)
}

func (d *decoder) group() *groupFrame {
	f := &groupFrame{name: d.laneName()}
	what := d.byte()
	f.what, f.ordering, f.start = groupChange(what&15), Ordering(what>>4), d.start()
	f.cursor, f.ready, f.voided, f.aside = d.uint(), int64(d.uint()), d.parkedList(), d.positions()
	return f
}

func (f *sweepFrame) append(b []byte) []byte {
	b = binary.AppendVarint(binary.AppendUvarint(f.name.append(b), f.upTo), f.keys)
	b = binary.AppendUvarint(b, uint64(len(f.items)))
	for _, e := range f.items {
		b = append(binary.AppendUvarint(binary.AppendUvarint(b, e.position), uint64(e.payloadBytes)), e.level)
	}
	b = binary.AppendUvarint(b, uint64(len(f.passed)))
	for _, e := range f.passed {
		b = binary.AppendUvarint(binary.AppendUvarint(appendString(b, e.lane), e.cursor), uint64(e.count))
	}
	return b
}

func (d *decoder) sweep() *sweepFrame {
	f := &sweepFrame{name: d.topicName(), upTo: d.uint(), keys: d.int()}
	f.items = make([]swept, d.count(3))
	for i := range f.items {
		f.items[i] = swept{position: d.uint(), payloadBytes: int(d.uint()), level: d.byte()}
	}
	f.passed = make([]passed, d.count(3))
	for i := range f.passed {
		f.passed[i] = passed{lane: d.string(), cursor: d.uint(), count: int64(d.uint())}
	}
	return f
}

func (f *modeFrame) append(b []byte) []byte {
	return append(f.name.append(b), byte(f.mode), bit(f.owes, 1))
}

func (f *laneFrame) apply(s *state, _ uint64) {
	ln := s.lane(f.name)
	ln.paused, ln.closing, ln.ordering = f.paused, f.closing, f.ordering
	if f.closing {
		s.sweepFrom(ln.topic, ln.base().cursor)
	}
	s.touch(ln.topic)
}

// sweepFrom notes that messages from a position on may be needed no more.
func (s *state) sweepFrom(t *topic, position uint64) {
	t.mayHoldGarbage(position, s.nextPosition)
	s.watched[t] = struct{}{}
}

func (f *modeFrame) apply(s *state, _ uint64) {
	t := s.topic(f.name)
	t.mode = f.mode
	t.work.setOwes(f.owes, s.nextPosition)
	if f.mode == LaneOff {
		for _, st := range t.work.streams {
			s.sweepFrom(t, st.cursor)
			st.jump(s.nextPosition, 0, positions{})
		}
	}
	s.touch(t)
}

func (f *groupFrame) apply(s *state, _ uint64) {
	t := s.topic(f.name.topic)
	switch f.what {
	case groupMade:
		f.make(s, t)
	case groupReset:
		f.reset(s, t.groups[f.name.lane])
	case groupVoided:
		f.void(s, s.lane(f.name))
	case groupEnded:
		delete(t.groups, f.name.lane)
		s.effects.dropGroup(t, f.name.lane)
		if t.mode == LaneAuto && len(t.groups) == 0 {
			t.work.setOwes(true, s.nextPosition)
		}
	}
	s.touch(t)
}

func (f *groupFrame) make(s *state, t *topic) {
	ln := newLane(t, f.name.lane)
	ln.start, ln.ordering = f.start, f.ordering
	ln.base().jump(f.cursor, f.ready, positions{})
	if t.groups == nil {
		t.groups = map[string]*lane{}
	}
	t.groups[ln.name] = ln
	s.watched[t] = struct{}{}
	if t.mode == LaneAuto && !t.claimed {
		t.work.setOwes(false, s.nextPosition)
	}
}

// reset moves the cursor. What the group does not need any more goes with the next sweep.
func (f *groupFrame) reset(s *state, ln *lane) {
	st := ln.base()
	before := st.cursor
	aside := positions{}
	for _, p := range f.aside {
		aside.add(p)
	}
	st.jump(f.cursor, f.ready, aside)
	s.sweepFrom(ln.topic, min(before, f.cursor))
}

// void ends messages that are in flight or parked.
func (f *groupFrame) void(s *state, ln *lane) {
	for _, e := range f.voided {
		if fl := ln.flights[e.position]; fl != nil {
			s.removeFlight(ln, fl)
		} else {
			ln.dropParked(e.position, e.key)
			s.effects.dropParked(ln, e.position)
		}
		s.sweepFrom(ln.topic, e.position)
	}
}

func (f *sweepFrame) apply(s *state, _ uint64) {
	t := s.topic(f.name)
	for _, e := range f.passed {
		ln := t.groups[e.lane]
		st := ln.base()
		s.sweepFrom(t, st.cursor)
		st.ready -= e.count
		st.advance(e.cursor - 1)
		ln.gap += uint64(e.count)
	}
	for _, e := range f.items {
		s.forget(t, e.position)
		t.pin(-e.payloadBytes)
		s.drop(t, e.position, e.payloadBytes)
		s.dropOldPointer(t, e.position, &origin{priority: e.level})
	}
	if f.upTo > t.unswept.from {
		t.unswept.from = min(f.upTo, t.unswept.to)
	}
	if f.keys != 0 {
		s.forgetKeys(t, f.keys, limits.SweepPositions)
	}
	s.touch(t)
}
