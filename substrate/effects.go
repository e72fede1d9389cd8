package substrate

import (
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/store"
)

// ref names a message of a topic.
type ref struct {
	topic    *topic
	position uint64
}

// laneRef names a message of a lane.
type laneRef struct {
	lane     *lane
	position uint64
}

// pointerRef names the pointer to a fresh message with a priority.
type pointerRef struct {
	topic    *topic
	level    uint8
	position uint64
}

// groupRef names a consumer group that is gone.
type groupRef struct {
	topic *topic
	name  string
}

// effects gathers what the store is owed since the last cut: only the newest of each, and nothing for what came and went
// between two cuts.
type effects struct {
	messages  map[ref]*entry       // to put
	done      map[ref]struct{}     // messages that the store has, to delete
	flights   map[laneRef]*flight  // to put, as they are when the cut is made
	landed    map[laneRef]struct{} // flights and parked messages that the store has, to delete
	parked    map[laneRef]uint64   // to put: their keys
	dead      map[laneRef]*deadRecord
	pointers  map[pointerRef]bool       // to put, or to delete
	ended     map[groupRef]struct{}     // to delete
	fences    map[fenceRef]*fenceMark   // to put; nil to delete
	entries   map[entryRef]*quarantined // to put; nil to delete
	places    map[placeRef]struct{}     // of what was in quarantine, to delete
	hidden    map[*delayed]struct{}     // delayed messages to put
	shown     map[*delayed]struct{}     // those that the store has, to delete
	expiring  map[ref]*expiry           // to put; nil to delete
	keys      map[keyRef]*firstUse      // to put; nil to delete
	topics    map[*topic]struct{}
	values    *pendingValues
	erasures  map[string]uint64 // records that tenants are being erased, to put with their frames; 0 to delete
	bytes     int64             // of the messages and values to put
	freed     int64             // bytes of what is deleted from the store
	lastBytes int64             // an upper bound of the bytes of the rest, which one transaction has to hold

	// recovering says that the store may hold messages of a batch that a crash cut short: then none is young.
	recovering bool
}

func newEffects() *effects { return newEffectsFor(0) }

// newEffectsFor makes effects that expect so many messages.
func newEffectsFor(messages int) *effects {
	return &effects{
		messages: make(map[ref]*entry, messages),
		done:     map[ref]struct{}{},
		flights:  map[laneRef]*flight{},
		landed:   map[laneRef]struct{}{},
		parked:   map[laneRef]uint64{},
		dead:     map[laneRef]*deadRecord{},
		pointers: map[pointerRef]bool{},
		ended:    map[groupRef]struct{}{},
		fences:   map[fenceRef]*fenceMark{},
		entries:  map[entryRef]*quarantined{},
		places:   map[placeRef]struct{}{},
		hidden:   map[*delayed]struct{}{},
		shown:    map[*delayed]struct{}{},
		expiring: map[ref]*expiry{},
		keys:     map[keyRef]*firstUse{},
		topics:   map[*topic]struct{}{},
		values:   newPendingValues(),
		erasures: map[string]uint64{},
	}
}

// ops is the number of entries that a cut would write.
func (e *effects) ops() int {
	return len(e.messages) + len(e.done) + len(e.flights) + len(e.landed) + len(e.dead) + len(e.topics) +
		len(e.hidden) + len(e.shown) + len(e.expiring) + len(e.keys) + len(e.parked) + len(e.pointers) + len(e.ended) + len(e.fences) +
		len(e.entries) + len(e.places) + e.values.count() + len(e.erasures)
}

// full reports whether the effects have grown to what one batch, or the memory for them, may hold.
func (e *effects) full() bool {
	return len(e.messages)+len(e.hidden)+e.values.count() >= limits.WriteBehindLagMessages || e.bytes >= limits.WriteBehindLagBytes ||
		e.lastBytes >= limits.WriteBehindLastBytes
}

// opBytes bounds what an entry costs in a transaction beside its key's names and its texts.
const opBytes = 160

// flightBytes is what the record of a delivery mostly takes.
const flightBytes = 96

// owe counts an entry of the last transaction.
func (e *effects) owe(t *topic, texts int) {
	e.lastBytes += int64(opBytes + len(t.name.Tenant) + len(t.name.Topic) + texts)
}

// putTopic owes the state of a topic and of its groups.
func (e *effects) putTopic(t *topic) {
	if _, owed := e.topics[t]; !owed {
		e.topics[t] = struct{}{}
		e.owe(t, 0)
		for name := range t.groups {
			e.owe(t, len(name))
		}
	}
}

func (e *effects) dropGroup(t *topic, name string) {
	e.ended[groupRef{t, name}] = struct{}{}
	e.owe(t, len(name))
}

