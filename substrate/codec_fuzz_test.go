package substrate

import (
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/journal"
)

// decodedBytes bounds what a decoder may allocate for each byte of its input, beside decodedSlack: an element of a list
// takes up to so much more room in memory than it does encoded.
const (
	decodedBytes = 64
	decodedSlack = 256 * limits.KiB
)

// allocated returns how many bytes f allocates, more or less: the runtime counts small ones by the page.
func allocated(f func()) int64 {
	read := func() int64 {
		s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
		metrics.Read(s)
		return int64(s[0].Value.Uint64())
	}
	before := read()
	f()
	return read() - before
}

var fuzzTopic = TopicName{testTenant, testTopic}

func fuzzOrigin() origin {
	return origin{id: messageID{1_795_000_000_000, 1<<idCounterBits | 5}, payloadBytes: 7, redriven: 2, operator: "op", priority: 4, order: 1 << 63}
}

func fuzzMessage() *Message {
	return &Message{
		ContentType: "text/plain", Metadata: []Pair{{"a", "b"}, {"a", ""}}, Payload: []byte("payload"), Envelope: []byte{1, 2},
		Parent: "parent", Hops: 3, Options: MessageOptions{
			Delay: time.Second, TTL: time.Minute, Deadline: time.UnixMilli(1_795_000_000_123), IdempotencyKey: "k", Principal: "p",
			Priority: 7, OrderingKey: "o", Fence: Fence{"f", 3}, RequiredFeatures: []string{"a", "b"}, Target: "t", ReplyTo: "r",
		},
	}
}

// fuzzFrames returns a frame of each kind.
func fuzzFrames() []frame {
	lane, group := laneName{topic: fuzzTopic}, laneName{fuzzTopic, "g"}
	body := appendMessage(nil, fuzzOrigin().id, fuzzMessage())
	plain := appendMessage(nil, fuzzOrigin().id, &Message{Payload: []byte{}})
	n := int64(9)
	publish := publishFrame{at: 5, first: 6, entries: []published{
		{name: fuzzTopic, body: plain}, {name: fuzzTopic, body: body, due: 12, key: &firstUse{until: 99}},
	}}
	return []frame{
		&publish,
		&claimFrame{name: lane, until: 8, died: 9, taken: []taken{
			{position: 1, attempt: 1, fresh: true, origin: fuzzOrigin()},
			{position: 2, attempt: 3},
			{position: 7, attempt: 1, parked: true, origin: fuzzOrigin(), key: 1 << 40},
		}, buried: []buried{{3, ReasonMaxAttempts}}, first: true, lapsed: []uint64{4}, parked: []parked{{5, 6, 7}}},
		&settleFrame{items: []settled{
			{name: lane, position: 4, verdict: Ack, keep: true}, {name: lane, position: 5, verdict: Bury, at: 3, reason: "why", receipt: []byte("r"), unrun: true},
		}, outbox: publish},
		&settleFrame{items: []settled{{name: lane, position: 4, verdict: Ack}}, outbox: publish, writes: []valueWrite{
			{bucket: BucketName{testTenant, testBucket}, key: "k", data: []byte("v")}, {bucket: BucketName{testTenant, testBucket}, key: "l", gone: true},
		}},
		&extendFrame{name: lane, position: 3, until: -1},
		&topicFrame{name: fuzzTopic, paused: true, policy: Policy{MaxDepth: &n}},
		&redriveFrame{name: lane, at: 3, operator: "op", items: []redriven{{position: 1, origin: fuzzOrigin()}}},
		&discardFrame{name: lane, items: []discarded{{1, 2, 3, 4}, {position: 3}}, keep: true},
		&ripenFrame{first: 3, items: []ripened{{fuzzTopic, 4, 5}}},
		&expireFrame{died: 3, items: []lapsed{{lane, 3, ReasonTTLExpired}}},
		&laneFrame{name: lane, paused: true, ordering: OrderKey},
		&groupFrame{name: group, what: groupMade, start: Start{Kind: StartPosition, Position: 3}, ordering: OrderTopic, cursor: 3, ready: 1},
		&groupFrame{name: group, what: groupReset, cursor: 1, ready: 2, aside: []uint64{1}},
		&groupFrame{name: group, what: groupVoided, voided: []parked{{position: 1, key: 2}}},
		&groupFrame{name: group, what: groupEnded},
		&sweepFrame{name: fuzzTopic, upTo: 4, keys: 7, items: []swept{{1, 2, 3}}, passed: []passed{{"g", 3, 1}}},
		&modeFrame{name: fuzzTopic, mode: LaneOff, owes: false},
		&fenceFrame{name: lane, fence: Fence{"f", 1 << 63}, at: 7},
		&unfenceFrame{name: lane, keys: []string{"f", "g"}},
		&quarantineFrame{name: fuzzTopic, what: quarantineEntered, items: []*quarantined{fuzzQuarantined()}},
		&quarantineFrame{name: fuzzTopic, what: quarantineDiscarded, items: []*quarantined{{number: 1, hash: true}}},
		&eraseFrame{tenant: testTenant},
		&eraseFrame{tenant: testTenant, done: true},
	}
}

