package substrate

import (
	"encoding/binary"
	"fmt"
)

// A frame is one thing that happened. Its body in the journal is a version byte and the fields below, in order:
//
//	1 publish  at ns | first position | n, (tenant, topic, due ns or 0, end of its key's window ns or 0, message record)*
//	2 claim    tenant, topic, lane | until ns | n, taken* | died ns | n, (position, reason)* | flags (1 first) | n, lapsed position* | n, (position, key, level)*
//	    taken  position, attempt, flags (1 fresh, 2 parked), [origin if either], [key if parked]
//	3 settle   n, (tenant, topic, lane, position, verdict, flags (1 keep, 2 unrun), at ns, reason, receipt)* | as publish
//	4 extend   tenant, topic, lane, position | until ns
//	5 topic    tenant, topic | flags (1 paused) | policy
//	6 redrive  tenant, topic, lane | at ns | operator or "" | n, (position, origin with the operator)*
//	7 discard  tenant, topic, lane | n, (position, payload bytes, priority, key)* | flags (1 keep)
//	8 ripen    first position | n, (tenant, topic, due ns, number of its id)*
//	9 expire   died ns | n, (tenant, topic, lane, position, reason)*
//	10 lane    tenant, topic, lane | flags (1 paused, 2 closing) | ordering                       frame_lanes.go
//	11 group   tenant, topic, lane | what, ordering << 4 | kind of start, value | cursor | ready | n, voided* | n, aside*
//	12 sweep   tenant, topic | up to | keys ns or 0 | n, (position, payload bytes)* | n, (lane, cursor, passed)*
//	13 mode    tenant, topic | mode | owes
//	14 fence   tenant, topic, lane | key | token | at ns                                           frame_fences.go
//	15 unfence tenant, topic, lane | n, key*
//	16 quarantine tenant, topic | what | n, (flags (1 number is a hash) | number | quarantine entry without version and places)*  frame_quarantine.go
//	17 settle and store  as settle | n, (tenant, bucket, key, flags (1 deleted), value)*           frame_values.go
//	18 erase   tenant | flags (1 done)                                                            frame_erase.go
//
// Version 2 had the same frames but for kind 18, and in those of kind 6 one operator for all. Version 1 had neither the flags of settle and discard nor what stands behind the buried of a claim.
//
// Everything in it is absolute (a time, an attempt, a position), so that applying it needs nothing but the state.
type frame interface {
	kind() uint8
	// durable reports whether the frame must be on disk before it is answered. The others survive a crash of the process.
	durable() bool
	append(b []byte) []byte
	apply(s *state, number uint64)
}

// The kinds of frames, as the journal stores them. Numbers are never used again for something else.
const (
	kindPublish = 1
	kindClaim   = 2
	kindSettle  = 3
	kindExtend  = 4
	kindTopic   = 5
	kindRedrive = 6
	kindDiscard = 7
	kindRipen   = 8
	kindExpire  = 9
	kindLane    = 10
	kindGroup   = 11
	kindSweep   = 12
	kindMode    = 13
	kindFence   = 14
	kindUnfence = 15

	kindQuarantine = 16

	kindSettleValues = 17

	kindErase = 18
)

type (
	// published is one message of a commit. body is its record; the rest of it repeats what the record holds.
	published struct {
		name        TopicName
		origin      origin
		body        []byte
		due         int64          // unix ns; 0 for a message that is visible at once
		key         *firstUse      // if it has an idempotency key
		options     MessageOptions // as in body
		text        string         // of the id, while it is published; not part of the frame
		reservation *Reservation   // not part of the frame
	}

	publishFrame struct {
		relaxed bool // need not be durable when it is answered; not part of the frame
		at      int64
		first   uint64 // position of the first that is visible at once
		entries []published
	}

	laneName struct {
		topic TopicName
		lane  string
	}

	claimFrame struct {
		name   laneName
		until  int64
		taken  []taken
		died   int64
		buried []buried
		first  bool     // the first claim of the lane ever
		lapsed []uint64 // flights whose lease is over, and that have to wait for an earlier one of their key
		parked []parked // passed by the cursor, because their key is held
	}

	taken struct {
		position uint64
		attempt  int
		fresh    bool // taken from the cursor on: origin is set
		parked   bool // it was parked: origin and key are set
		origin   origin
		key      uint64
	}

	parked struct {
		position uint64
		key      uint64
		level    uint8
	}

	buried struct {
		position uint64
		reason   string
	}

	settleFrame struct {
		relaxed bool // as for a publish
		items   []settled
		outbox  publishFrame
		writes  []valueWrite
	}

	settled struct {
		name     laneName
		position uint64
		verdict  Verdict
		keep     bool  // Ack: the message stays for a while
		unrun    bool  // Bury: the attempt is taken back
		at       int64 // Retry, Release: when it may be claimed again; Bury: when it died
		reason   string
		receipt  []byte
	}

	extendFrame struct {
		name     laneName
		position uint64
		until    int64
	}

	topicFrame struct {
		name   TopicName
		paused bool
		policy Policy
	}

	redriveFrame struct {
		name     laneName
		at       int64
		operator string // of all items, in frames of older programs; "": that of each item's origin
		items    []redriven
	}

	redriven struct {
		position uint64
		origin   origin
	}

	discardFrame struct {
		name  laneName
		items []discarded
		keep  bool // the messages stay for a while
	}

	discarded struct {
		position     uint64
		payloadBytes int
		priority     uint8
		order        uint64
	}
)

