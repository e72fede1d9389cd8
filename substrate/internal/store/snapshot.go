package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"

	"github.com/dgraph-io/badger/v4"
)

// Snapshot is the store as of one moment. It holds no lock that writing needs; but what is deleted meanwhile keeps its space
// on disk until the snapshot is closed. It belongs to one goroutine at a time.
type Snapshot struct {
	store *Store
	txn   *badger.Txn
	it    *badger.Iterator
	unpin func()
}

// Snapshot returns the store as of now, or ErrClosed. Close of the store waits until it is closed.
func (s *Store) Snapshot() (*Snapshot, error) {
	s.use.RLock()
	if s.closed {
		s.use.RUnlock()
		return nil, ErrClosed
	}
	s.snapshots.Add(1)
	unpin := s.files.Pin() // before the transaction begins, as for view
	txn := s.db.NewTransaction(false)
	// The iterator is opened now: it keeps value logs, which a transaction alone doesn't. Values are read one by one,
	// because some may be large.
	return &Snapshot{store: s, txn: txn, it: txn.NewIterator(badger.IteratorOptions{}), unpin: unpin}, nil
}

// Snapshots reports whether a snapshot is open, so that nothing is to be gained from Reclaim.
func (s *Store) Snapshots() bool { return s.snapshots.Load() > 0 }

// Close ends the snapshot.
func (s *Snapshot) Close() {
	s.it.Close()
	s.txn.Discard()
	s.unpin()
	s.store.snapshots.Add(-1)
	s.store.use.RUnlock()
}

// Verify reads all tables, those written since included, and returns ErrDamaged if one doesn't check: Each would leave out
// what it holds, without a word.
func (s *Snapshot) Verify() error { return s.store.verify() }

// Each calls yield for each record with its value as it is stored, in the order of keys, until yield returns an error. Left
// out is what the log keeps about its own files: the checkpoint, above all. The value of a record that does not check is what
// could be read of it: see Sound. The records of blocks are yielded as if all were in the database, those that are not
// beside what says where they are. The slices are valid during the call.
func (s *Snapshot) Each(yield func(key, value []byte) error) error {
	var value []byte
	for s.it.Rewind(); s.it.Valid(); s.it.Next() {
		item := s.it.Item()
		key := item.Key()
		if len(key) == 0 {
			return fmt.Errorf("store: %w", ErrDamaged)
		}
		if key[0] == metaTenant {
			continue
		}
		read, err := item.ValueCopy(value)
		if errors.Is(err, syscall.EIO) {
			return fmt.Errorf("store: read: %w", err)
		}
		if err != nil {
			read = nil
		}
		value = read
		placed, err := s.eachPlaced(key, read, yield)
		if err == nil && !placed {
			err = yield(key, read)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// eachPlaced yields what would be in the database of a block whose records are not, if the value is what such a block holds.
func (s *Snapshot) eachPlaced(key, value []byte, yield func(key, value []byte) error) (placed bool, err error) {
	t, first, ok := parseBlock(key)
	if !ok {
		return false, nil
	}
	body, err := open(key, value)
	if err != nil {
		return false, nil //nolint:nilerr // it is yielded as it is
	}
	c, ok := parseListing(first, body)
	if !ok || c.at.File == 0 {
		return false, nil
	}
	records, err := s.store.files.Read(nil, c.at, 0, c.at.Bytes)
	switch {
	case errors.Is(err, syscall.EIO):
		return true, fmt.Errorf("store: read: %w", err)
	case err != nil:
		records = append(records, unreadableRecords) // after what there is
	}
	return true, errors.Join(yield(key, sealListing(key, listing{places: c.places})), yield(t.records(first), records))
}

// unreadableRecords stands in a snapshot for records that can't be read. It is no version of a record.
const unreadableRecords = 0

// Sound reports whether a value as it is stored checks as a record. Of the records of a block it looks at the lengths alone:
// each of them is checked under its own key when it is read.
func Sound(key, value []byte) bool {
	if _, _, ok := parseRecords(key); !ok {
		_, err := open(key, value)
		return err == nil
	}
	for len(value) >= recordHeader && value[0] == recordVersion {
		n := recordHeader + int64(binary.LittleEndian.Uint32(value[1:]))
		if n > int64(len(value)) {
			return false
		}
		value = value[n:]
	}
	return len(value) == 0
}

// Record is a key with its value as it is stored.
type Record struct{ Key, Value []byte }

// Load stores records of a Snapshot in a store that is being made: no checkpoint vouches for them yet. They are to fit into
// one transaction: see Fits.
func (s *Store) Load(records []Record) error {
	txn := s.db.NewTransaction(true)
	defer txn.Discard()
	for _, r := range records {
		if len(r.Key) == 0 || r.Key[0] == metaTenant {
			return fmt.Errorf("store: %q is no key of a record", r.Key)
		}
		if err := txn.Set(r.Key, r.Value); err != nil {
			return fmt.Errorf("store: load: %w", err)
		}
	}
	if err := txn.Commit(); err != nil {
		return fmt.Errorf("store: load: %w", err)
	}
	return nil
}

// Fits reports whether one transaction takes so many records of so many bytes in all.
func Fits(records int, bytes int64) bool {
	return bytes+int64(records)*entryOverhead <= maxTxnBytes && records <= maxTxnEntries
}
