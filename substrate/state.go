package substrate

import (
	"cmp"
	"maps"
	"slices"
)

// state is all that the log knows beside the messages themselves. It is a function of the frames: apply changes it, in
// the order of the journal, and nothing else does, but for the caches of topic, which can be made again from the store.
type state struct {
	topics       map[TopicName]*topic
	tenants      map[string]*tenant
	nextPosition uint64
	effects      *effects            // what the store is owed since the last cut
	touched      map[*topic]struct{} // topics whose waiting claimers should look again
	delayed      timers[*delayed]    // messages that are not visible yet
	expiries     timers[*expiry]     // messages that expire
	policies     bool                // a topic has, or had, a stored policy
	watched      map[*topic]struct{} // topics that the sweep has to look at: all that have groups, or something to sweep
	values       values
	erasing      map[string]struct{} // tenants that are being erased: they have no topics, and get none
}

func newState() *state {
	return &state{
		topics:       map[TopicName]*topic{},
		tenants:      map[string]*tenant{},
		nextPosition: 1,
		effects:      newEffects(),
		touched:      map[*topic]struct{}{},
		watched:      map[*topic]struct{}{},
		values:       newValues(),
		erasing:      map[string]struct{}{},
	}
}

// topic is the state of one topic.
type topic struct {
	name   TopicName
	of     *tenant
	paused bool
	stored Policy

	work    *lane            // the default lane
	groups  map[string]*lane // nil until there is one
	mode    LaneMode         // of the default lane
	claimed bool             // the default lane was claimed from

	hidden   int64              // delayed messages that are not visible yet
	visible  uint64             // messages that ever became visible
	kept     kept               // all messages
	counted  bool               // kept is known; else an older program wrote the state: see recovery.count
	pinned   int64              // payload bytes of messages that stay for groups, or are kept: see pin
	expiring map[uint64]*expiry // messages with a ttl or a deadline that are visible and not done
	keys     firstUses          // idempotency keys in use

	quarantined positions               // of messages whose records do not check: no lane has them, and nothing drops them
	strays      map[uint64]*quarantined // by hash: what is quarantined and has no position; nil until there is some
	entries     int64                   // in quarantine, both kinds
	skipped     int64                   // messages that could not be quarantined: not part of the state

	// unswept are the positions among which messages may be stored that no lane needs any more.
	unswept span

	published, acked, buried, redriven, discarded uint64

	tail      []*entry // messages that are not in the store yet, by position; settled ones are marked gone
	evictions uint64   // how often the tail was cut from the front
}

// entry is a message that is held in memory. body is its record, nil if it has to be read again (it does not check).
type entry struct {
	position uint64
	origin   origin
	body     []byte
	from     []byte // where the store keeps the record, if body is nil and it is not in its place yet
	gone     bool   // done before it reached the store
}

// origin is what stays the same about a message while it is tried, dies and is redriven.
type origin struct {
	id           messageID
	payloadBytes int
	redriven     int
	operator     string // who redrove it last
	priority     uint8
	order        uint64 // hash of its ordering key; 0 if it has none

	expires  int64 // unix ns, 0 if never; known while the message becomes visible, then see expiry
	deadline bool  // expires is a deadline
}

// level is the priority that counts: an ordering key beats it.
func (o *origin) level() uint8 {
	if o.order != 0 {
		return 0
	}
	return o.priority
}

// deadRecord is a dead letter of a lane.
type deadRecord struct {
	attempts int
	reason   string
	died     int64 // unix ns
	receipt  []byte
	origin   origin
}

func newTopic(name TopicName) *topic {
	t := &topic{name: name, counted: true, expiring: map[uint64]*expiry{}, quarantined: positions{}}
	t.work = newLane(t, "")
	return t
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
	t.of = s.tenant(t.name.Tenant)
	t.of.topics++
	t.of.kept.add(t.kept.messages, t.kept.bytes)
}

// lane returns the named lane, or nil. The default lane of a topic is made with it.
func (s *state) lane(name laneName) *lane {
	if name.lane == "" {
		return s.topic(name.topic).work
	}
	return s.existing(name)
}

// existing returns the named lane, or nil.
func (s *state) existing(name laneName) *lane {
	t := s.topics[name.topic]
	switch {
	case t == nil:
		return nil
	case name.lane == "":
		return t.work
	}
	return t.groups[name.lane]
}

// eachLane calls yield for the default lane and for each group, in no order, until it returns false.
func (t *topic) eachLane(yield func(*lane) bool) {
	if !yield(t.work) {
		return
	}
	for ln := range maps.Values(t.groups) {
		if !yield(ln) {
			return
		}
	}
}

// depth is what max_depth counts: the backlog of the default lane, or, without one, the largest of a group.
func (t *topic) depth() int64 {
	depth := t.work.backlog()
	if !t.work.owes {
		for _, ln := range t.groups {
			depth = max(depth, ln.backlog())
		}
	}
	return depth + t.hidden
}

// needed reports whether a lane, or the quarantine, still wants the message kept.
func (t *topic) needed(position uint64, o *origin) bool {
	found := t.quarantined.has(position)
	if found {
		return true
	}
	t.eachLane(func(ln *lane) bool {
		found = ln.needs(position, o)
		return !found
	})
	return found
}

// isDead reports whether the message at position is a dead letter of any lane, or in quarantine.
func (t *topic) isDead(position uint64) bool {
	found := t.quarantined.has(position)
	if found {
		return true
	}
	t.eachLane(func(ln *lane) bool {
		found = ln.dead.has(position)
		return !found
	})
	return found
}

// pin counts payload bytes of messages that are stored, that the default lane does not need, and that are no dead letters:
// what retention bounds.
func (t *topic) pin(bytes int) { t.pinned = max(t.pinned+int64(bytes), 0) }

// enqueue takes a message that becomes visible into the tail, and into the lanes that are owed it.
func (t *topic) enqueue(e *entry) {
	t.visible++
	t.tail = append(t.tail, e)
	if t.work.owes {
		t.work.stream(e.origin.level()).offer(e)
	}
	for _, ln := range t.groups {
		if !ln.closing {
			ln.base().offer(e)
		}
	}
}

// tailFrom returns the index of the first entry of the tail at a position or above.
func (t *topic) tailFrom(position uint64) int {
	i, _ := slices.BinarySearchFunc(t.tail, position, func(e *entry, p uint64) int { return cmp.Compare(e.position, p) })
	return i
}

// inTail returns the entry at position, if the message is not in the store yet.
func (t *topic) inTail(position uint64) *entry {
	if i := t.tailFrom(position); i < len(t.tail) && t.tail[i].position == position && !t.tail[i].gone {
		return t.tail[i]
	}
	return nil
}

// mayHoldGarbage notes that messages from one position up to another may be stored that no lane needs any more.
func (t *topic) mayHoldGarbage(from, to uint64) {
	if from >= to {
		return
	}
	if t.unswept.from == t.unswept.to {
		t.unswept = span{from, to}
		return
	}
	t.unswept = span{min(t.unswept.from, from), max(t.unswept.to, to)}
}
