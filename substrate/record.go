package substrate

import (
	"encoding/binary"
)

// Records of the store, each a version byte and the fields below in order (see codec.go for their encoding).
//
//	message     1 | id millis, number | content type | pairs n, (key, value)* | payload | envelope | parent | hops | options (options.go)
//	delivery    1 | flags (1 leased, 4 suspect) | at ns | attempt | token | reason | id millis, number | payload bytes | redriven | operator
//	dead letter 1 | attempts | reason | died ns | receipt | id millis, number | payload bytes | redriven | operator
//	expiry      1 | at ns | flags (1 deadline) | id millis, number | payload bytes | redriven | operator
//	key         1 | id millis, number | position | end of its window ns
//	state       1 | flags (1 paused) | cursor | ready | dead | published, acked, buried, redriven, discarded | policy
//	policy      for each of depth, rate, message bytes, unflushed: 0 not set, else the value + 1
//	checkpoint  1 | frame | next position | opening

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

// origin returns what is known about the message when it becomes visible.
func (h *head) origin(visible int64) origin {
	o := origin{id: h.id, payloadBytes: h.payloadBytes}
	o.expires, o.deadline = h.options.expires(visible)
	return o
}

func appendID(b []byte, id messageID) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, id.millis), id.number)
}

func (d *decoder) id() messageID { return messageID{millis: d.uint(), number: d.uint()} }

// flightSuspect is the bit of a delivery's flags for flight.suspect. Records of before have it unset.
const flightSuspect = 4

func appendFlight(b []byte, f *flight) []byte {
	var flags byte
	if f.leased {
		flags = 1
	}
	if f.suspect {
		flags |= flightSuspect
	}
	b = append(b, formatVersion, flags)
	b = binary.AppendVarint(b, f.at)
	b = binary.AppendUvarint(b, uint64(f.attempt))
	b = binary.AppendUvarint(b, f.token)
	b = appendString(b, f.reason)
	return f.origin.append(b)
}

func decodeFlight(position uint64, body []byte) (*flight, error) {
	d := decoder{b: body}
	if err := d.version("delivery"); err != nil {
		return nil, err
	}
	flags := d.byte()
	f := &flight{position: position, leased: flags&1 != 0, suspect: flags&flightSuspect != 0, at: d.int(), attempt: int(d.uint()), token: d.uint(), reason: d.string()}
	f.origin = d.origin()
	return f, d.end("delivery")
}

func (o origin) append(b []byte) []byte {
	b = appendID(b, o.id)
	b = binary.AppendUvarint(b, uint64(o.payloadBytes))
	b = binary.AppendUvarint(b, uint64(o.redriven))
	return appendString(b, o.operator)
}

func (d *decoder) origin() origin {
	return origin{id: d.id(), payloadBytes: int(d.uint()), redriven: int(d.uint()), operator: d.string()}
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
	var flags byte
	if t.paused {
		flags = 1
	}
	b = append(b, formatVersion, flags)
	b = binary.AppendUvarint(b, t.cursor)
	for _, n := range []int64{t.ready, t.dead} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	for _, n := range []uint64{t.published, t.acked, t.buried, t.redriven, t.discarded} {
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
	t.paused = d.byte()&1 != 0
	t.cursor, t.ready, t.dead = d.uint(), int64(d.uint()), int64(d.uint())
	t.published, t.acked, t.buried, t.redriven, t.discarded = d.uint(), d.uint(), d.uint(), d.uint(), d.uint()
	t.stored = d.policy()
	return t, d.end("topic state")
}

func appendPolicy(b []byte, p Policy) []byte {
	for _, v := range p.fields() {
		if v == nil {
			b = append(b, 0)
		} else {
			b = binary.AppendUvarint(b, uint64(*v)+1)
		}
	}
	return b
}

func (d *decoder) policy() Policy {
	optional := func() *int64 {
		v := d.uint()
		if v == 0 {
			return nil
		}
		n := int64(v - 1)
		return &n
	}
	return Policy{MaxDepth: optional(), MaxRatePerSec: optional(), MaxMessageBytes: optional(), MaxUnflushed: optional()}
}

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
