package store

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/payload"
)

// Messages that are written together are merged, topic by topic, into blocks of consecutive ones: an entry for each would
// cost Badger far more than their bytes do. Whoever uses the store sees messages only.

// Bounds of a block.
const (
	blockBytes      = 256 * limits.KiB // of the records; a block has at least one
	blockMessages   = 1_024            // so that the bits of what is done fit the least that a deletion is reckoned at
	blockMinimum    = 4                // messages: fewer are stored one by one
	blockedMaxBytes = limits.InlinePayloadBytes
	placedMinBytes  = valueThreshold // of the records of a block that are kept in a file of their own; they fill pages
)

// block is what is kept in memory of a block. Its writer alone looks at live and done; the rest never changes.
type block struct {
	first, last uint64 // positions
	count       uint16 // messages
	live        uint16 // of them, those that are not deleted
	file        uint32 // of the payload files, that its records are in; 0 if they are in the database
	bytes       uint32 // of them
	done        []byte // a bit for each that is deleted; nil if none is
}

// listing is what stands under a block's key: where each message is among the block's records, and where those are, if they
// are not in the database.
type listing struct {
	places []place
	at     payload.Place
}

// dense reports whether the block's messages have all positions from first to last.
func (b *block) dense() bool { return b.last-b.first == uint64(b.count)-1 }

// delete marks the message with index i of the block.
func (b *block) delete(i int) {
	if b.done == nil {
		b.done = make([]byte, (b.count+7)/8)
	}
	if !marked(b.done, i) {
		b.done[i/8] |= 1 << (i % 8)
		b.live--
	}
}

// marked reports whether the message with index i is done.
func marked(done []byte, i int) bool { return done != nil && done[i/8]&(1<<(i%8)) != 0 }

// place is where a message is in its block.
type place struct {
	position   uint64
	start, end int // of its record among the block's records
}

func newBlock(c listing) *block {
	n := uint16(len(c.places)) // at most blockMessages
	return &block{
		first: c.places[0].position, last: c.places[n-1].position, count: n, live: n, file: c.at.File, bytes: uint32(c.at.Bytes),
	}
}

// sealListing returns what stands under a block's key, as a record: a list of how far a position is from the one before,
// and the length of its message's record; and, if they are not in the database, where those are.
func sealListing(key []byte, c listing) []byte {
	r := seal(key, c.append(nil))
	if c.at.File != 0 {
		r[0] = placedVersion
	}
	return r
}

func (c listing) append(b []byte) []byte {
	b = appendPlaces(b, c.places)
	if c.at.File != 0 {
		b = binary.AppendUvarint(b, uint64(c.at.File))
		b = binary.AppendUvarint(b, uint64(c.at.Offset))
	}
	return b
}

func appendPlaces(b []byte, places []place) []byte {
	b = binary.AppendUvarint(b, uint64(len(places)))
	last := places[0].position
	for _, p := range places {
		b = binary.AppendUvarint(b, p.position-last)
		b = binary.AppendUvarint(b, uint64(p.end-p.start))
		last = p.position
	}
	return b
}

// parseListing returns the contents of the block that begins at first, or ok = false if body holds none.
func parseListing(first uint64, body []byte) (c listing, ok bool) {
	next := func() uint64 {
		v, n := binary.Uvarint(body)
		if n <= 0 {
			body = nil
			return 0
		}
		body = body[n:]
		return v
	}
	n := next()
	if n == 0 || n > blockMessages || uint64(len(body)) < 2*n {
		return listing{}, false
	}
	places := make([]place, n)
	position, end := first, 0
	for i := range places {
		step, length := next(), next()
		if body == nil || (step == 0) != (i == 0) || step > math.MaxUint64-position || length < recordHeader || length > recordHeader+blockedMaxBytes {
			return listing{}, false
		}
		position += step
		places[i] = place{position: position, start: end, end: end + int(length)}
		end += int(length)
	}
	c.places = places
	if len(body) == 0 {
		return c, true
	}
	file, offset := next(), next()
	if body == nil || len(body) > 0 || file == 0 || file > math.MaxUint32 || offset > math.MaxInt64 {
		return listing{}, false
	}
	c.at = payload.Place{File: uint32(file), Offset: int64(offset), Bytes: end}
	return c, true
}

// find returns the index of position among places, or -1.
func find(places []place, position uint64) int {
	i, found := slices.BinarySearchFunc(places, position, func(p place, position uint64) int {
		switch {
		case p.position < position:
			return -1
		case p.position > position:
			return 1
		}
		return 0
	})
	if !found {
		return -1
	}
	return i
}

// merge sorts ops and returns how many of the first of them make up one block, or 1 if the first is to be stored by itself.
func merge(ops []Op) int {
	t, _, ok := parseMessage(ops[0].Key)
	if !ok {
		return 1
	}
	size, n := 0, 0
	for _, op := range ops[:min(len(ops), blockMessages)] {
		if op.Body == nil || len(op.Body) >= blockedMaxBytes || len(op.Key) != len(t.prefix)+9 || !bytes.HasPrefix(op.Key, t.prefix) ||
			op.Key[len(t.prefix)] != classMessage {
			break
		}
		if size += recordHeader + len(op.Body); n > 0 && size > blockBytes {
			break
		}
		n++
	}
	if n < blockMinimum {
		return 1
	}
	return n
}

func sortOps(ops []Op) {
	slices.SortFunc(ops, func(a, b Op) int { return bytes.Compare(a.Key, b.Key) })
}
