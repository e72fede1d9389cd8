package substrate

// ReasonCrashed says that the process ended while the message was handled. A better reason stands.
const ReasonCrashed = "crashed"

// void ends a lease of the process before. A flight that ran when that ended may have ended it: the attempt counts, and it is
// delivered alone until a handler has come to an end with it. Others get their attempt back.
func (r *recovery) void(ln *lane, f *flight, now int64) {
	if _, ran := r.ran[noteOf(ln.id(), f.position, f.token)]; ran {
		r.crashed++
		f.suspect = true
		if f.reason == "" {
			f.reason = ReasonCrashed
		}
	} else {
		f.attempt--
	}
	ln.moveFlight(f, false, now)
	r.state.effects.putFlight(ln, f)
	r.state.recheck(ln.topic, f.position, 0)
}

// alone reports whether a suspect flight has to wait for a claim of its own, because this one has taken others.
func (p *planner) alone(f *flight) bool { return f.suspect && len(p.taken) > 0 }
