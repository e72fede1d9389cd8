package substrate

import (
	"encoding/binary"

	"github.com/longshore/longshore/substrate/internal/store"
)

type (
	// quarantineFrame takes messages whose records do not check out of all lanes, or deletes what is in quarantine.
	quarantineFrame struct {
		name  TopicName
		what  quarantineChange
		items []*quarantined
	}

	// quarantined is a record that does not check. The record itself stays where it is.
	quarantined struct {
		number       uint64 // its position, or the hash of its bytes
		hash         bool
		at           int64 // unix ns: when it was quarantined
		level        uint8 // the priority that counts, as far as it is known
		payloadBytes int   // as far as that is known
		reason       string
		fault        string // the log's own words
		length       int    // of the record
		preview      []byte // how it begins
		// places are where it stands, if it has no position: the keys without their topic. They are not in frames.
		places [][]byte
		// lanes are those that it is taken from, in the process that does so. They are not stored.
		lanes []string
	}

	// entryRef names an entry of the quarantine.
	entryRef struct {
		topic  *topic
		number uint64
		hash   bool
	}

	// placeRef names a key of a topic by what follows the topic in it.
	placeRef struct {
		topic *topic
		rest  string
	}
)

// quarantineChange says what a quarantineFrame does. Numbers are never used again for something else.
type quarantineChange uint8

const (
	quarantineEntered   quarantineChange = 1
	quarantineDiscarded quarantineChange = 2
)

func (*quarantineFrame) kind() uint8   { return kindQuarantine }
func (*quarantineFrame) durable() bool { return true }

func (f *quarantineFrame) append(b []byte) []byte {
	b = binary.AppendUvarint(append(f.name.append(b), byte(f.what)), uint64(len(f.items)))
	for _, q := range f.items {
		b = q.appendFields(binary.AppendUvarint(append(b, bit(q.hash, 1)), q.number))
	}
	return b
}

func (d *decoder) quarantineFrame() *quarantineFrame {
	f := &quarantineFrame{name: d.topicName(), what: quarantineChange(d.byte())}
	f.items = make([]*quarantined, d.count(9))
	for i := range f.items {
		q := &quarantined{hash: d.byte()&1 != 0, number: d.uint()}
		d.quarantinedFields(q)
		f.items[i] = q
	}
	return f
}

func (q *quarantined) appendFields(b []byte) []byte {
	b = append(binary.AppendVarint(b, q.at), q.level)
	b = binary.AppendUvarint(b, uint64(q.payloadBytes))
	b = appendString(appendString(b, q.reason), q.fault)
	return appendString(binary.AppendUvarint(b, uint64(q.length)), q.preview)
}

func (d *decoder) quarantinedFields(q *quarantined) {
	q.at, q.level, q.payloadBytes = d.int(), d.byte(), int(d.uint())
	q.reason, q.fault, q.length = d.string(), d.string(), int(d.uint())
	q.preview = append([]byte(nil), d.bytes()...)
}

func appendQuarantined(b []byte, q *quarantined) []byte {
	b = q.appendFields(append(b, formatVersion))
	b = binary.AppendUvarint(b, uint64(len(q.places)))
	for _, place := range q.places {
		b = appendString(b, place)
	}
	return b
}

func decodeQuarantined(body []byte) (*quarantined, error) {
	d := decoder{b: body}
	if err := d.version("quarantine entry"); err != nil {
		return nil, err
	}
	q := &quarantined{}
	d.quarantinedFields(q)
	q.places = make([][]byte, d.count(1))
	for i := range q.places {
		q.places[i] = append([]byte(nil), d.bytes()...)
	}
	return q, d.end("quarantine entry")
}

func (f *quarantineFrame) apply(s *state, _ uint64) {
	t := s.topic(f.name)
	for _, q := range f.items {
		switch f.what {
		case quarantineEntered:
			s.quarantine(t, q)
		case quarantineDiscarded:
			s.discardQuarantined(t, q)
		}
	}
	s.touch(t)
}

