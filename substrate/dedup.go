package substrate

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/longshore/longshore/limits"
)

// keyHash names an idempotency key of a principal.
type keyHash [16]byte

func hashKey(o *MessageOptions) keyHash {
	h := sha256.New()
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(o.Principal)))
	h.Write(n[:])
	h.Write([]byte(o.Principal))
	h.Write([]byte(o.IdempotencyKey))
	if o.Fence.Key != "" { // the same work under another tenure is another message
		h.Write(binary.BigEndian.AppendUint64([]byte("\x00"+o.Fence.Key+"\x00"), o.Fence.Token))
	}
	return keyHash(h.Sum(nil)[:16])
}

// firstUse is the first publish under a key, whose receipt later ones get.
type firstUse struct {
	hash     keyHash
	id       messageID
	position uint64 // 0 if it was delayed
	until    int64  // unix ns: the end of the window
	stored   bool   // the store has a record of it
}

// firstUses are a topic's keys in use. The window is the same for all of them, so that the oldest is the first to go.
type firstUses struct {
	byHash map[keyHash]*firstUse
	order  []*firstUse
}

func (u *firstUses) add(f *firstUse) {
	if u.byHash == nil {
		u.byHash = map[keyHash]*firstUse{}
	}
	u.byHash[f.hash] = f
	u.order = append(u.order, f)
}

// find returns the first use of a key, if it still counts at now.
func (u *firstUses) find(h keyHash, now int64) *firstUse {
	if f := u.byHash[h]; f != nil && f.until > now {
		return f
	}
	return nil
}

// remember notes the first use of a key at the time of its frame, and forgets a few of those that are too old or too many:
// the sweep forgets the rest, since one frame's effects have to fit into a transaction of the store.
func (s *state) remember(t *topic, f *firstUse, now int64) {
	if old := t.keys.byHash[f.hash]; old != nil {
		s.effects.dropKey(t, old) // its window is over, or it would have been a duplicate
	}
	t.keys.add(f)
	s.effects.putKey(t, f)
	s.watched[t] = struct{}{}
	s.forgetKeys(t, now, 2)
}

// forgetKeys forgets up to most keys that are too old, or too many.
func (s *state) forgetKeys(t *topic, now int64, most int) {
	for range most {
		if !t.keys.stale(now) {
			return
		}
		first := t.keys.order[0]
		t.keys.order = t.keys.order[1:]
		if t.keys.byHash[first.hash] == first {
			delete(t.keys.byHash, first.hash)
			s.effects.dropKey(t, first)
		}
	}
}

// stale reports whether the oldest key is to be forgotten.
func (u *firstUses) stale(now int64) bool {
	if len(u.order) == 0 {
		return false
	}
	first := u.order[0]
	return u.byHash[first.hash] != first || first.until <= now || len(u.byHash) > limits.IdempotencyKeys
}

func (f *firstUse) append(b []byte) []byte {
	b = appendID(append(b, formatVersion), f.id)
	b = binary.AppendUvarint(b, f.position)
	return binary.AppendVarint(b, f.until)
}

func decodeFirstUse(hash keyHash, body []byte) (*firstUse, error) {
	d := decoder{b: body}
	if err := d.version("idempotency key"); err != nil {
		return nil, err
	}
	f := &firstUse{hash: hash, id: d.id(), position: d.uint(), until: d.int(), stored: true}
	return f, d.end("idempotency key")
}
