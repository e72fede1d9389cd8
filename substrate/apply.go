package substrate

// The apply functions change the state by one frame. They decide nothing, read no clock and do no I/O: live work and
// recovery are the same code, and the same frames always give the same state.

func (f *publishFrame) apply(s *state, _ uint64) {
	position := f.first
	for i := range f.entries {
		e := &f.entries[i]
		t := s.topic(e.name)
		t.published++
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
		held := &entry{position: position, origin: e.origin, body: e.body}
		t.ready++
		t.enqueue(held)
		s.effects.putMessage(t, held)
		s.expire(t, position, e.origin)
		position++
	}
	if position > f.first {
		s.nextPosition = position
	}
}

func (f *claimFrame) apply(s *state, number uint64) {
	t := s.topic(f.name.topic)
	for i := range f.taken {
		e := &f.taken[i]
		fl := t.flights[e.position]
		if e.fresh {
			fl = &flight{position: e.position, leased: true, at: f.until, origin: e.origin}
			t.addFlight(fl)
			t.ready--
			t.advance(e.position)
		} else {
			t.moveFlight(fl, true, f.until)
		}
		fl.attempt, fl.token = e.attempt, number
		s.effects.putFlight(t, fl)
		s.recheck(t, e.position, f.until)
	}
	for _, e := range f.buried {
		s.bury(t, t.flights[e.position], e.reason, f.died, nil)
	}
	s.effects.putTopic(t)
}

func (f *settleFrame) apply(s *state, number uint64) {
	for i := range f.items {
		f.items[i].apply(s)
	}
	f.outbox.apply(s, number)
}

func (e *settled) apply(s *state) {
	t := s.topic(e.name.topic)
	fl := t.flights[e.position]
	switch e.verdict {
	case Ack:
		t.acked++
		s.removeFlight(t, fl)
		s.unexpire(t, e.position)
		s.effects.dropMessage(t, e.position, fl.origin.payloadBytes)
	case Bury:
		s.bury(t, fl, e.reason, e.at, e.receipt)
	case Retry, Release:
		if e.verdict == Release {
			fl.attempt--
		}
		if e.reason != "" {
			fl.reason = e.reason
		}
		t.moveFlight(fl, false, e.at)
		s.effects.putFlight(t, fl)
		s.recheck(t, e.position, 0)
	}
	s.touch(t)
}

func (f *extendFrame) apply(s *state, _ uint64) {
	t := s.topic(f.name.topic)
	fl := t.flights[f.position]
	if f.until < fl.at {
		s.touch(t) // claimers wait for a later time
	}
	t.moveFlight(fl, true, f.until)
	s.effects.putFlight(t, fl)
	s.recheck(t, f.position, f.until)
}

func (f *topicFrame) apply(s *state, _ uint64) {
	t := s.topic(f.name)
	t.paused, t.stored = f.paused, f.policy
	s.policies = s.policies || f.policy != (Policy{})
	s.touch(t)
}

func (f *redriveFrame) apply(s *state, _ uint64) {
	t := s.topic(f.name.topic)
	for _, r := range f.items {
		t.dead--
		t.redriven++
		fl := &flight{position: r.position, at: f.at, origin: r.origin}
		fl.origin.redriven++
		fl.origin.operator = f.operator
		t.addFlight(fl)
		s.effects.putFlight(t, fl)
		s.effects.dropDead(t, r.position)
	}
	s.touch(t)
}

func (f *discardFrame) apply(s *state, _ uint64) {
	t := s.topic(f.name.topic)
	for _, r := range f.items {
		t.dead--
		t.discarded++
		s.effects.dropDead(t, r.position)
		s.effects.dropMessage(t, r.position, r.payloadBytes)
	}
	s.touch(t)
}

// bury turns a flight into a dead letter. Its message stays.
func (s *state) bury(t *topic, fl *flight, reason string, died int64, receipt []byte) {
	s.removeFlight(t, fl)
	s.kill(t, fl.position, &deadRecord{
		attempts: fl.attempt, reason: reason, died: died, receipt: receipt, origin: fl.origin,
	})
}

// kill makes a message a dead letter, which expires no more.
func (s *state) kill(t *topic, position uint64, d *deadRecord) {
	t.dead++
	t.buried++
	s.unexpire(t, position)
	s.effects.putDead(t, position, d)
}

func (s *state) removeFlight(t *topic, fl *flight) {
	t.removeFlight(fl)
	s.effects.dropFlight(t, fl)
}

// touch notes that a topic changed: its state is owed to the store, and claimers that wait for it should look.
func (s *state) touch(t *topic) {
	s.effects.putTopic(t)
	s.touched[t] = struct{}{}
}