// putPointer owes the pointer to a fresh message with a priority.
func (e *effects) putPointer(t *topic, m *entry) {
	e.pointers[pointerRef{t, m.origin.level(), m.position}] = true
	e.owe(t, 0)
}

func (e *effects) dropPointer(t *topic, level uint8, position uint64) {
	r := pointerRef{t, level, position}
	if e.pointers[r] && !e.recovering {
		delete(e.pointers, r) // it came and went
		return
	}
	e.pointers[r] = false
	e.owe(t, 0)
}

func (e *effects) putMessage(t *topic, m *entry) {
	e.messages[ref{t, m.position}] = m
	e.bytes += int64(len(m.body))
}

func (e *effects) dropMessage(t *topic, position uint64, payloadBytes int) {
	r := ref{t, position}
	m, young := e.messages[r]
	if !young || e.recovering {
		e.done[r] = struct{}{}
		e.freed += int64(payloadBytes) + opBytes
		e.owe(t, 0)
	}
	if !young {
		return
	}
	m.gone = true
	e.bytes -= int64(len(m.body))
	delete(e.messages, r)
}

func (e *effects) putFlight(ln *lane, f *flight) {
	r := laneRef{ln, f.position}
	if _, stored := e.landed[r]; stored {
		delete(e.landed, r)
		f.stored = true
	}
	delete(e.parked, r)
	e.flights[r] = f
	e.owe(ln.topic, len(ln.name)+len(f.reason)+len(f.origin.operator))
}

func (e *effects) dropFlight(ln *lane, f *flight) {
	r := laneRef{ln, f.position}
	delete(e.flights, r)
	if f.stored {
		e.landed[r] = struct{}{}
		e.owe(ln.topic, len(ln.name))
	}
}

// putParked owes a parked message: it stands where its delivery state will.
func (e *effects) putParked(ln *lane, position, key uint64) {
	r := laneRef{ln, position}
	delete(e.landed, r)
	e.parked[r] = key
	e.owe(ln.topic, len(ln.name))
}

func (e *effects) dropParked(ln *lane, position uint64) {
	r := laneRef{ln, position}
	delete(e.parked, r)
	e.landed[r] = struct{}{}
	e.owe(ln.topic, len(ln.name))
}

func (e *effects) putDead(ln *lane, position uint64, d *deadRecord) {
	e.dead[laneRef{ln, position}] = d
	e.owe(ln.topic, len(ln.name)+len(d.reason)+len(d.origin.operator)+len(d.receipt))
}

func (e *effects) dropDead(ln *lane, position uint64) {
	e.dead[laneRef{ln, position}] = nil
	e.owe(ln.topic, len(ln.name))
}

func (e *effects) putDelayed(d *delayed) {
	e.hidden[d] = struct{}{}
	e.bytes += int64(len(d.body))
	e.owe(d.topic, 0)
}

func (e *effects) dropDelayed(d *delayed) {
	if _, young := e.hidden[d]; young {
		delete(e.hidden, d)
		e.bytes -= int64(len(d.body))
	}
	if d.stored || e.recovering {
		e.shown[d] = struct{}{}
		e.owe(d.topic, len(d.topic.name.Topic)) // two keys
	}
}

func (e *effects) putExpiry(x *expiry) {
	e.expiring[ref{x.topic, x.position}] = x
	e.owe(x.topic, len(x.origin.operator))
}

func (e *effects) dropExpiry(x *expiry) {
	r := ref{x.topic, x.position}
	if !x.stored {
		delete(e.expiring, r)
		return
	}
	e.expiring[r] = nil
	e.owe(x.topic, 0)
}

func (e *effects) putKey(t *topic, f *firstUse) {
	e.keys[keyRef{t, f.hash}] = f
	e.owe(t, 0)
}

func (e *effects) dropKey(t *topic, f *firstUse) {
	r := keyRef{t, f.hash}
	if !f.stored {
		delete(e.keys, r)
		return
	}
	e.keys[r] = nil
	e.owe(t, 0)
}

// keyRef names an idempotency key of a topic.
type keyRef struct {
	topic *topic
	hash  keyHash
}

// batch is a cut: what the store is to be given so that it holds the state as of a frame.
type batch struct {
	frame  uint64
	early  []store.Op // messages: nothing names them before last is stored; and values, see cutValues
	last   []store.Op
	dead   map[laneRef]*deadRecord // as in effects, for readers until the batch is stored
	values *pendingValues          // as dead
	hidden []*delayed              // delayed messages that need not be held in memory once the batch is stored
	until  map[*topic]uint64       // per topic the last position that the batch holds
	record []byte                  // the checkpoint
	freed  int64                   // bytes of what it deletes
	erase  *store.Erasure          // a step to do before; nil for none
	sync   bool                    // to be made durable
	synced bool                    // storing it made the batches before it durable
}

