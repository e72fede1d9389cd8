package substrate

// The apply functions change the state by one frame. They decide nothing, read no clock and do no I/O: live work and
// recovery are the same code, and the same frames always give the same state.

func (f *publishFrame) apply(s *state, _ uint64) {
	position := f.first
	for i := range f.entries {
		e := &f.entries[i]
		t := s.topic(e.name)
		t.published++
		t.store(e.origin.payloadBytes)
		s.touch(t)
		if e.key != nil {
			if e.due == 0 {
				e.key.position = position
			}
			s.remember(t, e.key, f.at)
		}
		if e.due != 0 {
			d := &delayed{topic: t, due: e.due, origin: e.origin, body: e.body}
			s.addDelayed(d)
			s.effects.putDelayed(d)
			continue
		}
		s.show(t, &entry{position: position, origin: e.origin, body: e.body})
		position++
	}
	if position > f.first {
		s.nextPosition = position
	}
}

// show makes a message visible.
func (s *state) show(t *topic, e *entry) {
	t.enqueue(e)
	if !t.work.owes {
		t.pin(e.origin.payloadBytes)
		if !t.needed(e.position, &e.origin) { // nobody is owed it
			t.mayHoldGarbage(e.position, e.position+1)
			s.watched[t] = struct{}{}
		}
	}
	s.effects.putMessage(t, e)
	if t.work.owes && e.origin.level() > 0 {
		s.effects.putPointer(t, e)
	}
	s.expire(t, e.position, e.origin)
}

func (f *claimFrame) apply(s *state, number uint64) {
	ln := s.lane(f.name)
	t := ln.topic
	if f.first {
		t.claimed = true
		if t.mode == LaneAuto {
			t.work.setOwes(true, s.nextPosition)
		}
	}
	for _, position := range f.lapsed {
		fl := ln.flights[position]
		ln.moveFlight(fl, false, fl.at)
		s.effects.putFlight(ln, fl)
	}
	for i := range f.taken {
		s.take(ln, &f.taken[i], f.until, number)
	}
	for _, e := range f.buried {
		s.buryAny(ln, e.position, e.reason, f.died)
	}
	for i := range f.parked {
		s.park(ln, &f.parked[i])
	}
	s.effects.putTopic(ln.topic)
}

// take puts a message under a lease.
func (s *state) take(ln *lane, e *taken, until int64, number uint64) {
	fl := ln.flights[e.position]
	switch {
	case fl != nil:
		ln.moveFlight(fl, true, until)
	case e.parked:
		fl = &flight{position: e.position, leased: true, at: until, origin: e.origin, key: e.key, stored: true}
		ln.addFlight(fl)
	default:
		fl = &flight{position: e.position, leased: true, at: until, origin: e.origin, key: ln.key(&e.origin)}
		s.leave(ln, e.position, ln.level(&e.origin))
		ln.addFlight(fl)
	}
	fl.attempt, fl.token = e.attempt, number
	s.effects.putFlight(ln, fl)
}

// park sets a message aside that a claim met while its key was held.
func (s *state) park(ln *lane, e *parked) {
	s.leave(ln, e.position, e.level)
	ln.park(e.position, e.key)
	s.effects.putParked(ln, e.position, e.key)
}

// leave moves the cursor past a message that is fresh no more.
func (s *state) leave(ln *lane, position uint64, level uint8) {
	st := ln.stream(level)
	st.ready--
	st.advance(position)
	s.dropPointer(ln, position, level)
}

func (s *state) dropPointer(ln *lane, position uint64, level uint8) {
	if level > 0 {
		s.effects.dropPointer(ln.topic, level, position)
	}
}

func (f *settleFrame) apply(s *state, number uint64) {
	for i := range f.items {
		f.items[i].apply(s)
	}
	f.outbox.apply(s, number)
	for i := range f.writes {
		s.setValue(&f.writes[i], number)
	}
}

func (e *settled) apply(s *state) {
	ln := s.lane(e.name)
	t := ln.topic
	fl := ln.flights[e.position]
	switch e.verdict {
	case Ack:
		t.acked++
		s.removeFlight(ln, fl)
		s.done(ln, e.position, &fl.origin, e.keep)
	case Bury:
		if e.unrun {
			fl.attempt--
		}
		s.bury(ln, fl, e.reason, e.at, e.receipt)
	case Retry, Release:
		if e.verdict == Release {
			fl.attempt--
		} else {
			fl.suspect = false
		}
		if e.reason != "" {
			fl.reason = e.reason
		}
		ln.moveFlight(fl, false, e.at)
		s.effects.putFlight(ln, fl)
		s.recheck(t, e.position, 0)
	}
	s.touch(t)
}

