package store

import (
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"github.com/longshore/longshore/substrate/internal/failpoint"
)

// Write stores a batch. The ops of early may become visible on their own, in several transactions; those of last become
// visible at once, together with the checkpoint: early holds only what nobody looks at before last names it. Both slices
// are the store's afterwards.
//
// A checkpoint never survives a power cut that what it vouches for did not: see grown. Write reports whether it made
// durable, for that, all that was written before last: the batches before this one among it.
func (s *Store) Write(early, last []Op, checkpoint []byte) (synced bool, err error) {
	s.grown.begin()
	return s.write(early, last, checkpoint)
}

func (s *Store) write(early, last []Op, checkpoint []byte) (synced bool, err error) {
	sortOps(early)
	for len(early) > 0 {
		if err := failpoint.Hit("store.early"); err != nil {
			return false, err
		}
		n, err := s.put(early)
		if err != nil {
			return false, err
		}
		early = early[n:]
	}
	last, err = s.markDone(last)
	if err != nil {
		return false, err
	}
	last = append(last, Op{Key: metaKey(checkpointName), Body: checkpoint})
	names, err := s.logFiles()
	if err != nil {
		return false, fmt.Errorf("store: %w", err)
	}
	if synced = s.grown.unsafe(names, last); synced {
		err = s.flush()
	}
	if err == nil {
		err = failpoint.Hit("store.last")
	}
	if err == nil {
		err = s.commit(last)
	}
	if err == nil {
		err = failpoint.Hit("store.written")
	}
	if err == nil {
		err = s.dropSpent()
	}
	return synced, err
}

// placed is a block and whose it is.
type placed struct {
	topic Topic
	*block
}

// put stores the first of ops, which are sorted, in one transaction, and returns how many those are. Messages that can be
// merged into blocks are.
func (s *Store) put(ops []Op) (n int, err error) {
	txn := s.db.NewTransaction(true)
	defer txn.Discard()
	s.buffer = s.buffer[:0]
	var made []placed
	for bytes, entries := 0, 0; n < len(ops) && entries < maxTxnEntries; entries++ {
		some := ops[n : n+merge(ops[n:])]
		for _, op := range some {
			bytes += len(op.Key) + len(op.Body) + entryOverhead
		}
		if n > 0 && bytes > maxTxnBytes {
			break
		}
		if len(some) == 1 {
			s.grown.addOp(some[0])
			err = set(txn, some[0])
		} else {
			var b placed
			b, err = s.putBlock(txn, some)
			made = append(made, b)
			entries++
		}
		if err != nil {
			return 0, fmt.Errorf("store: write: %w", err)
		}
		n += len(some)
	}
	if err := s.files.Flush(); err != nil {
		return 0, fmt.Errorf("store: write: %w", err)
	}
	if err := txn.Commit(); err != nil {
		return 0, fmt.Errorf("store: commit: %w", err)
	}
	for _, b := range made {
		s.index.add(b.topic, b.block)
	}
	return n, nil
}

// putBlock stores messages of one topic as a block.
func (s *Store) putBlock(txn *badger.Txn, ops []Op) (placed, error) {
	t, first, _ := parseMessage(ops[0].Key)
	c := listing{places: make([]place, len(ops))}
	size := 0
	for i, op := range ops {
		n := recordHeader + len(op.Body)
		c.places[i] = place{position: Position(op.Key), start: size, end: size + n}
		size += n
	}
	var err error
	if size >= placedMinBytes {
		s.grown.values = true
		c.at, err = s.files.Add(size, func(b []byte) []byte { return appendRecords(b, ops) })
	} else {
		start := len(s.buffer)
		s.buffer = appendRecords(s.buffer, ops)
		s.grown.add(len(t.records(first)), size)
		err = txn.Set(t.records(first), s.buffer[start:])
	}
	if err != nil {
		return placed{}, err
	}
	key := t.block(first)
	record := sealListing(key, c)
	s.grown.add(len(key), len(record))
	return placed{t, newBlock(c)}, txn.Set(key, record)
}

func appendRecords(b []byte, ops []Op) []byte {
	for _, op := range ops {
		b = appendSeal(b, op.Key, op.Body)
	}
	return b
}

// markDone replaces, among ops, the deletions of messages in blocks by what the blocks' bits become.
func (s *Store) markDone(ops []Op) ([]Op, error) {
	var deletions []Op
	kept := ops[:0]
	for _, op := range ops {
		if t, position, ok := parseMessage(op.Key); ok && op.Body == nil && op.From == nil && s.index.holding(t, position) != nil {
			deletions = append(deletions, op)
		} else {
			kept = append(kept, op)
		}
	}
	sortOps(deletions)
	for len(deletions) > 0 {
		t, position, _ := parseMessage(deletions[0].Key)
		b := s.index.holding(t, position)
		n, err := s.markBlock(t, b, deletions)
		if err != nil {
			return nil, err
		}
		deletions = deletions[n:]
		kept = append(kept, Op{Key: t.done(b.first), Body: b.done})
		if b.live == 0 {
			s.spent = append(s.spent, placed{t, b})
		}
	}
	return kept, nil
}

