package substrate

import (
	"slices"
	"sync"

	"github.com/longshore/longshore/limits"
)

// state is all that the log knows beside the messages themselves. It is a function of the frames: apply changes it, in
// the order of the journal, and nothing else does, but for the caches of topic, which can be made again from the store.
type state struct {
	topics       map[TopicName]*topic
	perTenant    map[string]int // number of topics
	nextPosition uint64
	effects      *effects            // what the store is owed since the last cut
	touched      map[*topic]struct{} // topics whose waiting claimers should look again
	delayed      timers[*delayed]    // messages that are not visible yet
	expiries     timers[*expiry]     // messages that expire
	policies     bool                // a topic has, or had, a stored policy
}

func newState() *state {
	return &state{
		topics:       map[TopicName]*topic{},
		perTenant:    map[string]int{},
		nextPosition: 1,
		effects:      newEffects(),
		touched:      map[*topic]struct{}{},
	}
}

// topic is the state of one topic and of its default lane. Lanes of consumer groups will stand beside it.
type topic struct {
	name   TopicName
	paused bool
	stored Policy

	cursor  uint64 // positions below it were claimed at least once, or are done
	ready   int64  // messages from the cursor on
	leased  int64  // flights under a lease
	dead    int64
	flights map[uint64]*flight // claimed and not done: under a lease, or waiting for a retry
	timers  timers[*flight]    // the flights, by when they may be claimed again
	hidden  int64              // delayed messages that are not visible yet

	expiring map[uint64]*expiry // messages with a ttl or a deadline that are visible and not done
	keys     firstUses          // idempotency keys in use

	published, acked, buried, redriven, discarded uint64

	tail   []*entry // messages that are not in the store yet, by position; settled ones are marked gone
	window []*entry // the next messages from the cursor on, by position
	whole  bool     // the window holds all of them
	wbytes int64    // bytes of the window
	unread uint64   // the store and the tail are to be read from this position on, when the window is empty

	// aside are positions from unread on that are not fresh any more, although nobody claimed them in their turn: they
	// expired, and may have been redriven since.
	aside map[uint64]struct{}

	evictions uint64       // how often the tail was cut from the front
	filling   sync.Mutex   // held by whoever fills the window; taken before Log.mu
	oldest    oldestCached // of the messages from the cursor on
}

// entry is a message that is held in memory. body is its record, nil if it has to be read again (it does not check).
type entry struct {
	position uint64
	origin   origin
	body     []byte
	from     []byte // where the store keeps the record, if body is nil and it is not in its place yet
	gone     bool   // done before it reached the store
}

// flight is a message that was claimed at least once, or redriven.
type flight struct {
	position uint64
	leased   bool
	at       int64 // unix ns: end of the lease, or when it may be claimed again
	attempt  int
	token    uint64 // the number of the claim's frame
	reason   string // of the last failure
	suspect  bool   // it ran when a process crashed, and has not failed otherwise since: it is delivered alone
	origin   origin

	index  int  // in the topic's timers
	stored bool // the store has a record of it
}

// origin is what stays the same about a message while it is tried, dies and is redriven.
type origin struct {
	id           messageID
	payloadBytes int
	redriven     int
	operator     string // who redrove it last

	expires  int64 // unix ns, 0 if never; known while the message becomes visible, then see expiry
	deadline bool  // expires is a deadline
}

// deadRecord is a dead letter of the default lane.
type deadRecord struct {
	attempts int
	reason   string
	died     int64 // unix ns
	receipt  []byte
	origin   origin
}

func newTopic(name TopicName) *topic {
	return &topic{
		name: name, whole: true,
		flights: map[uint64]*flight{}, expiring: map[uint64]*expiry{}, aside: map[uint64]struct{}{},
	}
}

// topic returns the named topic, which it makes if there is none.
func (s *state) topic(name TopicName) *topic {
	t := s.topics[name]
	if t == nil {
		t = newTopic(name)
		s.insert(t)
	}
	return t
}

func (s *state) insert(t *topic) {
	s.topics[t.name] = t
	s.perTenant[t.name.Tenant]++
}

// backlog is what max_depth counts.
func (t *topic) backlog() int64 { return t.ready + t.hidden + int64(len(t.flights)) }

func (t *topic) addFlight(f *flight) {
	t.flights[f.position] = f
	t.timers.push(f)
	if f.leased {
		t.leased++
	}
}

func (t *topic) removeFlight(f *flight) {
	t.setLeased(f, false)
	t.timers.remove(f)
	delete(t.flights, f.position)
}

// moveFlight changes when a flight may be claimed again.
func (t *topic) moveFlight(f *flight, leased bool, at int64) {
	t.setLeased(f, leased)
	f.at = at
	t.timers.fix(f)
}

func (t *topic) setLeased(f *flight, leased bool) {
	if f.leased == leased {
		return
	}
	f.leased = leased
	if leased {
		t.leased++
	} else {
		t.leased--
	}
}

// enqueue takes a new message into the tail, and into the window if that reaches so far.
func (t *topic) enqueue(e *entry) {
	t.tail = append(t.tail, e)
	if t.whole {
		t.whole = t.extendWindow(e)
	}
}

// extendWindow appends an entry, unless the window is full.
func (t *topic) extendWindow(e *entry) bool {
	if len(t.window) >= limits.WindowMessages || t.wbytes+int64(len(e.body)) > limits.WindowBytes && len(t.window) > 0 {
		return false
	}
	t.window = append(t.window, e)
	t.wbytes += int64(len(e.body))
	t.unread = e.position + 1
	return true
}

// leaveOut takes a position out of the fresh messages.
func (t *topic) leaveOut(position uint64) {
	i := slices.IndexFunc(t.window, func(e *entry) bool { return e.position == position })
	switch {
	case i >= 0:
		t.wbytes -= int64(len(t.window[i].body))
		t.window = slices.Delete(t.window, i, i+1)
	case position >= t.unread:
		t.aside[position] = struct{}{}
	}
}

// advance moves the cursor past position and drops what lies behind it from the window.
func (t *topic) advance(position uint64) {
	t.cursor = position + 1
	t.unread = max(t.unread, t.cursor)
	n := 0
	for n < len(t.window) && t.window[n].position < t.cursor {
		t.wbytes -= int64(len(t.window[n].body))
		t.window[n] = nil
		n++
	}
	t.window = t.window[n:]
}

// inTail returns the entry at position, if the message is not in the store yet.
func (t *topic) inTail(position uint64) *entry {
	lo, hi := 0, len(t.tail)
	for lo < hi {
		if mid := (lo + hi) / 2; t.tail[mid].position < position {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(t.tail) && t.tail[lo].position == position && !t.tail[lo].gone {
		return t.tail[lo]
	}
	return nil
}

// before orders flights by when they may be claimed again, then by position.
func (f *flight) before(g *flight) bool {
	if f.at != g.at {
		return f.at < g.at
	}
	return f.position < g.position
}

func (f *flight) place() *int { return &f.index }
