package substrate

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/journal"
	"github.com/longshore/longshore/substrate/internal/store"
)

// ErrLocked is returned by Open when another process holds the folder.
var ErrLocked = store.ErrLocked

// Options says where a log lives. Zero fields have defaults.
type Options struct {
	Dir          string // made if missing, 0700
	SegmentBytes int64  // of each of the journal's limits.JournalSegments files; default limits.JournalSegmentBytes
	// Free space of the disk, in bytes, below which the log takes no messages, and below which it changes nothing but what
	// gives space back. Defaults: limits.StorageLowBytes and limits.StorageReserveBytes.
	StorageLowBytes, StorageReserveBytes uint64
	// Expired, if not nil, is told what was buried because it expired, after the fact. It is called by the log's own
	// goroutine: it must be quick, and must not call the log.
	Expired  func([]DeadLetter)
	LockWait time.Duration // how long to wait for another process to leave Dir; default limits.LockWait

	housekeeping housekeeping // how soon space is given back; tests are in a hurry
}

// Log is an open log. All methods are safe for concurrent use.
type Log struct {
	store          *store.Store
	journal        *journal.Journal // the committer's
	mark           *markFile        // the committer's
	running        *runningFile
	opened         time.Time
	space          space
	recovered      Recovered
	expired        func([]DeadLetter)
	housekeeping   housekeeping
	mint           *mint
	maxCommitBytes int64

	mu        sync.Mutex // guards what follows
	state     *state
	admission *admission
	flushing  *batch // what the write-behind is storing now
	waiters   map[TopicName]chan struct{}
	deleting  map[string]*deletion // by tenant
	unflushed map[TopicName]int64  // publishes and acknowledgements of relaxed topics that are not on disk yet

	tails     tails
	queue     *queue
	stop      chan struct{} // closed by Close
	closeOnce sync.Once
	stopped   chan struct{} // closed when the committer has ended
	closeErr  error         // set before stopped is closed
	failOnce  sync.Once
	failed    chan struct{} // closed by fault
	failure   error         // set before failed is closed

	committer  committer
	flushes    atomic.Uint64
	flushNanos atomic.Int64
}

// Open opens or makes the log in o.Dir: it loads the state from the store, applies the frames of the journal that are not
// in it, and brings the store up to date. Leases of the process that had the log before are void: their messages may be
// claimed again at once. The attempt counts for those that were being handled when it ended (see Start), and is taken back for
// the others.
//
// Only one process can have a log open: see ErrLocked.
func Open(ctx context.Context, o Options) (*Log, error) {
	if o.SegmentBytes == 0 {
		o.SegmentBytes = limits.JournalSegmentBytes
	}
	if o.LockWait == 0 {
		o.LockWait = limits.LockWait
	}
	if o.StorageLowBytes == 0 {
		o.StorageLowBytes = limits.StorageLowBytes
	}
	if o.StorageReserveBytes == 0 {
		o.StorageReserveBytes = limits.StorageReserveBytes
	}
	if o.SegmentBytes < limits.JournalSegmentMinBytes || o.SegmentBytes%(4*limits.KiB) != 0 {
		return nil, fmt.Errorf("log: SegmentBytes is %d: want at least %d and a multiple of 4096", o.SegmentBytes, limits.JournalSegmentMinBytes)
	}
	if err := makeFolders(o.Dir); err != nil {
		return nil, err
	}
	st, err := store.Open(ctx, filepath.Join(o.Dir, "store"), o.LockWait)
	if err != nil {
		return nil, fmt.Errorf("log: %w", damagedOr(err))
	}
	l, err := recoverLog(o, st)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("log: open %s: %w", o.Dir, damagedOr(err)), st.Close())
	}
	l.housekeeping = o.housekeeping.withDefaults()
	l.start()
	return l, nil
}

// damagedOr makes an ErrDamaged of what the parts of the log say of themselves.
func damagedOr(err error) error {
	if errors.Is(err, ErrDamaged) {
		return err
	}
	gap, corrupt := new(journal.DamageError), new(store.CorruptError)
	if errors.Is(err, store.ErrDamaged) || errors.Is(err, errTruncated) || errors.As(err, &gap) || errors.As(err, &corrupt) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

func (l *Log) start() {
	l.queue = newQueue()
	l.stop, l.stopped, l.failed = make(chan struct{}), make(chan struct{}), make(chan struct{})
	l.waiters = map[TopicName]chan struct{}{}
	l.unflushed = map[TopicName]int64{}
	l.deleting = map[string]*deletion{}
	l.tails.answered = l.state.nextPosition
	l.committer = newCommitter(l)
	go l.committer.run()
}

// Close answers what was asked before, brings the store up to date and closes it. Later calls return ErrClosed, or what
// the first Close returned if they are Close themselves.
func (l *Log) Close() error {
	l.closeOnce.Do(func() { close(l.stop) })
	<-l.stopped
	return l.closeErr
}

// Recovered says what Open found.
type Recovered struct {
	Topics      int
	Backlog     int64 // messages that are not done
	DeadLetters int64
	Frames      int // of the journal, that the store did not have yet
	Crashed     int // messages that were being handled when the process before ended
	// Deleted are the tenants whose deletion was under way: nothing is left of them in the log. See DeleteTenant.
	Deleted []string
}

// Recovered returns what Open found.
func (l *Log) Recovered() Recovered { return l.recovered }

// Done is closed when a storage fault has stopped the log for good. Everything acknowledged before is safe: Close it,
// mend the cause that Err tells, and open it again.
func (l *Log) Done() <-chan struct{} { return l.failed }

// Err returns the fault that stopped the log, or nil while it works.
func (l *Log) Err() error {
	select {
	case <-l.failed:
		return l.failure
	default:
		return nil
	}
}

// JournalStats returns how often the journal was flushed since Open, and how long that took in all, writing included.
func (l *Log) JournalStats() (flushes uint64, total time.Duration) {
	return l.flushes.Load(), time.Duration(l.flushNanos.Load())
}

// now returns the time by the clock that the log was opened under, which a step of the system's clock does not move.
func (l *Log) now() time.Time { return l.opened.Add(time.Since(l.opened)) }
