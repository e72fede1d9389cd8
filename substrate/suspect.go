package substrate

// ReasonCrashed says that the process ended while the message was handled. A better reason stands.
const ReasonCrashed = "crashed"

// void ends a lease of the process before. A flight that ran when that ended may have ended it: the attempt counts, and it is
// delivered alone until a handler has come to an end with it. Others get their attempt back.
func (r *recovery) void(t *topic, f *flight, now int64) {
	if _, ran := r.ran[noteOf(laneName{topic: t.name}, f.position, f.token)]; ran {
		r.crashed++
		f.suspect = true
		if f.reason == "" {
			f.reason = ReasonCrashed
		}
	} else {
		f.attempt--
	}
	t.moveFlight(f, false, now)
	r.state.effects.putFlight(t, f)
}

// alone reports whether a suspect flight has to wait for a claim of its own, because this one has taken others.
func (p *claimPlan) alone(f *flight) bool { return f.suspect && len(p.taken) > 0 }
