// Package store keeps messages and state in Badger, written behind the journal by one writer.
//
// # Keys
//
// A key starts with its tenant and its topic, each with its length before it, so that no name can reach into another's
// keys; then a class and what it needs. Positions are big-endian, so that keys sort by position.
//
//	len tenant | len topic | 'A'                          state of the topic: cursors, counters, policy
//	len tenant | len topic | 'B' | len lane | position    dead letter (its message stays under 'M')
//	len tenant | len topic | 'D' | due ns | number        what to know of a message that is not visible yet
//	len tenant | len topic | 'G' | name                   state of a consumer group: cursor, counters
//	len tenant | len topic | 'H' | number                 that message
//	len tenant | len topic | 'K' | hash                   first use of an idempotency key
//	len tenant | len topic | 'L' | len lane | position    delivery state: lease, attempts, last reason
//	len tenant | len topic | 'M' | position               message
//	len tenant | len topic | 'P' | priority u8 | position  pointer to a message with a priority that nobody claimed yet
//	len tenant | len topic | 'X' | position               end of a message with a ttl or a deadline
//	0 | "checkpoint"                                      up to which frame the journal is in the store
//
// The classes F and Q are kept for fence marks and quarantine.
//
// # Records
//
// Every value is a record; its checksum is CRC-32C over key and body:
//
//	version u8 = 1 | length u32 | checksum u32 | body      (little-endian)
package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/failpoint"
)

const (
	memTableBytes     = 64 * limits.MiB
	maxTxnBytes       = 6 * limits.MiB // below Badger's 15 % of a memtable
	maxTxnEntries     = 50_000         // below Badger's memTableBytes * 15 % / 96
	entryOverhead     = 64             // bytes of a transaction that an entry costs beside key and value
	checkpointName    = "checkpoint"
	numMemtables      = 3
	levelZeroTables   = 2
	levelZeroStall    = 4
	valueLogFileBytes = 64 * limits.MiB
)

// ErrNotFound says that there is no record under the key.
var ErrNotFound = errors.New("no such record")

// ErrDamaged says that a file of the store does not check, or is missing.
var ErrDamaged = errors.New("the store is damaged")

// ErrClosed is returned by reads after Close.
var ErrClosed = errors.New("the store is closed")

// Op is one write: Body under Key; or, if Body is nil, the body that From holds; or, if that is nil too, its deletion.
type Op struct{ Key, Body, From []byte }

// Store is the database. Reads and Close are safe for concurrent use; Write and Sync belong to one goroutine.
type Store struct {
	db     *badger.DB
	dir    string
	lock   *os.File
	flush  func() error // syncs what Badger wrote; tests watch it
	grown  grown        // since the memtable was rotated
	use    sync.RWMutex // held by reads, so that Close waits for them: Badger unmaps its files
	closed bool         // guarded by use

	snapshots atomic.Int64 // that are not closed yet
	inventory inventory    // as it was written last; the writer's
}

// Open opens or makes the store in dir. If another process holds it, Open tries again until wait has passed and then says so.
func Open(ctx context.Context, dir string, wait time.Duration) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	lock, err := acquire(ctx, filepath.Join(dir, "longshore.lock"), wait)
	if err != nil {
		return nil, err
	}
	if err := removeEmpty(dir); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	db, err := openChecked(dir)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	s := &Store{db: db, dir: dir, lock: lock}
	s.flush = s.syncFiles
	return s, nil
}

// verify reads all tables: Badger itself notices a damaged one late, by a panic, or not at all.
func (s *Store) verify() error {
	if err := s.db.VerifyChecksum(); err != nil {
		return fmt.Errorf("store: %w: %w", ErrDamaged, err)
	}
	return nil
}

