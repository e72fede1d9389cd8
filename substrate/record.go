package substrate

import (
	"encoding/binary"
)

// Records of the store, each a version byte and the fields below in order (see codec.go for their encoding).
//
//	message     version | id millis, number | content type | pairs n, (key, value)* | payload | envelope | parent | hops | options (options.go)
//	delivery    version | flags (1 leased, 4 suspect) | at ns | attempt | token | reason | origin | key
//	parked      version | flags (2 parked) | key
//	dead letter version | attempts | reason | died ns | receipt | origin
//	expiry      version | at ns | flags (1 deadline) | origin
//	key         version | id millis, number | position | end of its window ns
//	state       version | flags (1 paused, 2 claimed, 4 owed) | mode | ordering | 1 if the lane is paused | n, (priority, cursor, ready)*
//	            | n, skipped (from, to)* | visible | pinned bytes | unswept from, to | messages, bytes | published, acked, buried, redriven, discarded | policy
//	group       version | flags (1 paused, 2 closing) | ordering | cursor | ready | gap | kind of start, value
//	pointer     version
//	fence mark  version | token | at ns
//	quarantine entry  version | at ns | level | payload bytes | reason | error | length | preview | n, place*
//	origin      id millis, number | payload bytes | redriven | operator | priority | hash of the ordering key
//	policy      n, for each of policyFields: 0 not set, else the value + 1
//	checkpoint  version | frame | next position | opening
//
// In version 2 the state had neither the messages nor the bytes that are stored, which are counted then.
//
// Version 1 had origins without priority and ordering key, deliveries without key, four policy values without their number,
// and this state:
//
//	state       1 | flags (1 paused) | cursor | ready | dead | published, acked, buried, redriven, discarded | policy

func appendMessage(b []byte, id messageID, m *Message) []byte {
	b = append(b, formatVersion)
	b = appendID(b, id)
	b = appendString(b, m.ContentType)
	b = binary.AppendUvarint(b, uint64(len(m.Metadata)))
	for _, p := range m.Metadata {
		b = appendString(b, p.Key)
		b = appendString(b, p.Value)
	}
	b = appendString(b, m.Payload)
	b = appendString(b, m.Envelope)
	b = appendString(b, m.Parent)
	b = binary.AppendUvarint(b, uint64(m.Hops))
	return appendString(b, m.Options.Encode())
}

// decodeMessage returns the message of a record. It copies nothing but strings: the slices alias body.
func decodeMessage(name TopicName, body []byte) (Message, error) {
	d := decoder{b: body}
	if err := d.version("message"); err != nil {
		return Message{}, err
	}
	m := Message{ID: d.id().String(), Tenant: name.Tenant, Topic: name.Topic, ContentType: d.string()}
	if n := d.count(2); n > 0 {
		m.Metadata = make([]Pair, n)
	}
	for i := range m.Metadata {
		m.Metadata[i] = Pair{Key: d.string(), Value: d.string()}
	}
	m.Payload, m.Envelope, m.Parent, m.Hops = d.bytes(), d.bytes(), d.string(), uint32(d.uint())
	options := d.bytes()
	if err := d.end("message"); err != nil {
		return Message{}, err
	}
	var err error
	m.Options, err = decodeOptions(options)
	return m, err
}

// head is what the log itself needs to know of a message.
type head struct {
	id           messageID
	payloadBytes int
	options      MessageOptions
}

// messageHead reads a message's record without copying its payload.
func messageHead(body []byte) (head, error) {
	d := decoder{b: body}
	if err := d.version("message"); err != nil {
		return head{}, err
	}
	h := head{id: d.id()}
	d.bytes()
	for range d.count(2) {
		d.bytes()
		d.bytes()
	}
	h.payloadBytes = len(d.bytes())
	d.bytes()
	d.bytes()
	d.uint()
	options := d.bytes()
	if err := d.end("message"); err != nil {
		return head{}, err
	}
	var err error
	h.options, err = decodeOptions(options)
	return h, err
}

// known returns what the record itself tells.
func (h *head) known() origin {
	return origin{id: h.id, payloadBytes: h.payloadBytes, priority: h.options.Priority, order: h.options.order()}
}

