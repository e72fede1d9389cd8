package substrate

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Ordering says which messages of a lane are handled one at a time, in the order of their positions.
type Ordering uint8

// The orderings.
const (
	OrderNone  Ordering = iota // none
	OrderKey                   // those with the same ordering key; messages without one are free
	OrderTopic                 // all
)

// wholeTopic is the key of every message of a lane that is ordered by topic.
const wholeTopic = 1

// lane is a way through the messages of a topic: the default work queue, or a consumer group. A message of the topic is,
// for a lane,
//
//	fresh    in a stream, from its cursor on
//	parked   passed by the cursor, because an earlier message of its ordering key is not done
//	in flight  claimed at least once, or redriven: under a lease, or waiting for a retry
//	dead     a dead letter
//	done     none of these: or it was never owed to the lane
type lane struct {
	topic    *topic
	name     string // "" is the default lane
	paused   bool
	closing  bool // being deleted: it takes nothing more, and the sweep is taking it apart
	ordering Ordering

	streams []*stream // by falling priority; there is always one of priority 0, the last
	skipped spans     // of the default lane: ranges of positions that it was not owed
	owes    bool      // new messages are owed to it

	flights map[uint64]*flight
	timers  timers[*flight] // those under a lease, and those that may be claimed once their time comes
	ages    timers[*aged]   // the flights, by when they were published
	leased  int64           // flights under a lease

	keys     map[uint64]*keyQueue // of an ordered lane: what is not done of each key, from the cursor back
	runnable timers[*keyQueue]    // keys whose next message is parked and may be claimed
	parked   positions
	parkedN  int64
	stalled  bool // the last claim found nothing that may be taken, whatever ready says; until something changes

	dead  positions
	deadN int64

	fences       map[string]*fenceMark // by fence key; nil until there is one
	fencesLooked time.Time             // when idle marks were looked for last; not part of the state

	start Start  // of a group, as it was registered
	gap   uint64 // messages that retention took from a group before it claimed them
}

// span is the positions from From up to, but not including, To.
type span struct{ from, to uint64 }

// spans are in rising order and don't touch.
type spans []span

// end returns the end of the span that position is in, or position if it is in none.
func (s spans) end(position uint64) uint64 {
	for _, e := range s {
		if position >= e.from && position < e.to {
			return e.to
		}
	}
	return position
}

func (s spans) has(position uint64) bool { return s.end(position) != position }

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
	key      uint64 // of the ordering that it was met under; 0 if it is free

	index  int  // in the lane's timers, or notTimed
	age    aged // in the lane's ages
	stored bool // the store has a record of it
}

// notTimed is the index of what is in no heap.
const notTimed = -1

// aged is a flight in the order of age.
type aged struct {
	flight *flight
	index  int
}

func newLane(t *topic, name string) *lane {
	ln := &lane{
		topic: t, name: name, owes: true,
		flights: map[uint64]*flight{}, keys: map[uint64]*keyQueue{}, parked: positions{}, dead: positions{},
	}
	ln.streams = []*stream{newStream(ln, 0)}
	return ln
}

func newStream(ln *lane, level uint8) *stream {
	return &stream{lane: ln, level: level, whole: true, aside: positions{}}
}

// id names the lane in frames.
func (ln *lane) id() laneName { return laneName{ln.topic.name, ln.name} }

// base returns the stream of the lowest priority, which of a group is the only one.
func (ln *lane) base() *stream { return ln.streams[len(ln.streams)-1] }

// stream returns the stream of a priority. It makes it if there is none.
func (ln *lane) stream(level uint8) *stream {
	for i, st := range ln.streams {
		if st.level == level {
			return st
		}
		if st.level < level {
			made := newStream(ln, level)
			ln.streams = slices.Insert(ln.streams, i, made)
			return made
		}
	}
	return ln.base() // not reached: there is always one of priority 0
}

// level is the priority that counts for a message: groups have none, and an ordering key beats it.
func (ln *lane) level(o *origin) uint8 {
	if ln.name != "" {
		return 0
	}
	return o.level()
}

// ready is how many messages are fresh.
func (ln *lane) ready() int64 {
	var n int64
	for _, st := range ln.streams {
		n += st.ready
	}
	return n
}

// backlog is what is not done and not dead.
func (ln *lane) backlog() int64 { return ln.ready() + ln.parkedN + int64(len(ln.flights)) }

// firstFresh returns a position below which nothing is fresh.
func (ln *lane) firstFresh(next uint64) uint64 {
	for _, st := range ln.streams {
		if st.ready > 0 {
			next = min(next, st.cursor)
		}
	}
	return next
}