// openChecked opens the database, once its files are known to be whole: so far as Badger looks, it takes what does not check
// for the trace of a crash, and goes on without it.
func openChecked(dir string) (*badger.DB, error) {
	if err := checkInventory(dir); err != nil {
		return nil, err
	}
	if err := verifyTables(dir); err != nil {
		return nil, err
	}
	db, err := badger.Open(options(dir))
	var system syscall.Errno
	switch {
	case errors.As(err, &system) && !errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("store: open %s: %w", dir, err)
	case err != nil:
		return nil, fmt.Errorf("%w: open %s: %w", ErrDamaged, dir, err)
	}
	return db, nil
}

func options(dir string) badger.Options {
	o := badger.DefaultOptions(dir)
	o.Logger = nil
	o.SyncWrites = false // the journal is what makes a commit durable
	o.MemTableSize = memTableBytes
	o.NumMemtables = numMemtables
	o.NumCompactors = 2
	o.NumLevelZeroTables = levelZeroTables // few: a compaction needs as much room again as what it compacts
	o.NumLevelZeroTablesStall = levelZeroStall
	o.Compression = 0
	o.BlockCacheSize = 0
	o.IndexCacheSize = 0
	o.DetectConflicts = false // one writer
	o.MetricsEnabled = false
	o.ValueThreshold = limits.InlinePayloadBytes
	o.ValueLogFileSize = valueLogFileBytes
	return o
}

// Close waits for the reads under way, then flushes and closes the database.
func (s *Store) Close() error {
	s.use.Lock()
	defer s.use.Unlock()
	s.closed = true
	err := s.db.Close()
	if err == nil {
		err = s.takeInventory() // its memtables are tables now
	}
	return errors.Join(err, s.lock.Close())
}

// Abandon gives the folder free without closing the database, after a fault: Badger would try to flush for as long as the
// disk refuses. The process can't open the folder again; the next one can.
func (s *Store) Abandon() error { return s.lock.Close() }