func fuzzQuarantined() *quarantined {
	return &quarantined{
		number: 3, at: 5, level: 2, payloadBytes: 7, reason: ReasonCorrupt, fault: "the checksum does not match", length: 99,
		preview: []byte{1, 0xff}, places: [][]byte{{'H', 3}},
	}
}

// FuzzDecodeFrame decodes any bytes as a frame of any kind. What can be decoded has a form that is decoded into the same.
func FuzzDecodeFrame(f *testing.F) {
	for _, fr := range fuzzFrames() {
		f.Add(fr.kind(), encodeFrame(nil, fr))
	}
	f.Add(uint8(0), []byte{formatVersion})
	f.Add(uint8(kindClaim), []byte{formatVersion, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, kind uint8, body []byte) {
		var decoded frame
		var err error
		used := allocated(func() { decoded, err = decodeFrame(kind, body) })
		require.LessOrEqual(t, used, int64(decodedSlack+decodedBytes*len(body)))
		if err != nil {
			return
		}
		require.Equal(t, kind, decoded.kind())
		encoded := encodeFrame(nil, decoded)
		again, err := decodeFrame(kind, encoded)
		require.NoError(t, err)
		require.Equal(t, decoded, again)
		require.Equal(t, encoded, encodeFrame(nil, again), "one form")
		_, err = decodeFrame(kind, append(encoded, 0))
		require.Error(t, err, "a byte too many")
		_, err = decodeFrame(kind, encoded[:len(encoded)-1])
		require.Error(t, err, "a byte too few")
	})
}

// FuzzReplay replays any two frames on a small log's state. A frame that doesn't fit is an error.
func FuzzReplay(f *testing.F) {
	frames := fuzzFrames()
	for _, fr := range frames {
		f.Add(frames[0].kind(), encodeFrame(nil, frames[0]), fr.kind(), encodeFrame(nil, fr))
	}
	f.Fuzz(func(t *testing.T, kind1 uint8, body1 []byte, kind2 uint8, body2 []byte) {
		r := &recovery{state: newState()}
		for i, fr := range []journal.Frame{{Kind: kind1, Body: body1}, {Kind: kind2, Body: body2}} {
			fr.Number = uint64(i + 1)
			var err error
			used := allocated(func() { err = r.replay(fr) })
			require.LessOrEqual(t, used, int64(decodedSlack+2*decodedBytes*len(fr.Body)))
			if err != nil {
				require.Equal(t, uint64(i), r.checkpoint.frame, "a frame that was refused doesn't count")
				require.True(t, strings.Contains(err.Error(), "frame"), err.Error())
				return
			}
		}
	})
}

// FuzzDecodeMessage decodes any bytes as a message. Its head says the same as the message.
func FuzzDecodeMessage(f *testing.F) {
	f.Add(appendMessage(nil, fuzzOrigin().id, fuzzMessage()))
	f.Add(appendMessage(nil, messageID{}, &Message{}))
	f.Fuzz(func(t *testing.T, body []byte) {
		var m Message
		var err error
		used := allocated(func() { m, err = decodeMessage(fuzzTopic, body) })
		require.LessOrEqual(t, used, int64(decodedSlack+decodedBytes*len(body)))
		head, headErr := messageHead(body)
		require.Equal(t, err == nil, headErr == nil, "%v, %v", err, headErr)
		if err != nil {
			return
		}
		require.Equal(t, m.ID, head.id.String())
		require.Len(t, m.Payload, head.payloadBytes)
		require.Equal(t, m.Options, head.options)
		again, err := decodeMessage(fuzzTopic, appendMessage(nil, head.id, &m))
		require.NoError(t, err)
		require.Equal(t, m, again)
	})
}