// cut turns the effects into a batch. State and effects must be those of exactly the frames up to cp.frame.
func (e *effects) cut(cp checkpoint) *batch {
	b := &batch{frame: cp.frame, dead: e.dead, values: e.values, until: map[*topic]uint64{}, record: cp.append(nil), freed: e.freed}
	b.early = make([]store.Op, 0, len(e.messages)+len(e.hidden))
	var of *topic
	var key store.Topic
	for r, m := range e.messages {
		if r.topic != of {
			of, key = r.topic, r.key()
		}
		b.early = append(b.early, store.Op{Key: key.Message(r.position), Body: m.body, From: m.from})
	}
	for d := range e.hidden {
		d.stored = true
		b.hidden = append(b.hidden, d)
		b.early = append(b.early, store.Op{Key: d.bodyKey(), Body: d.body})
		b.last = append(b.last, store.Op{Key: d.key(), Body: d.append(nil)})
	}
	e.cutValues(b)
	e.cutState(b)
	e.cutOptions(b)
	e.cutErasures(b)
	return b
}

// cutState adds the state of topics and groups, and what is done.
func (e *effects) cutState(b *batch) {
	for r := range e.ended {
		b.last = append(b.last, store.Op{Key: r.topic.key().Group(r.name)})
	}
	for t := range e.topics {
		if n := len(t.tail); n > 0 {
			b.until[t] = t.tail[n-1].position
		}
		b.last = append(b.last, store.Op{Key: t.key().State(), Body: appendTopic(nil, t)})
		for name, ln := range t.groups {
			b.last = append(b.last, store.Op{Key: t.key().Group(name), Body: appendGroup(nil, ln)})
		}
	}
	for r := range e.done {
		b.last = append(b.last, store.Op{Key: r.key().Message(r.position)})
	}
	for r, put := range e.pointers {
		op := store.Op{Key: r.topic.key().Priority(r.level, r.position)}
		if put {
			op.Body = []byte{formatVersion}
		}
		b.last = append(b.last, op)
	}
	e.cutLanes(b)
}

// cutLanes adds deliveries, parked messages and dead letters.
func (e *effects) cutLanes(b *batch) {
	for r := range e.landed {
		b.last = append(b.last, store.Op{Key: r.key()})
	}
	for r, f := range e.flights {
		f.stored = true
		b.last = append(b.last, store.Op{Key: r.key(), Body: appendFlight(make([]byte, 0, flightBytes), f)})
	}
	for r, key := range e.parked {
		b.last = append(b.last, store.Op{Key: r.key(), Body: appendParkedRecord(nil, key)})
	}
	for r, d := range e.dead { // what goes comes first: a new group may have the name of an old one
		if d == nil {
			b.last = append(b.last, store.Op{Key: r.deadKey()})
		}
	}
	for r, d := range e.dead {
		if d != nil {
			b.last = append(b.last, store.Op{Key: r.deadKey(), Body: appendDead(nil, d)})
		}
	}
	e.cutFences(b)
	e.cutQuarantine(b)
}

// cutOptions adds what messages with options need.
func (e *effects) cutOptions(b *batch) {
	for d := range e.shown {
		b.last = append(b.last, store.Op{Key: d.key()}, store.Op{Key: d.bodyKey()})
	}
	for r, x := range e.expiring {
		op := store.Op{Key: r.key().Expiry(r.position)}
		if x != nil {
			x.stored = true
			op.Body = x.append(nil)
		}
		b.last = append(b.last, op)
	}
	for r, f := range e.keys {
		op := store.Op{Key: r.topic.key().Idempotency(r.hash[:])}
		if f != nil {
			f.stored = true
			op.Body = f.append(nil)
		}
		b.last = append(b.last, op)
	}
}

// stored tells the state that the store has the batch. Log.mu is held.
func (b *batch) stored() {
	for t, position := range b.until {
		t.evict(position)
	}
	for _, d := range b.hidden {
		d.body = nil
	}
}

func (t *topic) key() store.Topic { return store.TopicOf(t.name.Tenant, t.name.Topic) }

func (r ref) key() store.Topic { return r.topic.key() }

// key is where the store keeps the delivery state.
func (r laneRef) key() []byte { return r.lane.topic.key().Lane(r.lane.name, r.position) }

func (r laneRef) deadKey() []byte { return r.lane.topic.key().Dead(r.lane.name, r.position) }