// quarantine takes a message out of all lanes that may still deliver it. What is a dead letter of a lane stays one.
func (s *state) quarantine(t *topic, q *quarantined) {
	o := q.origin()
	pinned := !t.work.needs(q.number, &o) && !t.isDead(q.number)
	t.eachLane(func(ln *lane) bool {
		s.withdraw(ln, q.number, &o)
		return true
	})
	s.forget(t, q.number)
	if pinned {
		t.pin(-q.payloadBytes)
	}
	t.quarantined.add(q.number)
	t.entries++
	s.effects.putEntry(t, q)
}

// origin is what is known of the message.
func (q *quarantined) origin() origin { return origin{payloadBytes: q.payloadBytes, priority: q.level} }

// withdraw takes a message away from a lane.
func (s *state) withdraw(ln *lane, position uint64, o *origin) {
	switch fl := ln.flights[position]; {
	case fl != nil:
		s.removeFlight(ln, fl)
	case ln.parked.has(position):
		ln.dropParked(position, ln.key(o))
		s.effects.dropParked(ln, position)
	case ln.fresh(position, o):
		st := ln.stream(ln.level(o))
		st.ready--
		st.leaveOut(position)
		s.dropPointer(ln, position, st.level)
	}
}

// discardQuarantined deletes an entry with its bytes, and with the dead letters that are about the same message.
func (s *state) discardQuarantined(t *topic, q *quarantined) {
	t.entries--
	s.effects.dropEntry(t, q)
	if q.hash {
		for _, place := range t.strays[q.number].places {
			s.effects.dropPlace(t, place)
		}
		delete(t.strays, q.number)
		return
	}
	t.quarantined.remove(q.number)
	t.eachLane(func(ln *lane) bool {
		if ln.dead.has(q.number) {
			ln.deadN--
			ln.dead.remove(q.number)
			s.effects.dropDead(ln, q.number)
		}
		for _, st := range ln.streams { // it may be read once more before the store drops it
			st.leaveOut(q.number)
		}
		return true
	})
	if e := t.inTail(q.number); e != nil {
		e.gone = true
	}
	s.drop(t, q.number, q.payloadBytes)
}

func (e *effects) putEntry(t *topic, q *quarantined) {
	e.entries[entryRef{t, q.number, q.hash}] = q
	texts := len(q.reason) + len(q.fault) + len(q.preview)
	for _, place := range q.places {
		texts += len(place)
	}
	e.owe(t, texts)
}

func (e *effects) dropEntry(t *topic, q *quarantined) {
	e.entries[entryRef{t, q.number, q.hash}] = nil
	e.owe(t, 0)
}

func (e *effects) dropPlace(t *topic, rest []byte) {
	e.places[placeRef{t, string(rest)}] = struct{}{}
	e.owe(t, len(rest))
}

// cutQuarantine adds the entries of the quarantine, and the bytes of those that are gone.
func (e *effects) cutQuarantine(b *batch) {
	for r, q := range e.entries {
		op := store.Op{Key: r.key()}
		if q != nil {
			op.Body = appendQuarantined(nil, q)
		}
		b.last = append(b.last, op)
	}
	for r := range e.places {
		b.last = append(b.last, store.Op{Key: r.topic.key().Key([]byte(r.rest))})
	}
}

func (r entryRef) key() []byte {
	if r.hash {
		return r.topic.key().QuarantineHash(r.number)
	}
	return r.topic.key().Quarantine(r.number)
}

// loadQuarantine reads what is in quarantine.
func (r *recovery) loadQuarantine(t *topic) error {
	key := t.key()
	return r.store.Scan(key.Quarantined(), key.Quarantined(), func(k, body []byte, err error) bool {
		q := readEntry(key, k, body, err)
		t.entries++
		if q.hash {
			t.addStray(q)
		} else {
			t.quarantined.add(q.number)
		}
		return true
	})
}

func (t *topic) addStray(q *quarantined) {
	if t.strays == nil {
		t.strays = map[uint64]*quarantined{}
	}
	t.strays[q.number] = q
}
