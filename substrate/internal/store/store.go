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
//	len tenant | len topic | 'F' | len lane | fence key   highest fence token that a lane accepted
//	len tenant | len topic | 'G' | name                   state of a consumer group: cursor, counters
//	len tenant | len topic | 'H' | number                 that message
//	len tenant | len topic | 'K' | hash                   first use of an idempotency key
//	len tenant | len topic | 'L' | len lane | position    delivery state: lease, attempts, last reason
//	len tenant | len topic | 'M' | position               message that is not in a block
//	len tenant | len topic | 'N' | first position         what a block of messages holds
//	len tenant | len topic | 'O' | first position         which of them are deleted
//	len tenant | len topic | 'R' | first position         their records
//	len tenant | len topic | 'P' | priority u8 | position  pointer to a message with a priority that nobody claimed yet
//	len tenant | len topic | 'Q' | 0 | position, 1 | hash  quarantine entry of a record that does not check
//	len tenant | len topic | 'X' | position               end of a message with a ttl or a deadline
//	len tenant | 0 | 'V' | len bucket | bucket | key      value that guests keep: see Bucket
//	0 | "checkpoint"                                      up to which frame the journal is in the store
//	0 | "erasure/" | tenant                               the tenant is being erased: its keys mean nothing
//
// # Records
//
// Every value is a record; its checksum is CRC-32C over key and body:
//
//	version u8 = 1 or 2 | length u32 | checksum u32 | body      (little-endian)
//
// # Blocks
//
// Messages that are written together are merged into blocks of consecutive ones of a topic, because an entry of Badger's
// costs far more than the bytes of a small message do. Get, Scan and Write know messages only. What stands under 'R' is the
// messages' records one after the other, each as it would stand under 'M'; 'N' says where each is, and 'O' which are deleted.
//
//	N  n | n times (position less the one before it, bytes of the record) [| file | offset]    varints
//	O  a bit for each message
//
// The records of a block that has 64 KiB of them or more are in a file beside the database, at an offset: see package
// payload. Then nothing stands under 'R', and the record under 'N' is of version 2. Programs before that wrote all under 'R'.
// A file that holds no block's records any more is deleted once that is durable: see syncFiles.
//
// What blocks there are is kept in memory. No two overlap, and none crosses a checkpoint: see DropFrom.
package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/payload"
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
	valueThreshold    = limits.InlinePayloadBytes
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
	flush  func() error    // syncs what Badger wrote; tests watch it
	grown  grown           // since the memtable was rotated
	index  index           // of the blocks of messages
	spent  []placed        // blocks of which nothing is left, to be deleted
	synced map[string]bool // log files that the last sync covered, and whether they are complete
	buffer []byte          // of the records that a transaction writes
	files  *payload.Files  // the records of blocks that are not in the database
	use    sync.RWMutex    // held by reads, so that Close waits for them: Badger unmaps its files
	closed bool            // guarded by use

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
	if err := s.loadIndex(); err != nil {
		return nil, errors.Join(fmt.Errorf("store: %w", err), db.Close(), lock.Close())
	}
	return s, nil
}

// verify reads all tables: Badger itself notices a damaged one late, by a panic, or not at all.
func (s *Store) verify() error {
	if err := s.db.VerifyChecksum(); err != nil {
		return fmt.Errorf("store: %w: %w", ErrDamaged, err)
	}
	return nil
}

// loadIndex finds the blocks, and those among them that are to be deleted, and opens the files of the others.
func (s *Store) loadIndex() error {
	txn := s.db.NewTransaction(false)
	defer txn.Discard()
	ends, err := s.index.load(txn)
	if err != nil {
		return err
	}
	if s.files, err = payload.Open(s.dir, ends); err != nil {
		return err
	}
	s.index.each(func(t Topic, b *block) {
		if b.live == 0 {
			s.spent = append(s.spent, placed{t, b})
		}
	})
	return nil
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
	o.VerifyValueChecksum = true // else a damaged value keeps the lock on its file, and Close never returns
	o.ValueThreshold = valueThreshold
	o.ValueLogFileSize = valueLogFileBytes
	return o
}

// Close waits for the reads under way, then flushes and closes the database.
func (s *Store) Close() error {
	s.use.Lock()
	defer s.use.Unlock()
	s.closed = true
	err := errors.Join(s.db.Close(), s.files.Close())
	if err == nil {
		err = s.takeInventory() // its memtables are tables now
	}
	return errors.Join(err, s.lock.Close())
}

// Abandon gives the folder free without closing the database, after a fault: Badger would try to flush for as long as the
// disk refuses. The process can't open the folder again; the next one can.
func (s *Store) Abandon() error { return s.lock.Close() }

// Checkpoint returns the body that the last Write stored, or ErrNotFound.
func (s *Store) Checkpoint() ([]byte, error) { return s.Get(metaKey(checkpointName)) }

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
