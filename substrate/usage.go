package substrate

import (
	"encoding/binary"
	"math"

	"github.com/longshore/longshore/substrate/internal/store"
)

// kept counts messages that are stored, whatever for: to be delivered, as dead letters, in quarantine, or for replay.
type kept struct {
	messages int64
	bytes    int64 // of their payloads, as far as those are known
}

func (k *kept) add(messages, bytes int64) {
	k.messages = max(k.messages+messages, 0)
	if k.bytes = max(k.bytes+bytes, 0); k.messages == 0 {
		k.bytes = 0 // what was not known of a record that does not check
	}
}

// tenant is what the state knows of one tenant: sums over its topics and buckets.
type tenant struct {
	topics, buckets int
	kept            kept
	// valueBytes is what the tenant's values take: see valueBytes. It is no part of what frames tell, but counted when the log
	// was opened, and from then on.
	valueBytes int64
}

// tenant returns the sums of a tenant, which begin with this.
func (s *state) tenant(name string) *tenant {
	u := s.tenants[name]
	if u == nil {
		u = &tenant{}
		s.tenants[name] = u
	}
	return u
}

// uses returns a copy of the sums of a tenant: zero if there is none.
func (s *state) uses(name string) tenant {
	if u := s.tenants[name]; u != nil {
		return *u
	}
	return tenant{}
}

// store counts a message that is stored.
func (t *topic) store(payloadBytes int) {
	t.kept.add(1, int64(payloadBytes))
	t.of.kept.add(1, int64(payloadBytes))
}

// unstore counts a message that is stored no more.
func (t *topic) unstore(payloadBytes int) {
	t.kept.add(-1, -int64(payloadBytes))
	t.of.kept.add(-1, -int64(payloadBytes))
}

// drop deletes a message.
func (s *state) drop(t *topic, position uint64, payloadBytes int) {
	t.unstore(payloadBytes)
	s.effects.dropMessage(t, position, payloadBytes)
}

// count counts what is stored of a topic whose state does not say so: an older program wrote it. What lies ahead of the
// checkpoint is in frames still to come.
func (r *recovery) count(t *topic) error {
	if t.counted {
		return nil
	}
	t.counted = true
	key := t.key()
	err := r.store.Scan(key.Messages(), key.Messages(), func(k, body []byte, err error) bool {
		if store.Position(k) >= r.stored {
			return false
		}
		e := &entry{}
		e.fill(body, err)
		t.store(e.origin.payloadBytes)
		return true
	})
	for _, d := range r.state.delayed.items {
		if d.topic == t {
			t.store(d.origin.payloadBytes)
		}
	}
	r.state.effects.putTopic(t)
	return err
}

// valueBytes is what a value takes: its key, and its record in the store.
func valueBytes(key string, version uint64, dataBytes int) int64 {
	var b [binary.MaxVarintLen64]byte
	return int64(len(key) + store.RecordHeaderBytes + 1 + binary.PutUvarint(b[:], version) + dataBytes)
}

// mostValueBytes is what a value takes at most, before it is known which frame sets it.
func mostValueBytes(key string, dataBytes int) int64 {
	return valueBytes(key, math.MaxUint64, dataBytes)
}

// countValues counts what is stored in buckets. The store is up to date.
func (r *recovery) countValues() error {
	for _, u := range r.state.tenants {
		u.valueBytes = 0
	}
	for name := range r.state.values.buckets {
		bytes, err := r.store.ValueBytes(name.key())
		if err != nil {
			return err
		}
		r.state.tenant(name.Tenant).valueBytes += bytes
	}
	return nil
}
