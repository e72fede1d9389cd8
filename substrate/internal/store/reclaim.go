package store

import (
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"github.com/longshore/longshore/substrate/internal/failpoint"
)

// gcRatio is the share of a value log that has to be garbage for it to be rewritten.
const gcRatio = 0.3

// Reclaim gives back the disk space of what was deleted. Badger keeps it for a long time otherwise: deletions sit in the
// memtable and then at the lowest level until something happens to compact them, and only compaction counts what is
// garbage in the value logs. It belongs to the goroutine that writes, and takes time in proportion to what is stored;
// reads go on.
func (s *Store) Reclaim() error {
	if err := s.unpack(); err != nil {
		return fmt.Errorf("store: reclaim: %w", err)
	}
	if err := s.collectFiles(); err != nil {
		return fmt.Errorf("store: reclaim: %w", err)
	}
	if err := s.flushMemtable(); err != nil {
		return fmt.Errorf("store: reclaim: %w", err)
	}
	if err := failpoint.Hit("reclaim.flatten"); err != nil {
		return err
	}
	if err := s.db.Flatten(1); err != nil {
		return fmt.Errorf("store: reclaim: flatten: %w", err)
	}
	for {
		rewritten, err := s.collectValues()
		if err != nil {
			return fmt.Errorf("store: reclaim: %w", err)
		}
		if !rewritten {
			return nil
		}
	}
}

// flushMemtable makes Badger write its memtables as tables: it does so when a prefix is dropped for which there is
// something, and in no other way that it offers.
func (s *Store) flushMemtable() error {
	nudge := metaKey("nudge")
	if err := s.commit([]Op{{Key: nudge, Body: []byte{}}}); err != nil {
		return err
	}
	if err := failpoint.Hit("reclaim.drop"); err != nil {
		return err
	}
	if err := s.db.DropPrefix(nudge); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	return nil
}

// collectValues rewrites one value log that is mostly garbage, and reports whether there was one. Badger moves what is
// live without syncing it and deletes the old file at once, but for files that an iterator may still read: so one is held
// until the new place is durable.
func (s *Store) collectValues() (bool, error) {
	txn := s.db.NewTransaction(false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{})
	defer it.Close()
	if err := failpoint.Hit("reclaim.collect"); err != nil {
		return false, err
	}
	err := s.db.RunValueLogGC(gcRatio)
	if errors.Is(err, badger.ErrNoRewrite) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("value log: %w", err)
	}
	if err := failpoint.Hit("reclaim.rewritten"); err != nil {
		return false, err
	}
	return true, s.flush()
}

// unpack stores what is left of blocks that are at least half deleted message by message, so that no block keeps the space
// of many for the sake of a few.
func (s *Store) unpack() error {
	var worn []placed
	s.index.each(func(t Topic, b *block) {
		if b.live > 0 && b.live <= b.count/2 {
			worn = append(worn, placed{t, b})
		}
	})
	var unpacked []placed
	for _, b := range worn {
		err := s.unpackBlock(b)
		if corrupt := new(CorruptError); errors.As(err, &corrupt) {
			continue // it stays as it is
		}
		if err != nil {
			return err
		}
		unpacked = append(unpacked, b)
	}
	if len(unpacked) == 0 {
		return nil
	}
	s.forget(unpacked)
	return s.flush()
}

// unpackBlock moves the records as they are: one that does not check will not check elsewhere either. If the block can't
// be read, it moves nothing and returns a *CorruptError.
func (s *Store) unpackBlock(b placed) error {
	defer s.files.Pin()()
	txn := s.db.NewTransaction(true)
	defer txn.Discard()
	c, err := b.left(txn, b.topic)
	if err != nil {
		return err
	}
	s.eachRecord(b.block, txn, b.topic, c, func(key, record []byte, fault error) bool {
		if err = fault; err == nil {
			s.grown.add(len(key), len(record))
			err = txn.Set(append([]byte(nil), key...), append([]byte(nil), record...))
		}
		return err == nil
	})
	if err != nil {
		return err
	}
	for _, op := range b.appendDeletion(nil) {
		s.grown.addOp(op)
		if err := set(txn, op); err != nil {
			return err
		}
	}
	return txn.Commit()
}