// markBlock marks the messages of b that the first of deletions name, and returns how many of these belong to it.
func (s *Store) markBlock(t Topic, b *block, deletions []Op) (n int, err error) {
	var places []place
	if !b.dense() {
		err := s.view(func(txn *badger.Txn) error {
			c, err := b.listing(txn, t)
			places = c.places
			return err
		})
		if err != nil {
			return 0, err
		}
	}
	for _, op := range deletions {
		of, position, _ := parseMessage(op.Key)
		if string(of.prefix) != string(t.prefix) || position > b.last {
			break
		}
		n++
		i := int(position - b.first)
		if places != nil {
			i = find(places, position)
		}
		if i >= 0 {
			b.delete(i)
		}
	}
	return n, nil
}

// dropSpent deletes the blocks of which nothing is left.
func (s *Store) dropSpent() error {
	const most = maxTxnEntries / 8 // of blocks in a transaction
	for len(s.spent) > 0 {
		some := s.spent[:min(len(s.spent), most)]
		var ops []Op
		for _, b := range some {
			ops = b.appendDeletion(ops)
		}
		if err := s.commitCounted(ops); err != nil {
			return err
		}
		s.forget(some)
		s.spent = s.spent[len(some):]
	}
	s.spent = nil
	return nil
}

// forget takes blocks that are deleted out of the index.
func (s *Store) forget(blocks []placed) {
	gone := map[*block]struct{}{}
	for _, b := range blocks {
		gone[b.block] = struct{}{}
	}
	for i, b := range blocks {
		if i == 0 || string(b.topic.prefix) != string(blocks[i-1].topic.prefix) {
			s.index.remove(b.topic, func(b *block) bool {
				_, is := gone[b]
				return is
			})
		}
	}
}

func (b placed) appendDeletion(ops []Op) []Op {
	ops = append(ops, Op{Key: b.topic.block(b.first)}, Op{Key: b.topic.done(b.first)})
	if b.file == 0 {
		ops = append(ops, Op{Key: b.topic.records(b.first)})
	}
	return ops
}

// commitCounted commits ops outside of a batch.
func (s *Store) commitCounted(ops []Op) error {
	for _, op := range ops {
		s.grown.addOp(op)
	}
	return s.commit(ops)
}

func (s *Store) commit(ops []Op) error {
	txn := s.db.NewTransaction(true)
	defer txn.Discard()
	for _, op := range ops {
		if err := set(txn, op); err != nil {
			return fmt.Errorf("store: write: %w", err)
		}
	}
	if err := txn.Commit(); err != nil {
		return fmt.Errorf("store: commit: %w", err)
	}
	return nil
}

func set(txn *badger.Txn, op Op) error {
	switch {
	case op.Body != nil:
		return txn.Set(op.Key, seal(op.Key, op.Body))
	case op.From != nil:
		return move(txn, op)
	default:
		return txn.Delete(op.Key)
	}
}

// move writes what From holds under another key. What does not check there will not check here either.
func move(txn *badger.Txn, op Op) error {
	item, err := txn.Get(op.From)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return nil // whoever reads it will find nothing
	}
	if err != nil {
		return err
	}
	body, err := read(item)
	if err == nil {
		return txn.Set(op.Key, seal(op.Key, body))
	}
	value, err := item.ValueCopy(nil)
	if err != nil {
		value = nil
	}
	return txn.Set(op.Key, value)
}

// DropFrom deletes the messages at position and after it, of all topics: what a crash left of a batch that nothing names.
// It comes before the first Write.
func (s *Store) DropFrom(position uint64) error {
	var ops []Op
	var blocks []placed
	s.index.each(func(t Topic, b *block) {
		if b.first >= position {
			blocks = append(blocks, placed{t, b})
			ops = placed{t, b}.appendDeletion(ops)
		}
	})
	err := s.view(func(txn *badger.Txn) error {
		return eachTopic(txn, func(it *badger.Iterator, t Topic) error {
			for it.Seek(t.Message(position)); it.ValidForPrefix(t.Messages()); it.Next() {
				ops = append(ops, Op{Key: it.Item().KeyCopy(nil)})
			}
			return nil
		})
	})
	for len(ops) > 0 && err == nil {
		n := fitting(ops)
		err = s.commitCounted(ops[:n])
		ops = ops[n:]
	}
	if err == nil {
		s.forget(blocks)
	}
	return err
}

// LastFrom returns the last message at position or after it, of all topics, and whose it is; 0 if there is none.
func (s *Store) LastFrom(position uint64) (tenant, topic string, last uint64, err error) {
	found := func(t Topic, at uint64) {
		if at >= position && at > last {
			tenant, topic, _ = parseTopic(t.State())
			last = at
		}
	}
	s.index.each(func(t Topic, b *block) { found(t, b.last) })
	err = s.view(func(txn *badger.Txn) error {
		return eachTopic(txn, func(it *badger.Iterator, t Topic) error {
			for it.Seek(t.Message(position)); it.ValidForPrefix(t.Messages()); it.Next() {
				found(t, Position(it.Item().Key()))
			}
			return nil
		})
	})
	return tenant, topic, last, err
}

// fitting returns how many of ops fit into one transaction, at least 1.
func fitting(ops []Op) int {
	bytes := 0
	for i, op := range ops {
		bytes += len(op.Key) + len(op.Body) + entryOverhead
		if i > 0 && (bytes > maxTxnBytes || i >= maxTxnEntries) {
			return i
		}
	}
	return len(ops)
}
