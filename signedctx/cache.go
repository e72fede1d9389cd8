package signedctx

import "sync"

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

func (c *cache[K, V]) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.young) + len(c.old)
}