// done ends a lane's part in a message. It goes if no other lane needs it, unless it is kept for a while.
func (s *state) done(ln *lane, position uint64, o *origin, keep bool) {
	t := ln.topic
	s.unexpire(t, position, o)
	needed := t.needed(position, o)
	switch {
	case !needed && !keep:
		s.drop(t, position, o.payloadBytes)
		if ln.name != "" {
			t.pin(-o.payloadBytes)
			s.dropOldPointer(t, position, o)
		}
		return
	case !needed:
		t.mayHoldGarbage(position, position+1)
		s.watched[t] = struct{}{}
	}
	if ln.name == "" && !t.isDead(position) {
		t.pin(o.payloadBytes)
	}
}

// dropOldPointer drops the pointer to a message that the default lane never met, because it was turned off before.
func (s *state) dropOldPointer(t *topic, position uint64, o *origin) {
	if level := o.level(); level > 0 {
		s.effects.dropPointer(t, level, position)
	}
}

func (f *extendFrame) apply(s *state, _ uint64) {
	ln := s.lane(f.name)
	fl := ln.flights[f.position]
	if f.until < fl.at {
		s.touch(ln.topic) // claimers wait for a later time
	}
	ln.moveFlight(fl, true, f.until)
	s.effects.putFlight(ln, fl)
	s.recheck(ln.topic, f.position, 0)
}

func (f *topicFrame) apply(s *state, _ uint64) {
	t := s.topic(f.name)
	t.paused, t.stored = f.paused, f.policy
	s.policies = s.policies || f.policy != (Policy{})
	s.touch(t)
}

func (f *redriveFrame) apply(s *state, _ uint64) {
	ln := s.lane(f.name)
	for _, r := range f.items {
		ln.topic.redriven++
		s.revive(ln, r.position, &r.origin)
		fl := &flight{position: r.position, at: f.at, origin: r.origin, key: ln.key(&r.origin)}
		fl.origin.redriven++
		if f.operator != "" {
			fl.origin.operator = f.operator
		}
		ln.addFlight(fl)
		s.effects.putFlight(ln, fl)
	}
	s.touch(ln.topic)
}

// revive takes a position out of the dead letters.
func (s *state) revive(ln *lane, position uint64, o *origin) {
	ln.deadN--
	ln.dead.remove(position)
	if ln.name != "" && !ln.topic.work.needs(position, o) && !ln.topic.isDead(position) {
		ln.topic.pin(o.payloadBytes)
	}
	s.effects.dropDead(ln, position)
	s.effects.putTopic(ln.topic)
}

func (f *discardFrame) apply(s *state, _ uint64) {
	ln := s.lane(f.name)
	for _, r := range f.items {
		ln.topic.discarded++
		o := origin{payloadBytes: r.payloadBytes, priority: r.priority, order: r.order}
		s.revive(ln, r.position, &o)
		s.done(ln, r.position, &o, f.keep)
	}
	s.touch(ln.topic)
}

// bury turns a flight into a dead letter. Its message stays.
func (s *state) bury(ln *lane, fl *flight, reason string, died int64, receipt []byte) {
	s.removeFlight(ln, fl)
	s.kill(ln, fl.position, &deadRecord{
		attempts: fl.attempt, reason: reason, died: died, receipt: receipt, origin: fl.origin,
	})
}

// buryAny buries a message that is in flight, parked or fresh. Of the latter two only those that expire are buried.
func (s *state) buryAny(ln *lane, position uint64, reason string, died int64) {
	if fl := ln.flights[position]; fl != nil {
		s.bury(ln, fl, reason, died, nil)
		return
	}
	o := ln.topic.expiring[position].origin
	if ln.parked.has(position) {
		ln.dropParked(position, ln.key(&o))
		s.effects.dropParked(ln, position)
	} else {
		st := ln.stream(ln.level(&o))
		st.ready--
		st.leaveOut(position)
		s.dropPointer(ln, position, st.level)
	}
	s.kill(ln, position, &deadRecord{reason: reason, died: died, origin: o})
}

// kill makes a message a dead letter of the lane, for which it expires no more.
func (s *state) kill(ln *lane, position uint64, d *deadRecord) {
	if ln.name != "" && !ln.topic.work.needs(position, &d.origin) && !ln.topic.isDead(position) {
		ln.topic.pin(-d.origin.payloadBytes)
	}
	ln.deadN++
	ln.dead.add(position)
	ln.topic.buried++
	s.unexpire(ln.topic, position, &d.origin)
	s.effects.putDead(ln, position, d)
	s.touch(ln.topic)
}

func (s *state) removeFlight(ln *lane, fl *flight) {
	ln.removeFlight(fl)
	s.effects.dropFlight(ln, fl)
}

// touch notes that a topic changed: its state is owed to the store, and claimers that wait for it should look.
func (s *state) touch(t *topic) {
	s.effects.putTopic(t)
	t.work.stalled = false
	for _, ln := range t.groups {
		ln.stalled = false
	}
	s.touched[t] = struct{}{}
}