// origin returns what is known about the message when it becomes visible.
func (h *head) origin(visible int64) origin {
	o := h.known()
	o.expires, o.deadline = h.options.expires(visible)
	return o
}

func appendID(b []byte, id messageID) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, id.millis), id.number)
}

func (d *decoder) id() messageID { return messageID{millis: d.uint(), number: d.uint()} }

// Bits of a delivery's flags.
const (
	flightLeased  = 1
	flightParked  = 2 // the record is of a parked message, not of a delivery
	flightSuspect = 4
)

func appendFlight(b []byte, f *flight) []byte {
	b = append(b, formatVersion, bit(f.leased, flightLeased)|bit(f.suspect, flightSuspect))
	b = binary.AppendVarint(b, f.at)
	b = binary.AppendUvarint(b, uint64(f.attempt))
	b = binary.AppendUvarint(b, f.token)
	b = appendString(b, f.reason)
	return binary.AppendUvarint(f.origin.append(b), f.key)
}

func appendParkedRecord(b []byte, key uint64) []byte {
	return binary.AppendUvarint(append(b, formatVersion, flightParked), key)
}

// decodeFlight returns a delivery, or, if it is nil, the key of a parked message.
func decodeFlight(position uint64, body []byte) (f *flight, key uint64, err error) {
	d := decoder{b: body}
	if err := d.version("delivery"); err != nil {
		return nil, 0, err
	}
	flags := d.byte()
	if flags&flightParked != 0 {
		key = d.uint()
		return nil, key, d.end("parked message")
	}
	f = &flight{
		position: position, leased: flags&flightLeased != 0, suspect: flags&flightSuspect != 0,
		at: d.int(), attempt: int(d.uint()), token: d.uint(), reason: d.string(), origin: d.origin(),
	}
	if d.format >= 2 {
		f.key = d.uint()
	}
	return f, 0, d.end("delivery")
}

func (o origin) append(b []byte) []byte {
	b = appendID(b, o.id)
	b = binary.AppendUvarint(b, uint64(o.payloadBytes))
	b = binary.AppendUvarint(b, uint64(o.redriven))
	b = append(appendString(b, o.operator), o.priority)
	return binary.AppendUvarint(b, o.order)
}

func (d *decoder) origin() origin {
	o := origin{id: d.id(), payloadBytes: int(d.uint()), redriven: int(d.uint()), operator: d.string()}
	if d.format >= 2 {
		o.priority, o.order = d.byte(), d.uint()
	}
	return o
}

func appendDead(b []byte, r *deadRecord) []byte {
	b = append(b, formatVersion)
	b = binary.AppendUvarint(b, uint64(r.attempts))
	b = appendString(b, r.reason)
	b = binary.AppendVarint(b, r.died)
	b = appendString(b, r.receipt)
	return r.origin.append(b)
}

func decodeDead(body []byte) (*deadRecord, error) {
	d := decoder{b: body}
	if err := d.version("dead letter"); err != nil {
		return nil, err
	}
	r := &deadRecord{attempts: int(d.uint()), reason: d.string(), died: d.int(), receipt: append([]byte(nil), d.bytes()...)}
	r.origin = d.origin()
	return r, d.end("dead letter")
}

func appendTopic(b []byte, t *topic) []byte {
	ln := t.work
	b = append(b, formatVersion, bit(t.paused, 1)|bit(t.claimed, 2)|bit(ln.owes, 4))
	b = append(b, byte(t.mode), byte(ln.ordering), bit(ln.paused, 1))
	b = binary.AppendUvarint(b, uint64(len(ln.streams)))
	for _, st := range ln.streams {
		b = binary.AppendUvarint(append(b, st.level), st.cursor)
		b = binary.AppendUvarint(b, uint64(st.ready))
	}
	b = binary.AppendUvarint(b, uint64(len(ln.skipped)))
	for _, s := range ln.skipped {
		b = binary.AppendUvarint(binary.AppendUvarint(b, s.from), s.to)
	}
	for _, n := range []uint64{
		t.visible, uint64(t.pinned), t.unswept.from, t.unswept.to, uint64(t.kept.messages), uint64(t.kept.bytes),
		t.published, t.acked, t.buried, t.redriven, t.discarded,
	} {
		b = binary.AppendUvarint(b, n)
	}
	return appendPolicy(b, t.stored)
}

