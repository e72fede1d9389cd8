package substrate

import "encoding/binary"

// expiry is the end of a message that has a ttl or a deadline and is not done. It counts while nobody runs the message:
// before its attempts and between them.
type expiry struct {
	topic    *topic
	position uint64
	at       int64 // unix ns
	deadline bool  // it is a deadline, not a ttl
	origin   origin

	check  int64 // when to look: at, or the end of the lease that hides the message
	index  int   // in the state's heap
	stored bool  // the store has a record of it
}

func (e *expiry) before(f *expiry) bool {
	if e.check != f.check {
		return e.check < f.check
	}
	return e.position < f.position
}

func (e *expiry) place() *int { return &e.index }

func (e *expiry) reason() string {
	if e.deadline {
		return ReasonDeadline
	}
	return ReasonTTLExpired
}

// expire notes when a message that just became visible expires, if it does.
func (s *state) expire(t *topic, position uint64, o origin) {
	if o.expires == 0 {
		return
	}
	s.addExpiry(&expiry{topic: t, position: position, at: o.expires, deadline: o.deadline, origin: o, check: o.expires})
}

func (s *state) addExpiry(e *expiry) {
	e.topic.expiring[e.position] = e
	s.expiries.push(e)
	s.effects.putExpiry(e)
}

// unexpire forgets a message's expiry once no lane may deliver the message any more.
func (s *state) unexpire(t *topic, position uint64, o *origin) {
	if t.expiring[position] == nil {
		return
	}
	live := false
	t.eachLane(func(ln *lane) bool {
		live = ln.live(position, o)
		return !live
	})
	if !live {
		s.forget(t, position)
	}
}

// forget drops a message's expiry, if it has one.
func (s *state) forget(t *topic, position uint64) {
	e := t.expiring[position]
	if e == nil {
		return
	}
	delete(t.expiring, position)
	s.expiries.remove(e)
	s.effects.dropExpiry(e)
}

// recheck looks at the message's expiry again at a time, or when it comes if that is later.
func (s *state) recheck(t *topic, position uint64, at int64) {
	if e := t.expiring[position]; e != nil {
		e.check = max(e.at, at)
		s.expiries.fix(e)
	}
}

// expired returns the reason for which the message may not be delivered any more, or "".
func (t *topic) expired(position uint64, now int64) string {
	if e := t.expiring[position]; e != nil && e.at <= now {
		return e.reason()
	}
	return ""
}

// expireFrame buries messages that expired while nobody ran them.
type expireFrame struct {
	died  int64
	items []lapsed
}

type lapsed struct {
	name     laneName
	position uint64
	reason   string // "": no lane may deliver the message, it only has to be forgotten that it expires
}

func (*expireFrame) kind() uint8   { return kindExpire }
func (*expireFrame) durable() bool { return true }

func (f *expireFrame) append(b []byte) []byte {
	b = binary.AppendVarint(b, f.died)
	b = binary.AppendUvarint(b, uint64(len(f.items)))
	for _, e := range f.items {
		b = appendString(binary.AppendUvarint(e.name.append(b), e.position), e.reason)
	}
	return b
}

func (e *expiry) append(b []byte) []byte {
	var flags byte
	if e.deadline {
		flags = 1
	}
	return e.origin.append(append(binary.AppendVarint(append(b, formatVersion), e.at), flags))
}

func decodeExpiry(t *topic, position uint64, body []byte) (*expiry, error) {
	d := decoder{b: body}
	if err := d.version("expiry"); err != nil {
		return nil, err
	}
	e := &expiry{topic: t, position: position, at: d.int(), deadline: d.byte()&1 != 0, origin: d.origin(), stored: true}
	e.check = e.at
	return e, d.end("expiry")
}

func (d *decoder) expire() *expireFrame {
	f := &expireFrame{died: d.int()}
	f.items = make([]lapsed, d.count(5))
	for i := range f.items {
		f.items[i] = lapsed{name: d.laneName(), position: d.uint(), reason: d.string()}
	}
	return f
}

func (f *expireFrame) apply(s *state, _ uint64) {
	for _, e := range f.items {
		if e.reason == "" {
			s.forget(s.topic(e.name.topic), e.position)
			continue
		}
		s.buryAny(s.lane(e.name), e.position, e.reason, f.died)
	}
}

// planExpire returns the frame that buries what expired, up to n messages, or nil, and their dead letters. What runs is
// looked at again at the end of its lease.
func (s *state) planExpire(now int64, n int) (*expireFrame, []DeadLetter) {
	f := &expireFrame{died: now}
	var letters []DeadLetter
	var running []*expiry
	s.expiries.each(func(e *expiry) bool {
		if e.check > now || len(f.items)+len(running) >= n {
			return false
		}
		found := f.add(e, now, &letters)
		switch {
		case e.runs(now) > 0:
			running = append(running, e)
		case !found:
			f.items = append(f.items, lapsed{name: e.topic.work.id(), position: e.position})
		}
		return true
	})
	for _, e := range running {
		e.check = max(e.runs(now), e.at)
		s.expiries.fix(e)
	}
	if len(f.items) == 0 {
		return nil, nil
	}
	return f, letters
}

// add buries an expired message in the lanes that don't run it, and reports whether there are such.
func (f *expireFrame) add(e *expiry, now int64, letters *[]DeadLetter) (found bool) {
	e.topic.eachLane(func(ln *lane) bool {
		if !ln.live(e.position, &e.origin) {
			return true
		}
		dead := deadRecord{reason: e.reason(), died: now, origin: e.origin}
		if fl := ln.flights[e.position]; fl != nil {
			if fl.leased && fl.at > now {
				return true
			}
			dead.attempts, dead.origin = fl.attempt, fl.origin
		}
		found = true
		f.items = append(f.items, lapsed{ln.id(), e.position, e.reason()})
		*letters = append(*letters, dead.letter(ln, e.position))
		return true
	})
	return found
}

// runs returns the first end of a lease under which the message runs at now, or 0.
func (e *expiry) runs(now int64) int64 {
	var first int64
	e.topic.eachLane(func(ln *lane) bool {
		if fl := ln.flights[e.position]; fl != nil && fl.leased && fl.at > now && (first == 0 || fl.at < first) {
			first = fl.at
		}
		return true
	})
	return first
}
