package substrate

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/longshore/longshore/substrate/internal/store"
)

// A delayed message waits outside of its topic's order until it is due. It gets its position then, by a ripen frame, so
// that it comes after what was published meanwhile.

// delayed is a message that is not visible yet.
type delayed struct {
	topic  *topic
	due    int64 // unix ns
	origin origin
	body   []byte // nil once the store has it
	index  int    // in the state's heap
	stored bool   // the store has it, or is being given it
	fault  error  // what is wrong with it, if it was loaded and does not check
}

// key and bodyKey are where the store keeps it: what has to be known of it, and its record. The record is stored first;
// without the other it doesn't count.
func (d *delayed) key() []byte     { return d.topic.key().Delayed(uint64(d.due), d.origin.id.number) }
func (d *delayed) bodyKey() []byte { return d.topic.key().Hidden(d.origin.id.number) }

// append encodes what has to be known of it: version, id, payload bytes, expiry ns or 0, flags (1 deadline).
func (d *delayed) append(b []byte) []byte {
	var flags byte
	if d.origin.deadline {
		flags = 1
	}
	b = d.origin.append(append(b, formatVersion))
	return append(binary.AppendVarint(b, d.origin.expires), flags)
}

func decodeDelayed(t *topic, due int64, body []byte) (*delayed, error) {
	d := decoder{b: body}
	if err := d.version("delayed message"); err != nil {
		return nil, err
	}
	m := &delayed{topic: t, due: due, stored: true, origin: d.origin()}
	m.origin.expires, m.origin.deadline = d.int(), d.byte()&1 != 0
	return m, d.end("delayed message")
}

// before orders by due time, then by age.
func (d *delayed) before(e *delayed) bool {
	if d.due != e.due {
		return d.due < e.due
	}
	return d.origin.id.number < e.origin.id.number
}

func (s *state) addDelayed(d *delayed) {
	d.topic.hidden++
	s.delayed.push(d)
}

func (d *delayed) place() *int { return &d.index }

// ripenFrame makes the messages that are due first visible, in that order.
type ripenFrame struct {
	first uint64 // position of the first
	items []ripened
}

type ripened struct {
	name   TopicName
	due    int64
	number uint64
}

func (*ripenFrame) kind() uint8   { return kindRipen }
func (*ripenFrame) durable() bool { return true }

func (f *ripenFrame) append(b []byte) []byte {
	b = binary.AppendUvarint(b, f.first)
	b = binary.AppendUvarint(b, uint64(len(f.items)))
	for _, e := range f.items {
		b = binary.AppendVarint(e.name.append(b), e.due)
		b = binary.AppendUvarint(b, e.number)
	}
	return b
}

func (d *decoder) ripen() *ripenFrame {
	f := &ripenFrame{first: d.uint()}
	f.items = make([]ripened, d.count(4))
	for i := range f.items {
		f.items[i] = ripened{name: d.topicName(), due: d.int(), number: d.uint()}
	}
	return f
}

// apply takes the heap's first for each item: the frame was planned so, and a frame that doesn't fit is a fault.
func (f *ripenFrame) apply(s *state, _ uint64) {
	for i := range f.items {
		d := s.delayed.first()
		if d.due != f.items[i].due || d.origin.id.number != f.items[i].number {
			panic(fmt.Sprintf("delayed message %d was not the next that is due", f.items[i].number))
		}
		s.delayed.remove(d)
		t := d.topic
		e := &entry{position: f.first + uint64(i), origin: d.origin, body: d.body}
		if d.body == nil {
			e.from = d.bodyKey()
		}
		t.hidden--
		s.effects.dropDelayed(d)
		s.show(t, e)
		s.touch(t)
	}
	s.nextPosition = f.first + uint64(len(f.items))
}

// planRipen returns the frame that makes due what is due at now, up to n messages, or nil.
func (s *state) planRipen(now int64, n int) *ripenFrame {
	f := &ripenFrame{first: s.nextPosition}
	s.delayed.each(func(d *delayed) bool {
		if d.due > now || len(f.items) == n {
			return false
		}
		f.items = append(f.items, ripened{d.topic.name, d.due, d.origin.id.number})
		return true
	})
	if len(f.items) == 0 {
		return nil
	}
	return f
}

// bodyOf returns the record of a message that is held in memory, or that the store still keeps as a delayed one.
func (l *Log) bodyOf(e *entry) ([]byte, error) {
	if e.body != nil || e.from == nil {
		return e.body, nil
	}
	body, err := l.store.Get(e.from)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil // moved to its place since
	}
	return body, closedOr(err)
}