func (*publishFrame) kind() uint8 { return kindPublish }
func (*claimFrame) kind() uint8   { return kindClaim }
func (*extendFrame) kind() uint8  { return kindExtend }
func (*topicFrame) kind() uint8   { return kindTopic }
func (*redriveFrame) kind() uint8 { return kindRedrive }
func (*discardFrame) kind() uint8 { return kindDiscard }

func (f *publishFrame) durable() bool { return !f.relaxed }
func (f *claimFrame) durable() bool   { return len(f.buried) > 0 }
func (f *settleFrame) durable() bool  { return !f.relaxed }
func (*extendFrame) durable() bool    { return false }
func (*topicFrame) durable() bool     { return true }
func (*redriveFrame) durable() bool   { return true }
func (*discardFrame) durable() bool   { return true }

func (n TopicName) append(b []byte) []byte { return appendString(appendString(b, n.Tenant), n.Topic) }

func (n laneName) append(b []byte) []byte { return appendString(n.topic.append(b), n.lane) }

func (d *decoder) topicName() TopicName { return TopicName{Tenant: d.string(), Topic: d.string()} }

func (d *decoder) laneName() laneName { return laneName{topic: d.topicName(), lane: d.string()} }

func (f *publishFrame) append(b []byte) []byte {
	b = binary.AppendUvarint(binary.AppendVarint(b, f.at), f.first)
	b = binary.AppendUvarint(b, uint64(len(f.entries)))
	for i := range f.entries {
		e := &f.entries[i]
		b = binary.AppendVarint(e.name.append(b), e.due)
		var until int64
		if e.key != nil {
			until = e.key.until
		}
		b = appendString(binary.AppendVarint(b, until), e.body)
	}
	return b
}

func (d *decoder) publish() publishFrame {
	f := publishFrame{at: d.int(), first: d.uint()}
	f.entries = make([]published, d.count(5))
	for i := range f.entries {
		e := published{name: d.topicName(), due: d.int()}
		until := d.int()
		e.body = append([]byte(nil), d.bytes()...)
		if d.err != nil {
			return publishFrame{}
		}
		head, err := messageHead(e.body)
		if err != nil {
			d.err, d.b = err, nil
			return publishFrame{}
		}
		e.origin, e.options = head.origin(visibleAt(f.at, e.due)), head.options
		if until != 0 {
			e.key = &firstUse{hash: hashKey(&e.options), id: e.origin.id, until: until}
		}
		f.entries[i] = e
	}
	return f
}

func (f *claimFrame) append(b []byte) []byte {
	b = binary.AppendVarint(f.name.append(b), f.until)
	b = binary.AppendUvarint(b, uint64(len(f.taken)))
	for i := range f.taken {
		b = f.taken[i].append(b)
	}
	b = binary.AppendVarint(b, f.died)
	b = binary.AppendUvarint(b, uint64(len(f.buried)))
	for _, e := range f.buried {
		b = appendString(binary.AppendUvarint(b, e.position), e.reason)
	}
	b = append(b, bit(f.first, 1))
	b = appendPositions(b, f.lapsed)
	return appendParked(b, f.parked)
}

func appendParked(b []byte, list []parked) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, e := range list {
		b = append(binary.AppendUvarint(binary.AppendUvarint(b, e.position), e.key), e.level)
	}
	return b
}

func (d *decoder) parkedList() []parked {
	list := make([]parked, d.count(3))
	for i := range list {
		list[i] = parked{position: d.uint(), key: d.uint(), level: d.byte()}
	}
	return list
}

func (e *taken) append(b []byte) []byte {
	b = binary.AppendUvarint(b, e.position)
	b = binary.AppendUvarint(b, uint64(e.attempt))
	b = append(b, bit(e.fresh, 1)|bit(e.parked, 2))
	if e.fresh || e.parked {
		b = e.origin.append(b)
	}
	if e.parked {
		b = binary.AppendUvarint(b, e.key)
	}
	return b
}

// bit returns b if is, else 0.
func bit(is bool, b byte) byte {
	if is {
		return b
	}
	return 0
}

func (d *decoder) claim() *claimFrame {
	f := &claimFrame{name: d.laneName(), until: d.int()}
	f.taken = make([]taken, d.count(3))
	for i := range f.taken {
		t := taken{position: d.uint(), attempt: int(d.uint())}
		flags := d.byte()
		t.fresh, t.parked = flags&1 != 0, flags&2 != 0
		if t.fresh || t.parked {
			t.origin = d.origin()
		}
		if t.parked {
			t.key = d.uint()
		}
		f.taken[i] = t
	}
	f.died = d.int()
	f.buried = make([]buried, d.count(2))
	for i := range f.buried {
		f.buried[i] = buried{position: d.uint(), reason: d.string()}
	}
	if d.format < 2 {
		return f
	}
	f.first = d.byte()&1 != 0
	f.lapsed = d.positions()
	f.parked = d.parkedList()
	return f
}

