package signedctx

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
)

// cache is a map that holds at most a given number of entries and forgets those that weren't used lately. It has two
// generations: when the young one holds half of the entries, it becomes the old one, and what the old one held is
// dropped unless it was used since. It is safe for concurrent use; two callers may compute the same entry.
type cache[K comparable, V any] struct {
	mu         sync.Mutex
	half       int
	young, old map[K]V
}

func newCache[K comparable, V any](entries int) *cache[K, V] {
	return &cache[K, V]{half: max(entries/2, 1), young: make(map[K]V)}
}

func (c *cache[K, V]) get(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, ok := c.young[key]; ok {
		return v, true
	}
	v, ok := c.old[key]
	if ok {
		c.add(key, v)
	}
	return v, ok
}

// getText is get for the bytes of a key, of which it makes no string.
func getText[V any](c *cache[string, V], key []byte) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, ok := c.young[string(key)]; ok {
		return v, true
	}
	v, ok := c.old[string(key)]
	if ok {
		c.add(string(key), v)
	}
	return v, ok
}

func (c *cache[K, V]) put(key K, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(key, v)
}

// add puts an entry among the young, where it is found before an elder of the same key. The lock is held.
func (c *cache[K, V]) add(key K, v V) {
	if len(c.young) >= c.half {
		c.old, c.young = c.young, make(map[K]V)
	}
	c.young[key] = v
}

// recentTokens is how many tokens a recent holds, a power of 2.
const recentTokens = 256

// recent holds genuine tokens as they are, so that one which is met again needn't be hashed. Two tokens may take the same
// place; then the last one has it. It is safe for concurrent use.
type recent [recentTokens]atomic.Pointer[token]

// place returns where a token is kept: by the end of its signature.
func (r *recent) place(raw []byte) *atomic.Pointer[token] {
	const end = 8 // base64, of which each byte has 6 bits
	if len(raw) < end {
		return &r[0]
	}
	last := binary.LittleEndian.Uint64(raw[len(raw)-end:])
	return &r[(last*0x9e3779b97f4a7c15)>>32%recentTokens]
}

// get returns a token that must not be changed, nil if it isn't there.
func (r *recent) get(raw []byte) *token {
	t := r.place(raw).Load()
	if t == nil || t.raw != string(raw) {
		return nil
	}
	return t
}

func (r *recent) put(t *token) { r.place([]byte(t.raw)).Store(t) }
