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
