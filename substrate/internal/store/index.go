package store

import (
	"errors"
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
	held   map[uint32]int64    // bytes of the blocks' records in each payload file
}

// add appends a block: positions only grow.
func (x *index) add(t Topic, b *block) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.topics[string(t.prefix)] = append(x.topics[string(t.prefix)], b)
	x.count(b, 1)
}

// count counts what a block holds in its payload file, or that it doesn't any more.
func (x *index) count(b *block, sign int64) {
	if b.file == 0 {
		return
	}
	if x.held[b.file] += sign * int64(b.bytes); x.held[b.file] == 0 {
		delete(x.held, b.file)
	}
}

// heldIn returns the bytes of the blocks' records in a payload file.
func (x *index) heldIn(file uint32) int64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.held[file]
}

// move says that the records of a block are in another payload file.
func (x *index) move(b *block, file uint32) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.count(b, -1)
	b.file = file
	x.count(b, 1)
}

// remove forgets blocks.
func (x *index) remove(t Topic, gone func(*block) bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	old := x.topics[string(t.prefix)]
	for _, b := range old {
		if gone(b) {
			x.count(b, -1)
		}
	}
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

// removeAll forgets the blocks of topics whose prefixes are gone, and returns the bytes of their records in payload files.
func (x *index) removeAll(gone func(prefix string) bool) (bytes int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	maps.DeleteFunc(x.topics, func(prefix string, blocks []*block) bool {
		if !gone(prefix) {
			return false
		}
		for _, b := range blocks {
			x.count(b, -1)
			bytes += int64(b.bytes)
		}
		return true
	})
	return bytes
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
// It returns where the last records end in each payload file.
func (x *index) load(txn *badger.Txn) (ends map[uint32]int64, err error) {
	x.topics, x.held, ends = map[string][]*block{}, map[uint32]int64{}, map[uint32]int64{}
	erased := erasuresIn(txn)
	err = eachTopic(txn, func(it *badger.Iterator, t Topic) error {
		if tenant, _, _ := parseTopic(t.State()); slices.Contains(erased, tenant) {
			return nil
		}
		return x.loadTopic(it, t, ends)
	})
	if newer := new(VersionError); errors.As(err, &newer) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return ends, nil
}

func (x *index) loadTopic(it *badger.Iterator, t Topic, ends map[uint32]int64) error {
	for it.Seek(t.one(classBlock)); it.ValidForPrefix(t.one(classBlock)); it.Next() {
		body, err := read(it.Item())
		if err != nil {
			return err
		}
		first := Position(it.Item().Key())
		c, ok := parseListing(first, body)
		if !ok {
			return &CorruptError{Key: it.Item().KeyCopy(nil), Reason: "it does not say what the block holds"}
		}
		x.add(t, newBlock(c))
		if c.at.File != 0 {
			ends[c.at.File] = max(ends[c.at.File], c.at.Offset+int64(c.at.Bytes))
		}
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
