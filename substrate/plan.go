package substrate

import (
	"slices"
	"time"

	"github.com/longshore/longshore/limits"
)

// claimPlan is a claim's frame with what its caller needs to hand the messages out.
type claimPlan struct {
	*claimFrame
	token   uint64
	bodies  [][]byte // of the messages taken, where they are in memory
	reasons []string // their last reasons
	origins []origin
	letters []DeadLetter
	suspect bool // what was taken is one message, and suspect
}

// apply applies the frame and notes its number, which is the token of its leases.
func (p *claimPlan) apply(s *state, number uint64) {
	p.token = number
	p.claimFrame.apply(s, number)
}

// prompt reports whether the claim takes nothing but messages that were durable before its group, and buries nothing.
func (p *claimPlan) prompt(durable uint64) bool {
	return p.claimFrame != nil && len(p.buried) == 0 &&
		!slices.ContainsFunc(p.taken, func(e taken) bool { return !e.fresh || e.position >= durable })
}

// expect makes room for n messages.
func (p *claimPlan) expect(n int) {
	p.taken, p.reasons = make([]taken, 0, n), make([]string, 0, n)
	p.origins, p.bodies = make([]origin, 0, n), make([][]byte, 0, n)
}

// planner plans one claim. It changes nothing of the state but lane.stalled.
type planner struct {
	claimPlan
	lane  *lane
	r     ClaimRequest
	now   int64
	bytes int64
	full  bool
	keys  map[uint64]*keyPlan // of an ordered lane

	blocked bool // what follows can't be looked at before a key is free
}

// keyPlan is what a plan does to one ordering key. What it buries or leaves holds the key until the next claim.
type keyPlan struct {
	taken  int // pending messages taken from the front, and fresh ones that follow them
	lapsed int // leases that are over
}

// planClaim chooses what a claim takes and buries: first the messages that were delivered before and are due again, then
// those that their key sets free, then new ones; by priority, then in order of their positions.
func planClaim(ln *lane, r ClaimRequest, now time.Time) claimPlan {
	p := planner{lane: ln, r: r, now: now.UnixNano()}
	p.claimFrame = &claimFrame{
		name: ln.id(), until: now.Add(r.Lease).UnixNano(), died: p.now, first: ln.name == "" && (!ln.topic.claimed || !ln.owes),
	}
	if !ln.topic.paused && !ln.paused && !ln.closing {
		p.expect(min(r.MaxMessages, int(ln.backlog())))
		p.planLapsed()
		p.planDue()
		p.planRunnable()
		p.planFresh()
		ln.stalled = p.blocked && !p.changes()
	}
	if !p.changes() && !p.first {
		return claimPlan{}
	}
	return p.claimPlan
}

// changes reports whether the plan does anything to a message.
func (f *claimFrame) changes() bool {
	return len(f.taken)+len(f.buried)+len(f.lapsed)+len(f.parked) > 0
}

// room reports whether the claim has room for one more message.
func (p *planner) room(payloadBytes int) bool {
	if p.full {
		return false
	}
	p.bytes += int64(payloadBytes)
	p.full = len(p.taken) >= p.r.MaxMessages || p.bytes > p.r.MaxBytes && len(p.taken) > 0
	return !p.full
}

func (p *planner) key(hash uint64) *keyPlan {
	if hash == 0 {
		return nil
	}
	k := p.keys[hash]
	if k == nil {
		if p.keys == nil {
			p.keys = map[uint64]*keyPlan{}
		}
		k = &keyPlan{}
		p.keys[hash] = k
	}
	return k
}

// free reports whether the pending message at position of a key may be taken: it is the next, and nobody else holds one.
func (p *planner) free(hash, position uint64) bool {
	if hash == 0 {
		return true
	}
	q, k := p.lane.keys[hash], p.key(hash)
	return q.leased == k.lapsed && k.taken < len(q.pending) && q.pending[k.taken] == position
}

// planLapsed notes which flights of ordered keys have a lease that is over. They don't hold their key any more.
func (p *planner) planLapsed() {
	if len(p.lane.keys) == 0 {
		return
	}
	p.lane.timers.each(func(f *flight) bool {
		if f.at > p.now || len(p.lapsed) == limits.ClaimCeilingMsgs {
			return false
		}
		if f.leased && f.key != 0 {
			p.key(f.key).lapsed++
			p.lapsed = append(p.lapsed, f.position)
		}
		return true
	})
}