// FuzzDecodeRecords decodes any bytes as each of the other records of the store.
func FuzzDecodeRecords(f *testing.F) {
	at := func(n int64) *topic {
		t := newTopic(fuzzTopic)
		t.stored = Policy{MaxDepth: &n, MaxUnflushed: &n}
		t.acked, t.paused, t.mode = 7, true, LaneOn
		t.work.base().jump(5, 6, positions{})
		t.work.stream(3).jump(7, 0, positions{})
		t.work.skipped = spans{{1, 2}}
		return t
	}
	expires := &expiry{topic: at(1), at: 7, deadline: true, origin: fuzzOrigin()}
	hidden := &delayed{topic: at(1), due: 9, origin: fuzzOrigin()}
	hidden.origin.expires = 8
	for _, b := range [][]byte{
		(&fuzzMessage().Options).Encode(),
		{optionKey, 0, 1, 'p'},
		{optionDelay, 0},
		appendFlight(nil, &flight{leased: true, at: 5, attempt: 2, token: 6, reason: "r", origin: fuzzOrigin()}),
		appendParkedRecord(nil, 3), appendGroup(nil, newLane(newTopic(fuzzTopic), "g")),
		appendDead(nil, &deadRecord{attempts: 3, reason: "r", died: 4, receipt: []byte("x"), origin: fuzzOrigin()}),
		appendTopic([]byte{}, at(0)), appendTopic(nil, at(1<<40)), expires.append(nil), hidden.append(nil),
		appendQuarantined(nil, fuzzQuarantined()),
		(&fenceMark{token: 1 << 63, at: 5}).append(nil),
		(&firstUse{id: fuzzOrigin().id, position: 3, until: 4}).append(nil), checkpoint{1, 2, 3}.append(nil),
	} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		sames(t, b, decodeOptions, func(o MessageOptions) []byte { return o.Encode() })
		sames(t, b, decodeDead, func(d *deadRecord) []byte { return appendDead(nil, d) })
		sames(t, b, decodeCheckpoint, func(c checkpoint) []byte { return c.append(nil) })
		sames(t, b, decodeDelivery, func(d delivery) []byte {
			if d.flight == nil {
				return appendParkedRecord(nil, d.key)
			}
			return appendFlight(nil, d.flight)
		})
		sames(t, b, func(b []byte) (*lane, error) { return decodeGroup(newTopic(fuzzTopic), "g", b) }, func(ln *lane) []byte { return appendGroup(nil, ln) })
		sames(t, b, func(b []byte) (*topic, error) { return decodeTopic(fuzzTopic, b) }, func(tp *topic) []byte { return appendTopic(nil, tp) })
		sames(t, b, func(b []byte) (*expiry, error) { return decodeExpiry(nil, 3, b) }, func(e *expiry) []byte { return e.append(nil) })
		sames(t, b, func(b []byte) (*delayed, error) { return decodeDelayed(nil, 3, b) }, func(d *delayed) []byte { return d.append(nil) })
		sames(t, b, decodeQuarantined, func(q *quarantined) []byte { return appendQuarantined(nil, q) })
		sames(t, b, decodeFence, func(m *fenceMark) []byte { return m.append(nil) })
		sames(t, b, func(b []byte) (*firstUse, error) { return decodeFirstUse(keyHash{}, b) }, func(u *firstUse) []byte { return u.append(nil) })
	})
}

// delivery is what a record of class L tells.
type delivery struct {
	flight *flight
	key    uint64
}

func decodeDelivery(b []byte) (delivery, error) {
	f, key, err := decodeFlight(3, b)
	return delivery{f, key}, err
}

// sames checks that what decode makes of b, if it can, is encoded in a form that is decoded into the same.
func sames[T any](t *testing.T, b []byte, decode func([]byte) (T, error), encode func(T) []byte) {
	t.Helper()
	var x T
	var err error
	used := allocated(func() { x, err = decode(b) })
	require.LessOrEqual(t, used, int64(decodedSlack+decodedBytes*len(b)))
	if err != nil {
		return
	}
	again, err := decode(encode(x))
	require.NoError(t, err)
	require.Equal(t, x, again)
}

// FuzzParseID takes any text for a message's id. What is one has this one form.
func FuzzParseID(f *testing.F) {
	f.Add(fuzzOrigin().id.String())
	f.Add("0000000000000-0000000000000000")
	f.Add("+000000000000-000000000000000F")
	f.Fuzz(func(t *testing.T, s string) {
		if id, err := parseID(s); err == nil {
			require.Equal(t, s, id.String())
		} else {
			require.Less(t, len(err.Error()), 600)
		}
	})
}
