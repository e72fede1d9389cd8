package substrate

import (
	"hash/maphash"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/store"
)

// BucketName is the full name of a bucket of values. Buckets belong to a tenant, and have nothing to do with topics.
type BucketName struct{ Tenant, Bucket string }

func (n BucketName) key() store.Bucket { return store.BucketOf(n.Tenant, n.Bucket) }

// values is what the state knows of stored values: of none of them what it is, but of each bucket, and for a while of each
// key, when it was written last. Frames tell the time.
type values struct {
	buckets map[BucketName]uint64 // the last frame since the log was opened that wrote there
	written uint64                // the last frame that wrote anywhere
	recent  recentWrites
}

func newValues() values {
	return values{buckets: map[BucketName]uint64{}, recent: newRecentWrites()}
}

// insertBucket makes a bucket known.
func (s *state) insertBucket(name BucketName) {
	if _, known := s.values.buckets[name]; !known {
		s.values.buckets[name] = 0
		s.tenant(name.Tenant).buckets++
	}
}

// setValue carries out a write.
func (s *state) setValue(w *valueWrite, number uint64) {
	s.insertBucket(w.bucket)
	v := &s.values
	v.buckets[w.bucket], v.written = number, number
	v.recent.add(w.bucket, w.key, number)
	p := pendingValue{data: w.data}
	if !w.gone {
		p.version = number
	}
	u := s.tenants[w.bucket.Tenant]
	u.valueBytes += p.stored(w.key) - w.before
	s.effects.putValue(w.bucket, w.key, p)
}

// recentWrites remembers which frame wrote a key last. It is no part of the state, but a memory of it: of all frames above
// floor it knows, by the hash of the key, what they wrote. It has two halves, and forgets the older one when the other
// is full.
type recentWrites struct {
	seed       maphash.Seed
	young, old map[uint64]uint64 // hash to frame
	floor      uint64
	turned     uint64 // the frame at which young was begun
}

func newRecentWrites() recentWrites {
	return recentWrites{seed: maphash.MakeSeed(), young: map[uint64]uint64{}}
}

func (r *recentWrites) hash(b BucketName, key string) uint64 {
	return maphash.Comparable(r.seed, [3]string{b.Tenant, b.Bucket, key})
}

func (r *recentWrites) add(b BucketName, key string, frame uint64) {
	if len(r.young) >= limits.StoreRecentWrites/2 {
		r.old, r.young = r.young, map[uint64]uint64{}
		r.floor, r.turned = r.turned, frame
	}
	r.young[r.hash(b, key)] = frame
}

// last returns the last frame above floor that wrote the key, or 0.
func (r *recentWrites) last(b BucketName, key string) uint64 {
	h := r.hash(b, key)
	if frame, ok := r.young[h]; ok {
		return frame
	}
	return r.old[h]
}

// pendingValue is what the store is owed of a key. Version is 0 if the value is deleted.
type pendingValue struct {
	version uint64
	data    []byte
}

// pendingValues is what the store is owed of values.
type pendingValues struct {
	buckets map[BucketName]map[string]pendingValue
	n       int // keys
}

func newPendingValues() *pendingValues {
	return &pendingValues{buckets: map[BucketName]map[string]pendingValue{}}
}

func (p *pendingValues) count() int { return p.n }

// get returns what is owed of a key. p may be nil.
func (p *pendingValues) get(b BucketName, key string) (v pendingValue, ok bool) {
	if p == nil {
		return pendingValue{}, false
	}
	v, ok = p.buckets[b][key]
	return v, ok
}

// of returns what is owed of a bucket. p may be nil.
func (p *pendingValues) of(b BucketName) map[string]pendingValue {
	if p == nil {
		return nil
	}
	return p.buckets[b]
}

// putValue owes what became of a key.
func (e *effects) putValue(b BucketName, key string, v pendingValue) {
	keys := e.values.buckets[b]
	if keys == nil {
		keys = map[string]pendingValue{}
		e.values.buckets[b] = keys
	}
	if before, owed := keys[key]; owed {
		e.bytes -= before.bytes(key)
	} else {
		e.values.n++
	}
	keys[key] = v
	e.bytes += v.bytes(key)
	if v.version == 0 {
		e.freed += v.bytes(key)
	}
}

// stored is what the value takes once it is stored: nothing if it is deleted.
func (v pendingValue) stored(key string) int64 {
	if v.version == 0 {
		return 0
	}
	return valueBytes(key, v.version, len(v.data))
}

// bytes is what a pending value is reckoned at.
func (v pendingValue) bytes(key string) int64 { return opBytes + int64(len(key)+len(v.data)) }

// cutValues adds the values. They may be in the store before its checkpoint says so: their frames are durable, so that after
// a crash in between they are applied again, and end with the same.
func (e *effects) cutValues(b *batch) {
	for name, keys := range e.values.buckets {
		of := name.key()
		for key, v := range keys {
			op := store.Op{Key: of.Value(key)}
			if v.version != 0 {
				op.Body = appendValue(nil, v.version, v.data)
			}
			b.early = append(b.early, op)
		}
	}
}

// loadBucket makes a bucket known that the store has.
func (r *recovery) loadBucket(tenant, bucket string) error {
	r.state.insertBucket(BucketName{tenant, bucket})
	return nil
}
