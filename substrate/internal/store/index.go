package store

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/dgraph-io/badger/v4"
)

// index knows the blocks of each topic, in the order of their positions. Their ranges don't overlap. The store's writer
// changes it; a slice that it gave to a reader stays as it is.
type index struct {
	mu     sync.RWMutex
	topics map[string][]*block // by the topic's prefix
}

// add appends a block: positions only grow.
func (x *index) add(t Topic, b *block) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.topics[string(t.prefix)] = append(x.topics[string(t.prefix)], b)
}

// remove forgets blocks.
func (x *index) remove(t Topic, gone func(*block) bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.topics[string(t.prefix)]
	n := 0
	for n < len(old) && gone(old[n]) { // mostly the oldest
		n++
	}
	kept := old[n:]
	if slices.ContainsFunc(kept, gone) {
		kept = slices.DeleteFunc(slices.Clone(kept), gone)
	}
	if len(kept) == 0 {
		delete(x.topics, string(t.prefix))
		return
	}
	x.topics[string(t.prefix)] = kept
}

// removeAll forgets the blocks of topics whose prefixes are gone.
func (x *index) removeAll(gone func(prefix string) bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	maps.DeleteFunc(x.topics, func(prefix string, _ []*block) bool { return gone(prefix) })
}

// from returns the blocks of a topic that end at position or after it.
func (x *index) from(t Topic, position uint64) []*block {
	x.mu.RLock()
	defer x.mu.RUnlock()
	blocks := x.topics[string(t.prefix)]
	i, _ := slices.BinarySearchFunc(blocks, position, func(b *block, position uint64) int {
		if b.last < position {
			return -1
		}
		return 1
	})
	return blocks[i:]
}

// holding returns the block whose range position lies in, or nil.
func (x *index) holding(t Topic, position uint64) *block {
	if blocks := x.from(t, position); len(blocks) > 0 && blocks[0].first <= position {
		return blocks[0]
	}
	return nil
}

// each calls yield for every block.
func (x *index) each(yield func(t Topic, b *block)) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for prefix, blocks := range x.topics {
		for _, b := range blocks {
			yield(Topic{[]byte(prefix)}, b)
		}
	}
}

// load fills the index from the database, but for tenants that are being erased: what is left of them need not fit together.
func (x *index) load(txn *badger.Txn) error {
	x.topics = map[string][]*block{}
	erased := erasuresIn(txn)
	err := eachTopic(txn, func(it *badger.Iterator, t Topic) error {
		if tenant, _, _ := parseTopic(t.State()); slices.Contains(erased, tenant) {
			return nil
		}
		return x.loadTopic(it, t)
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}

func (x *index) loadTopic(it *badger.Iterator, t Topic) error {
	for it.Seek(t.one(classBlock)); it.ValidForPrefix(t.one(classBlock)); it.Next() {
		body, err := read(it.Item())
		if err != nil {
			return err
		}
		first := Position(it.Item().Key())
		places, ok := parsePlaces(first, body)
		if !ok {
			return &CorruptError{Key: it.Item().KeyCopy(nil), Reason: "it does not say what the block holds"}
		}
		n := uint16(len(places)) // at most blockMessages
		x.add(t, &block{first: first, last: places[n-1].position, count: n, live: n})
	}
	for it.Seek(t.one(classDone)); it.ValidForPrefix(t.one(classDone)); it.Next() {
		done, err := read(it.Item())
		if err != nil {
			return err
		}
		first := Position(it.Item().Key())
		b := x.holding(t, first)
		if b == nil || b.first != first || len(done) != int(b.count+7)/8 {
			return &CorruptError{Key: it.Item().KeyCopy(nil), Reason: "it does not fit its block"}
		}
		for i := range int(b.count) {
			if marked(done, i) {
				b.delete(i)
			}
		}
	}
	return nil
}
