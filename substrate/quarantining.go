package substrate

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"
	"unicode"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/store"
)

// A message whose record does not check is found by the claim that would deliver it. One frame takes it out of all lanes
// then, so that nobody meets it again, and leaves an entry behind. Its bytes stay where they are.

// quarantinesPerFrame is how many messages one frame quarantines or discards.
const quarantinesPerFrame = 256

// Bounds of an entry: in a frame, and of such a frame.
const (
	entryBytes      = 80 + limits.ReasonBytes + limits.PreviewBytes
	quarantineBytes = entryOverheadBytes + quarantinesPerFrame*entryBytes
)

// quarantineHash names bytes that don't check and whose position is not known.
func quarantineHash(topic string, payload []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(topic))
	_, _ = h.Write([]byte{0xff})
	_, _ = h.Write(payload)
	return h.Sum64()
}

// inspect describes the record of the message at a position, of which err says that it does not check.
func (l *Log) inspect(t *topic, position uint64, err error) *quarantined {
	q := &quarantined{number: position}
	record := l.rawRecord(t, position)
	q.describe(record, err)
	if h, err := messageHead(store.Unchecked(record)); err == nil {
		q.payloadBytes = h.payloadBytes // a guess, for the bytes that retention counts
	}
	return q
}

// describe takes a record, as far as that could be read, and what is wrong with it.
func (q *quarantined) describe(record []byte, err error) {
	q.reason = ReasonCorrupt
	var corrupt *store.CorruptError
	switch {
	case errors.Is(err, store.ErrNotFound):
		q.reason, q.fault = ReasonMissing, store.ErrNotFound.Error()
	case errors.As(err, &corrupt):
		q.fault = corrupt.Reason // without the key, which is what the entry is named by
	default:
		q.fault = err.Error()
	}
	q.fault = printable(q.fault)
	q.length = len(record)
	q.preview = append([]byte(nil), record[:min(len(record), limits.PreviewBytes)]...)
}

// printable returns a text in which nothing but printable characters stands, of at most limits.ReasonBytes.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
	if len(s) > limits.ReasonBytes {
		s = strings.ToValidUTF8(s[:limits.ReasonBytes], "")
	}
	return s
}

// rawRecord returns the record of a message as it is stored, or nil if it can't be read. It takes Log.mu.
func (l *Log) rawRecord(t *topic, position uint64) []byte {
	l.mu.Lock()
	e := t.inTail(position)
	l.mu.Unlock()
	if e != nil && e.body != nil {
		return e.body
	}
	if e != nil && e.from != nil {
		if raw, err := l.store.Raw(e.from); err == nil {
			return raw
		}
	}
	raw, err := l.store.Raw(t.key().Message(position))
	if err != nil {
		return nil
	}
	return raw
}

// quarantine commits the entries of messages of a topic, and returns those that are quarantined by it, and those that
// could not be, because the disk is full: these are skipped where they are. What another claim was faster with is neither.
func (l *Log) quarantine(ctx context.Context, t *topic, found []*quarantined) (done, skipped []QuarantineEntry, err error) {
	for len(found) > 0 {
		some := found[:min(len(found), quarantinesPerFrame)]
		found = found[len(some):]
		entered, err := l.tryQuarantine(ctx, t, some)
		switch {
		case errors.Is(err, ErrStorageFull):
			skipped = append(skipped, entriesOf(t, l.skip(t, some))...)
		case err != nil:
			return done, skipped, err
		}
		for _, q := range entered {
			e := q.entry(t)
			e.Lanes = q.lanes
			done = append(done, e)
		}
	}
	return done, skipped, nil
}

// tryQuarantine tries for as long as it is worth while. It returns what it quarantined.
func (l *Log) tryQuarantine(ctx context.Context, t *topic, found []*quarantined) (entered []*quarantined, err error) {
	for try := 1; ; try++ {
		err = l.submit(ctx, &request{bytes: quarantineBytes, need: needLittle, plan: func(now time.Time) (frame, error) {
			f, err := l.planQuarantine(t, found, now)
			if f == nil || err != nil {
				return nil, err
			}
			entered = f.items
			return f, nil
		}})
		if !errors.Is(err, ErrStorageFull) || try == limits.QuarantineTries {
			return entered, err
		}
		select {
		case <-time.After(limits.QuarantinePause):
		case <-l.stop:
			return nil, ErrClosed
		case <-l.failed:
			return nil, ErrClosed
		}
	}
}

// planQuarantine returns the frame for those messages that a lane may still deliver, or nil.
func (l *Log) planQuarantine(t *topic, found []*quarantined, now time.Time) (*quarantineFrame, error) {
	f := &quarantineFrame{name: t.name, what: quarantineEntered}
	if l.state.topics[t.name] != t {
		return nil, nil
	}
	for _, q := range found {
		o, err := l.originOf(t, q.number)
		if err != nil {
			return nil, err
		}
		q.lanes = nil
		t.eachLane(func(ln *lane) bool {
			if ln.live(q.number, &o) {
				q.lanes = append(q.lanes, ln.name)
			}
			return true
		})
		if len(q.lanes) == 0 {
			continue
		}
		q.at, q.level = now.UnixNano(), o.level()
		if o.id != (messageID{}) {
			q.payloadBytes = o.payloadBytes
		}
		f.items = append(f.items, q)
	}
	if len(f.items) == 0 {
		return nil, nil
	}
	return f, nil
}

