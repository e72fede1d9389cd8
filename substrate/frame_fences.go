package substrate

import (
	"encoding/binary"
	"errors"

	"github.com/longshore/longshore/substrate/internal/store"
)

type (
	// fenceFrame sets the mark of a fence key.
	fenceFrame struct {
		name  laneName
		fence Fence
		at    int64
	}

	// unfenceFrame forgets marks: they were idle, an operator reset them, or their group ends.
	unfenceFrame struct {
		name laneName
		keys []string
	}

	// fenceMark is the highest token that a lane accepted for a fence key.
	fenceMark struct {
		token  uint64
		at     int64 // unix ns: when it was raised, or last found equal, but for limits.FenceIdle / fenceRefresh
		stored bool  // the store has a record of it
	}

	// fenceRef names a mark.
	fenceRef struct {
		lane *lane
		key  string
	}
)

func (*fenceFrame) kind() uint8   { return kindFence }
func (*unfenceFrame) kind() uint8 { return kindUnfence }

// durable is false: durability is a prefix, so that the settlement of what the fence let pass makes it durable too.
func (*fenceFrame) durable() bool   { return false }
func (*unfenceFrame) durable() bool { return true }

func (f *fenceFrame) append(b []byte) []byte {
	b = binary.AppendUvarint(appendString(f.name.append(b), f.fence.Key), f.fence.Token)
	return binary.AppendVarint(b, f.at)
}

func (f *unfenceFrame) append(b []byte) []byte {
	b = binary.AppendUvarint(f.name.append(b), uint64(len(f.keys)))
	for _, k := range f.keys {
		b = appendString(b, k)
	}
	return b
}

func (d *decoder) strings() []string {
	list := make([]string, d.count(1))
	for i := range list {
		list[i] = d.string()
	}
	return list
}

func (f *fenceFrame) apply(s *state, _ uint64) {
	ln := s.lane(f.name)
	m := ln.fences[f.fence.Key]
	if m == nil {
		m = &fenceMark{}
		if ln.fences == nil {
			ln.fences = map[string]*fenceMark{}
		}
		ln.fences[f.fence.Key] = m
	}
	m.token, m.at = f.fence.Token, f.at
	s.effects.putFence(fenceRef{ln, f.fence.Key}, m)
}

func (f *unfenceFrame) apply(s *state, _ uint64) {
	ln := s.lane(f.name)
	for _, key := range f.keys {
		m := ln.fences[key]
		delete(ln.fences, key)
		s.effects.dropFence(fenceRef{ln, key}, m)
	}
}

func (e *effects) putFence(r fenceRef, m *fenceMark) {
	if old, owed := e.fences[r]; owed && old == nil {
		m.stored = true // by the mark before it
	}
	e.fences[r] = m
	e.owe(r.lane.topic, len(r.lane.name)+len(r.key))
}

func (e *effects) dropFence(r fenceRef, m *fenceMark) {
	if !m.stored {
		delete(e.fences, r)
		return
	}
	e.fences[r] = nil
	e.owe(r.lane.topic, len(r.lane.name)+len(r.key))
}

// cutFences adds fence marks: what goes comes first, as of dead letters.
func (e *effects) cutFences(b *batch) {
	for r, m := range e.fences {
		if m == nil {
			b.last = append(b.last, store.Op{Key: r.storeKey()})
		}
	}
	for r, m := range e.fences {
		if m != nil {
			m.stored = true
			b.last = append(b.last, store.Op{Key: r.storeKey(), Body: m.append(nil)})
		}
	}
}

func (r fenceRef) storeKey() []byte { return r.lane.topic.key().Fence(r.lane.name, r.key) }

func (m *fenceMark) append(b []byte) []byte {
	return binary.AppendVarint(binary.AppendUvarint(append(b, formatVersion), m.token), m.at)
}

func decodeFence(body []byte) (*fenceMark, error) {
	d := decoder{b: body}
	if err := d.version("fence mark"); err != nil {
		return nil, err
	}
	m := &fenceMark{token: d.uint(), at: d.int(), stored: true}
	return m, d.end("fence mark")
}

func (r *recovery) loadFences(ln *lane) error {
	key := ln.topic.key()
	return r.each(ln.topic, key.Fences(ln.name), func(k, body []byte) error {
		m, err := decodeFence(body)
		if err != nil {
			return err
		}
		fence := key.FenceKey(ln.name, k)
		if fence == "" {
			return errors.New("a fence mark has no key")
		}
		if ln.fences == nil {
			ln.fences = map[string]*fenceMark{}
		}
		ln.fences[fence] = m
		return nil
	})
}