// Write stores a batch. The ops of early may become visible on their own, in several transactions; those of last become
// visible at once, together with the checkpoint: early holds only what nobody looks at before last names it.
//
// A checkpoint never survives a power cut that what it vouches for did not: see grown. Write reports whether it made
// durable, for that, all that was written before last: the batches before this one among it.
func (s *Store) Write(early, last []Op, checkpoint []byte) (synced bool, err error) {
	last = append(last, Op{Key: metaKey(checkpointName), Body: checkpoint})
	s.grown.begin()
	s.grown.add(early)
	for len(early) > 0 {
		if err := failpoint.Hit("store.early"); err != nil {
			return false, err
		}
		n := fitting(early)
		if err := s.commit(early[:n]); err != nil {
			return false, err
		}
		early = early[n:]
	}
	synced, err = s.grown.unsafe(s.dir, last)
	if synced && err == nil {
		err = s.flush()
	}
	if err != nil {
		return false, err
	}
	if err := failpoint.Hit("store.last"); err != nil {
		return false, err
	}
	if err := s.commit(last); err != nil {
		return false, err
	}
	return synced, failpoint.Hit("store.written")
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

func (s *Store) commit(ops []Op) error {
	txn := s.db.NewTransaction(true)
	defer txn.Discard()
	for _, op := range ops {
		var err error
		switch {
		case op.Body != nil:
			err = txn.Set(op.Key, seal(op.Key, op.Body))
		case op.From != nil:
			err = move(txn, op)
		default:
			err = txn.Delete(op.Key)
		}
		if err != nil {
			return fmt.Errorf("store: write: %w", err)
		}
	}
	if err := txn.Commit(); err != nil {
		return fmt.Errorf("store: commit: %w", err)
	}
	return nil
}

// move writes what From holds under another key. What does not check there will not check here either.
func move(txn *badger.Txn, op Op) error {
	item, err := txn.Get(op.From)
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

// Checkpoint returns the body that the last Write stored, or ErrNotFound.
func (s *Store) Checkpoint() ([]byte, error) { return s.Get(metaKey(checkpointName)) }

// Get returns a copy of the body under key: ErrNotFound, or a *CorruptError if it does not check.
func (s *Store) Get(key []byte) ([]byte, error) {
	s.use.RLock()
	defer s.use.RUnlock()
	if s.closed {
		return nil, ErrClosed
	}
	return s.get(key)
}

func (s *Store) get(key []byte) ([]byte, error) {
	txn := s.db.NewTransaction(false)
	defer txn.Discard()
	item, err := txn.Get(key)
	if errors.Is(err, badger.ErrKeyNotFound) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("store: get: %w", err)
	}
	return read(item)
}

func read(item *badger.Item) ([]byte, error) {
	value, err := item.ValueCopy(nil)
	if errors.Is(err, syscall.EIO) {
		return nil, fmt.Errorf("store: read: %w", err)
	}
	if err != nil {
		return nil, &CorruptError{Key: item.KeyCopy(nil), Reason: err.Error()}
	}
	return open(item.Key(), value)
}

// Scan calls yield for each record under prefix from the key from on, in order, until yield returns false. A record that
// does not check is yielded with its error. The key is valid during the call; the body belongs to the callee, which must
// not close the store. The error is ErrClosed or nil.
func (s *Store) Scan(prefix, from []byte, yield func(key, body []byte, err error) bool) error {
	s.use.RLock()
	defer s.use.RUnlock()
	if s.closed {
		return ErrClosed
	}
	txn := s.db.NewTransaction(false)
	defer txn.Discard()
	o := badger.DefaultIteratorOptions
	o.Prefix = prefix
	o.PrefetchSize = 64
	it := txn.NewIterator(o)
	defer it.Close()
	for it.Seek(from); it.ValidForPrefix(prefix); it.Next() {
		body, err := read(it.Item())
		if !yield(it.Item().Key(), body, err) {
			break
		}
	}
	return nil
}

// Keys calls yield for each key under prefix from the key from on, in order, until yield returns false. It reads no values:
// a record may not check. The key is valid during the call. The error is ErrClosed or nil.
func (s *Store) Keys(prefix, from []byte, yield func(key []byte) bool) error {
	s.use.RLock()
	defer s.use.RUnlock()
	if s.closed {
		return ErrClosed
	}
	txn := s.db.NewTransaction(false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{Prefix: prefix})
	defer it.Close()
	for it.Seek(from); it.ValidForPrefix(prefix) && yield(it.Item().Key()); it.Next() {
	}
	return nil
}

// Topics calls yield for each topic that has a state, in order, hopping over everything else. A topic may have messages and
// no state yet: those of a batch that a crash cut short (see Write). Nobody knows of them before the journal is replayed.
func (s *Store) Topics(yield func(tenant, topic string, state []byte, err error) error) error {
	txn := s.db.NewTransaction(false)
	defer txn.Discard()
	o := badger.DefaultIteratorOptions
	o.PrefetchValues = false
	it := txn.NewIterator(o)
	defer it.Close()
	for it.Seek([]byte{metaTenant + 1}); it.Valid(); {
		tenant, topic, ok := parseTopic(it.Item().Key())
		if !ok {
			return &CorruptError{Key: it.Item().KeyCopy(nil), Reason: "the key is not one of a topic"}
		}
		t := TopicOf(tenant, topic)
		state, err := s.get(t.State())
		if !errors.Is(err, ErrNotFound) {
			if err := yield(tenant, topic, state, err); err != nil {
				return err
			}
		}
		it.Seek(t.end())
	}
	return nil
}

// removeEmpty removes files that a kill left without a byte, on which Badger would fail to open. The lock is held.
func removeEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return fmt.Errorf("store: %w", err)
		}
		if info.Size() == 0 && isLogFile(e.Name()) {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return fmt.Errorf("store: %w", err)
			}
		}
	}
	return nil
}

func isLogFile(name string) bool {
	return strings.HasSuffix(name, ".mem") || strings.HasSuffix(name, ".vlog")
}