// originOf returns what is known of a message whose record does not check: of its priority at least what the lanes go by.
// Log.mu is held.
func (l *Log) originOf(t *topic, position uint64) (o origin, err error) {
	known := false
	t.eachLane(func(ln *lane) bool {
		if f := ln.flights[position]; f != nil && (ln.name == "" || f.origin.id != messageID{}) {
			o, known = f.origin, true
		}
		return !known
	})
	if e := t.inTail(position); e != nil && !known {
		o, known = e.origin, true
	}
	if x := t.expiring[position]; x != nil && !known {
		o, known = x.origin, true
	}
	for _, st := range t.work.streams {
		if known || st.level == 0 {
			break
		}
		_, err = l.store.Get(t.key().Priority(st.level, position))
		if err == nil {
			o.priority, known = st.level, true
		} else if errors.Is(err, store.ErrClosed) {
			return origin{}, ErrClosed
		}
	}
	return o, nil
}

// skip lets claimers pass over messages until the next Open, and returns them: their flights stay as they are, but no time
// is set for them. They are not delivered, not deleted, and not looked at again. There is no frame about it: it is what
// happens if none can be written.
func (l *Log) skip(t *topic, found []*quarantined) (skipped []*quarantined) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, q := range found {
		held := false
		t.eachLane(func(ln *lane) bool {
			if f := ln.flights[q.number]; f != nil && f.index != notTimed {
				ln.unschedule(f)
				held = true
			}
			return true
		})
		if held {
			t.skipped++
			skipped = append(skipped, q)
		}
	}
	return skipped
}

// loadDelayed reads the delayed messages, but for those that an Open before this one quarantined. What is to be known of one
// whose entry does not check is read from its record.
func (r *recovery) loadDelayed(t *topic) error {
	var fault error
	key := t.key()
	known := map[string]bool{}
	for _, q := range t.strays {
		for _, place := range q.places {
			known[string(place)] = true
		}
	}
	err := r.store.Scan(key.AllDelayed(), key.AllDelayed(), func(k, body []byte, err error) bool {
		var d *delayed
		switch {
		case known[string(key.Rest(k))]:
			return true
		case !key.IsDelayed(k):
			r.addStray(t, k, &store.CorruptError{Reason: "the key is not one of a delayed message"})
			return true
		case err == nil:
			d, err = decodeDelayed(t, int64(store.Due(k)), body)
		}
		if err != nil && unreadable(err) {
			d, err = r.mend(t, k)
		}
		if err != nil {
			fault = fmt.Errorf("topic %s of tenant %s: %w", t.name.Topic, t.name.Tenant, err)
			return false
		}
		r.state.addDelayed(d)
		return true
	})
	return errors.Join(fault, err)
}

// mend returns the delayed message of a key from its record. If that does not check either, the message is known by its
// due time and its number, so that the frames of the journal fit, and is noted as damaged.
func (r *recovery) mend(t *topic, key []byte) (*delayed, error) {
	d := &delayed{topic: t, due: int64(store.Due(key)), stored: true, origin: origin{id: messageID{number: store.Position(key)}}}
	body, err := r.store.Get(d.bodyKey())
	if err == nil {
		var h head
		if h, err = messageHead(body); err == nil && h.id.number == d.origin.id.number {
			d.origin = h.origin(d.due)
			return d, nil
		}
	}
	if err != nil && !unreadable(err) {
		return nil, err
	}
	if d.fault = err; err == nil {
		d.fault = errTruncated
	}
	r.damaged = append(r.damaged, d)
	return d, nil
}

// addStray quarantines what stands under keys that lead to no message: by the hash of its bytes, so that it is one entry
// whenever it is met.
func (r *recovery) addStray(t *topic, key []byte, err error, more ...[]byte) {
	places := append([][]byte{key}, more...)
	var record []byte
	for i := len(places) - 1; i >= 0 && len(record) == 0; i-- {
		record, _ = r.store.Raw(places[i]) // what can't be read has no bytes
	}
	named := record
	if len(named) == 0 {
		named = t.key().Rest(key)
	}
	q := t.strays[quarantineHash(t.name.Topic, named)]
	if q == nil {
		q = &quarantined{number: quarantineHash(t.name.Topic, named), hash: true, at: time.Now().UnixNano()}
		q.describe(record, err)
		t.addStray(q)
		t.entries++
	}
	for _, place := range places {
		q.addPlace(t.key().Rest(place))
	}
	r.state.effects.putEntry(t, q)
	r.state.effects.putTopic(t)
}

func (q *quarantined) addPlace(rest []byte) {
	for _, place := range q.places {
		if string(place) == string(rest) {
			return
		}
	}
	q.places = append(q.places, append([]byte(nil), rest...))
}

// quarantineDamaged takes delayed messages of which nothing checks out of what becomes due, unless the journal has made
// them visible.
func (r *recovery) quarantineDamaged() {
	for _, d := range r.damaged {
		if !r.state.delayed.has(d) {
			continue
		}
		r.state.delayed.remove(d)
		d.topic.hidden--
		d.topic.unstore(d.origin.payloadBytes)
		r.addStray(d.topic, d.key(), d.fault, d.bodyKey())
	}
	r.damaged = nil
}