func (f *settleFrame) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(f.items)))
	for i := range f.items {
		s := &f.items[i]
		b = binary.AppendUvarint(s.name.append(b), s.position)
		b = binary.AppendVarint(append(b, byte(s.verdict), bit(s.keep, 1)|bit(s.unrun, 2)), s.at)
		b = appendString(appendString(b, s.reason), s.receipt)
	}
	return appendWrites(f.outbox.append(b), f.writes)
}

func (d *decoder) settle() *settleFrame {
	f := &settleFrame{items: make([]settled, d.count(8))}
	for i := range f.items {
		s := settled{name: d.laneName(), position: d.uint(), verdict: Verdict(d.byte())}
		if d.format >= 2 {
			flags := d.byte()
			s.keep, s.unrun = flags&1 != 0, flags&2 != 0
		}
		s.at, s.reason, s.receipt = d.int(), d.string(), append([]byte(nil), d.bytes()...)
		f.items[i] = s
	}
	f.outbox = d.publish()
	return f
}

func (f *extendFrame) append(b []byte) []byte {
	return binary.AppendVarint(binary.AppendUvarint(f.name.append(b), f.position), f.until)
}

func (f *topicFrame) append(b []byte) []byte {
	return appendPolicy(append(f.name.append(b), bit(f.paused, 1)), f.policy)
}

func (f *redriveFrame) append(b []byte) []byte {
	b = appendString(binary.AppendVarint(f.name.append(b), f.at), f.operator)
	b = binary.AppendUvarint(b, uint64(len(f.items)))
	for _, r := range f.items {
		b = r.origin.append(binary.AppendUvarint(b, r.position))
	}
	return b
}

func (d *decoder) redrive() *redriveFrame {
	f := &redriveFrame{name: d.laneName(), at: d.int(), operator: d.string()}
	f.items = make([]redriven, d.count(6))
	for i := range f.items {
		f.items[i] = redriven{position: d.uint(), origin: d.origin()}
		if d.format < 3 { // it has the operator of the redrive before
			f.items[i].origin.operator = f.operator
		}
	}
	return f
}

func (f *discardFrame) append(b []byte) []byte {
	b = binary.AppendUvarint(f.name.append(b), uint64(len(f.items)))
	for _, r := range f.items {
		b = binary.AppendUvarint(binary.AppendUvarint(b, r.position), uint64(r.payloadBytes))
		b = binary.AppendUvarint(append(b, r.priority), r.order)
	}
	return append(b, bit(f.keep, 1))
}

func (d *decoder) discard() *discardFrame {
	f := &discardFrame{name: d.laneName(), items: make([]discarded, d.count(2))}
	for i := range f.items {
		f.items[i] = discarded{position: d.uint(), payloadBytes: int(d.uint())}
		if d.format >= 2 {
			f.items[i].priority, f.items[i].order = d.byte(), d.uint()
		}
	}
	if d.format >= 2 {
		f.keep = d.byte()&1 != 0
	}
	return f
}

// encodeFrame appends the body of a frame.
func encodeFrame(b []byte, f frame) []byte { return f.append(append(b, formatVersion)) }

// decodeFrame returns the frame of a body. It copies what it keeps.
func decodeFrame(kind uint8, body []byte) (frame, error) {
	d := &decoder{b: body}
	if err := d.version("frame"); err != nil {
		return nil, err
	}
	var f frame
	switch kind {
	case kindPublish:
		p := d.publish()
		f = &p
	case kindClaim:
		f = d.claim()
	case kindSettle:
		f = d.settle()
	case kindSettleValues:
		f = d.settleValues()
	case kindExtend:
		f = &extendFrame{name: d.laneName(), position: d.uint(), until: d.int()}
	case kindTopic:
		f = &topicFrame{name: d.topicName(), paused: d.byte()&1 != 0, policy: d.policy()}
	case kindRedrive:
		f = d.redrive()
	case kindDiscard:
		f = d.discard()
	case kindRipen:
		f = d.ripen()
	case kindExpire:
		f = d.expire()
	case kindLane:
		f = d.laneSettings()
	case kindGroup:
		f = d.group()
	case kindSweep:
		f = d.sweep()
	case kindMode:
		f = &modeFrame{name: d.topicName(), mode: LaneMode(d.byte()), owes: d.byte()&1 != 0}
	case kindFence:
		f = &fenceFrame{name: d.laneName(), fence: Fence{Key: d.string(), Token: d.uint()}, at: d.int()}
	case kindUnfence:
		f = &unfenceFrame{name: d.laneName(), keys: d.strings()}
	case kindQuarantine:
		f = d.quarantineFrame()
	case kindErase:
		f = d.erase()
	default:
		return nil, fmt.Errorf("frame of kind %d was written by a newer program", kind)
	}
	return f, d.end("frame")
}