func decodeTopic(name TopicName, body []byte) (*topic, error) {
	d := decoder{b: body}
	if err := d.version("topic state"); err != nil {
		return nil, err
	}
	t := newTopic(name)
	flags := d.byte()
	t.paused = flags&1 != 0
	if d.format == 1 {
		d.firstState(t)
	} else {
		t.claimed, t.work.owes = flags&2 != 0, flags&4 != 0
		d.state(t)
	}
	t.published, t.acked, t.buried, t.redriven, t.discarded = d.uint(), d.uint(), d.uint(), d.uint(), d.uint()
	t.stored = d.policy()
	return t, d.end("topic state")
}

// firstState reads the lane of version 1, in which there was one.
func (d *decoder) firstState(t *topic) {
	t.claimed, t.counted = true, false
	cursor, ready := d.uint(), int64(d.uint())
	d.uint() // dead letters: they are counted
	t.work.base().jump(cursor, ready, positions{})
}

func (d *decoder) state(t *topic) {
	ln := t.work
	t.mode, ln.ordering, ln.paused = LaneMode(d.byte()), Ordering(d.byte()), d.byte()&1 != 0
	for range d.count(3) {
		level := d.byte()
		cursor, ready := d.uint(), int64(d.uint())
		ln.stream(level).jump(cursor, ready, positions{})
	}
	for range d.count(2) {
		ln.skipped = append(ln.skipped, span{d.uint(), d.uint()})
	}
	t.visible, t.pinned = d.uint(), int64(d.uint())
	t.unswept = span{d.uint(), d.uint()}
	if t.counted = d.format >= 3; t.counted {
		t.kept = kept{int64(d.uint()), int64(d.uint())}
	}
}

func appendGroup(b []byte, ln *lane) []byte {
	st := ln.base()
	b = append(b, formatVersion, bit(ln.paused, 1)|bit(ln.closing, 2), byte(ln.ordering))
	b = binary.AppendUvarint(b, st.cursor)
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(st.ready)), ln.gap)
	return ln.start.append(b)
}

func decodeGroup(t *topic, name string, body []byte) (*lane, error) {
	d := decoder{b: body}
	if err := d.version("consumer group"); err != nil {
		return nil, err
	}
	ln := newLane(t, name)
	flags := d.byte()
	ln.paused, ln.closing, ln.ordering = flags&1 != 0, flags&2 != 0, Ordering(d.byte())
	cursor, ready := d.uint(), int64(d.uint())
	ln.base().jump(cursor, ready, positions{})
	ln.gap, ln.start = d.uint(), d.start()
	return ln, d.end("consumer group")
}

func appendPolicy(b []byte, p Policy) []byte {
	fields := p.fields()
	b = binary.AppendUvarint(b, uint64(len(fields)))
	for _, v := range fields {
		if *v == nil {
			b = append(b, 0)
		} else {
			b = binary.AppendUvarint(b, uint64(**v)+1)
		}
	}
	return b
}

func (d *decoder) policy() Policy {
	var p Policy
	fields := p.fields()
	n := uint64(firstPolicyFields)
	if d.format >= 2 {
		n = d.uint()
	}
	if n > uint64(len(fields)) {
		d.fail()
		return Policy{}
	}
	for _, field := range fields[:n] {
		if v := d.uint(); v != 0 {
			value := int64(v - 1)
			*field = &value
		}
	}
	return p
}

// firstPolicyFields is how many values a policy had in version 1.
const firstPolicyFields = 4

// checkpoint says up to where the store holds the journal.
type checkpoint struct {
	frame        uint64 // the last frame whose effects are in the store
	nextPosition uint64
	opening      uint64 // how often the log was opened
}

func (c checkpoint) append(b []byte) []byte {
	b = append(b, formatVersion)
	for _, n := range []uint64{c.frame, c.nextPosition, c.opening} {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

func decodeCheckpoint(body []byte) (checkpoint, error) {
	d := decoder{b: body}
	if err := d.version("checkpoint"); err != nil {
		return checkpoint{}, err
	}
	c := checkpoint{frame: d.uint(), nextPosition: d.uint(), opening: d.uint()}
	return c, d.end("checkpoint")
}