// planDue takes or buries the flights that are due.
func (p *planner) planDue() {
	p.lane.timers.each(func(f *flight) bool {
		switch {
		case f.at > p.now:
			return false
		case !p.free(f.key, f.position):
			return true
		case p.buries(f):
			return len(p.buried) < limits.ClaimMessages
		case p.alone(f):
			return true
		case !p.room(f.origin.payloadBytes):
			return false
		}
		p.take(taken{position: f.position, attempt: f.attempt + 1}, p.lane.topic.inTail(f.position), f.reason, f.origin)
		if k := p.key(f.key); k != nil {
			k.taken++
		}
		p.suspect, p.full = f.suspect, f.suspect
		return !p.full
	})
}

// buries buries a flight that expired, or was delivered too often, and reports whether it did. The next message of its
// key waits for the next claim.
func (p *planner) buries(f *flight) bool {
	reason := p.lane.topic.expired(f.position, p.now)
	if reason == "" {
		if f.attempt < p.r.MaxAttempts {
			return false
		}
		if reason = f.reason; reason == "" {
			reason = ReasonMaxAttempts
		}
	}
	p.bury(f.position, &deadRecord{attempts: f.attempt, reason: reason, died: p.now, origin: f.origin})
	return true
}

// planRunnable takes parked messages whose key is free, as far as they were read.
func (p *planner) planRunnable() {
	p.lane.runnable.each(func(q *keyQueue) bool {
		if p.full || len(p.buried) >= limits.ClaimMessages {
			return false
		}
		for _, e := range q.loaded {
			if !p.free(q.hash, e.position) || !p.takeParked(q, e) {
				break
			}
		}
		return true
	})
}

func (p *planner) takeParked(q *keyQueue, e *entry) bool {
	if p.expired(e) || !p.room(e.origin.payloadBytes) {
		return false
	}
	p.take(taken{position: e.position, attempt: 1, parked: true, origin: e.origin, key: q.hash}, e, "", e.origin)
	p.key(q.hash).taken++
	return true
}

// planFresh takes messages from the cursors on, and parks those whose key is held.
func (p *planner) planFresh() {
	if len(p.buried) >= limits.ClaimMessages {
		return
	}
	for _, st := range p.lane.streams {
		for _, e := range st.window {
			if p.full || !p.planEntry(st, e) {
				return
			}
		}
		if !st.whole {
			return // what follows in it comes before the streams of lower priority
		}
	}
}

// planEntry decides on one fresh message. It returns false where the claim has to stop.
func (p *planner) planEntry(st *stream, e *entry) bool {
	if p.expired(e) {
		return len(p.buried) < limits.ClaimMessages
	}
	hash := p.lane.key(&e.origin)
	if hash != 0 && !p.last(hash) {
		if p.lane.ordering == OrderTopic || p.lane.parkedN+int64(len(p.parked)) >= limits.ParkedMessages {
			p.blocked = true
			return false
		}
		p.parked = append(p.parked, parked{e.position, hash, st.level})
		return true
	}
	if !p.room(e.origin.payloadBytes) {
		return false
	}
	p.take(taken{position: e.position, attempt: 1, fresh: true, origin: e.origin}, e, "", e.origin)
	if k := p.key(hash); k != nil {
		k.taken++
	}
	return true
}

// last reports whether all earlier messages of a key are taken by this plan.
func (p *planner) last(hash uint64) bool {
	q := p.lane.keys[hash]
	return q == nil || p.key(hash).taken >= len(q.pending)
}

// expired buries a message that was never claimed, if it expired.
func (p *planner) expired(e *entry) bool {
	reason := p.lane.topic.expired(e.position, p.now)
	if reason != "" {
		p.bury(e.position, &deadRecord{reason: reason, died: p.now, origin: e.origin})
	}
	return reason != ""
}

func (p *planner) take(e taken, held *entry, reason string, o origin) {
	p.taken = append(p.taken, e)
	p.reasons = append(p.reasons, reason)
	p.origins = append(p.origins, o)
	var body []byte
	if held != nil {
		body = held.body
	}
	p.bodies = append(p.bodies, body)
}

func (p *planner) bury(position uint64, d *deadRecord) {
	p.buried = append(p.buried, buried{position, d.reason})
	p.letters = append(p.letters, d.letter(p.lane, position))
}