// skippedAhead returns the ranges that matter still.
func (ln *lane) skippedAhead(next uint64) spans {
	first := ln.firstFresh(next)
	i := slices.IndexFunc(ln.skipped, func(s span) bool { return s.to > first })
	if i < 0 {
		return nil
	}
	return ln.skipped[i:]
}

// setOwes begins or ends a range of positions that the lane is not owed. next is the next position.
func (ln *lane) setOwes(owes bool, next uint64) {
	if ln.owes == owes {
		return
	}
	ln.owes = owes
	ln.skipped = ln.skippedAhead(next)
	if !owes {
		ln.skipped = append(ln.skipped, span{next, math.MaxUint64})
		return
	}
	last := &ln.skipped[len(ln.skipped)-1]
	if last.to = next; last.from == next {
		ln.skipped = ln.skipped[:len(ln.skipped)-1]
	}
}

// needs reports whether the lane still wants the message at position kept. What is not known of it because its record
// does not check is taken for 0.
func (ln *lane) needs(position uint64, o *origin) bool {
	if ln.flights[position] != nil || ln.dead.has(position) {
		return true
	}
	return !ln.closing && (ln.parked.has(position) || ln.fresh(position, o))
}

// fresh reports whether the message at position was not claimed, parked or done yet.
func (ln *lane) fresh(position uint64, o *origin) bool {
	level := ln.level(o)
	for _, st := range ln.streams {
		if st.level == level {
			return st.fresh(position)
		}
	}
	return false
}

// live reports whether the message at position may still be delivered by the lane.
func (ln *lane) live(position uint64, o *origin) bool {
	return ln.flights[position] != nil || !ln.closing && (ln.parked.has(position) || ln.fresh(position, o))
}

func (ln *lane) addFlight(f *flight) {
	f.index, f.age = notTimed, aged{flight: f}
	ln.flights[f.position] = f
	ln.ages.push(&f.age)
	q := ln.queueOf(f.key)
	if q != nil {
		q.insert(f.position)
	}
	if ln.parked.has(f.position) {
		ln.unpark(f.position)
		q.unload(f.position)
	}
	if f.leased {
		ln.leased++
		if q != nil {
			q.leased++
		}
	}
	if f.leased || q == nil {
		ln.schedule(f)
	}
	ln.settleKey(q)
}

func (ln *lane) removeFlight(f *flight) {
	q := ln.queueOf(f.key)
	ln.setLeased(f, false, q)
	ln.unschedule(f)
	ln.ages.remove(&f.age)
	delete(ln.flights, f.position)
	if q != nil {
		q.drop(f.position)
		ln.settleKey(q)
	}
}

// moveFlight changes when a flight may be claimed again.
func (ln *lane) moveFlight(f *flight, leased bool, at int64) {
	q := ln.queueOf(f.key)
	ln.setLeased(f, leased, q)
	f.at = at
	switch {
	case leased || q == nil || q.awake == f.position:
		ln.schedule(f)
	default:
		ln.unschedule(f)
	}
	ln.settleKey(q)
}

func (ln *lane) setLeased(f *flight, leased bool, q *keyQueue) {
	if f.leased == leased {
		return
	}
	by := 1
	if !leased {
		by = -1
	}
	f.leased = leased
	ln.leased += int64(by)
	if q != nil {
		q.leased += by
	}
}

func (ln *lane) schedule(f *flight) {
	if f.index == notTimed {
		ln.timers.push(f)
	} else {
		ln.timers.fix(f)
	}
}

func (ln *lane) unschedule(f *flight) {
	if f.index != notTimed {
		ln.timers.remove(f)
		f.index = notTimed
	}
}

// before orders flights by when they may be claimed again, then by position.
func (f *flight) before(g *flight) bool {
	return cmp.Or(cmp.Compare(f.at, g.at), cmp.Compare(f.position, g.position)) < 0
}

func (f *flight) place() *int { return &f.index }

// before orders flights by when they were published, and puts last those whose record does not tell.
func (a *aged) before(b *aged) bool {
	c := cmp.Compare(a.flight.origin.id.millis-1, b.flight.origin.id.millis-1)
	return cmp.Or(c, cmp.Compare(a.flight.position, b.flight.position)) < 0
}

func (a *aged) place() *int { return &a.index }

// setAside notes that a message from the cursor on is not fresh. It is called while the lane is loaded.
func (ln *lane) setAside(position uint64, o *origin) {
	st := ln.stream(ln.level(o))
	if position >= st.cursor {
		st.aside.add(position)
	}
}
