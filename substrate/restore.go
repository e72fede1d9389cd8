package substrate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/dump"
	"github.com/longshore/longshore/substrate/internal/journal"
	"github.com/longshore/longshore/substrate/internal/store"
)

// A restored log must not give numbers that the log it was backed up from gave after the backup: ids and positions that
// somebody may still hold would name other messages. So it goes on far above them.
const (
	// restoreSkip is added to frames and positions. It is the number of messages of years, and small enough that the numbers
	// of 2,000 restores, one upon the other, are exact in JSON.
	restoreSkip = 1 << 42
	// restoreOpenings is added to the number of the opening, which is a part of message ids; and as many again, at most, by
	// chance, so that two logs that are restored from one backup mint different ids.
	restoreOpenings = 1 << 16
)

// restoringSuffix is of the folder in which a log is made before it gets its name.
const restoringSuffix = ".restoring"

// CheckBackup reads a backup to its end and says what is in it. It makes sure that every byte is as it was written; only
// Restore makes sure that the log can be opened.
//
// Errors: ErrBackup, or one of r.
func CheckBackup(r io.Reader) (BackupInfo, error) {
	in, info, _, err := openBackup(r)
	for err == nil {
		_, _, err = next(in, &info)
	}
	return finished(in, info, err)
}

// Restore makes a log in dir, which is empty or doesn't exist, from a backup. The log is as it was when the backup was
// taken, but for leases, which are void as after every Open. It is verified and durable when Restore returns; if there is
// an error, dir is as it was.
//
// ctx is looked at between records: whoever ends it unblocks r.
//
// Errors: ErrNotEmpty; ErrBackup; ErrStorageFull if the disk has less room than a log needs to take messages; ErrLocked if
// another Restore is under way, or was killed; those of ctx and r.
func Restore(ctx context.Context, dir string, r io.Reader) (BackupInfo, error) {
	restore := restorer{dir: dir, low: limits.StorageLowBytes, free: freeBytes}
	info, err := restore.run(ctx, r)
	if err != nil {
		return BackupInfo{}, fmt.Errorf("restore %s: %w", dir, err)
	}
	return info, nil
}

type restorer struct {
	dir  string
	temp string // beside it: the log in the making
	low  uint64 // bytes of free space below which nothing is written
	free func(dir string) (uint64, error)
}

func (r *restorer) run(ctx context.Context, from io.Reader) (info BackupInfo, err error) {
	if err := r.begin(); err != nil {
		return BackupInfo{}, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(r.temp))
		}
	}()
	info, err = r.build(ctx, from)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return BackupInfo{}, err
	}
	return info, r.end()
}

// begin makes sure that dir is free, and makes the folder beside it.
func (r *restorer) begin() error {
	if target, err := filepath.EvalSymlinks(r.dir); err == nil {
		r.dir = target
	}
	r.dir = filepath.Clean(r.dir)
	if err := r.checkEmpty(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(r.dir), 0o700); err != nil {
		return err
	}
	temp := r.dir + restoringSuffix
	if err := os.Mkdir(temp, 0o700); errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %s is there: another restore is under way, or was killed: then delete it", ErrLocked, temp)
	} else if err != nil {
		return err
	}
	r.temp = temp
	return nil
}

// checkEmpty returns ErrNotEmpty, with a name, if there is something in dir.
func (r *restorer) checkEmpty() error {
	entries, err := os.ReadDir(r.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case len(entries) > 0:
		return fmt.Errorf("%w: there is %q, and %d in all", ErrNotEmpty, entries[0].Name(), len(entries))
	}
	return nil
}

// build makes the whole log in the temporary folder.
func (r *restorer) build(ctx context.Context, from io.Reader) (BackupInfo, error) {
	in, info, cp, err := openBackup(from)
	if err != nil {
		return finished(in, info, err)
	}
	if cp, err = skipped(cp); err != nil {
		return BackupInfo{}, err
	}
	st, err := store.Open(ctx, filepath.Join(r.temp, "store"), 0)
	if err != nil {
		return BackupInfo{}, err
	}
	err = r.load(ctx, in, &info, st)
	if info, err = finished(in, info, err); err == nil {
		err = errors.Join(writeCheckpoint(st, cp), verifyRestored(st, info))
	}
	if err = errors.Join(err, st.Close()); err == nil {
		err = makeJournal(filepath.Join(r.temp, "journal"), cp.frame)
	}
	return info, err
}

// load carries the records of a backup into a store, and returns io.EOF after the last.
func (r *restorer) load(ctx context.Context, in *dump.Reader, info *BackupInfo, st *store.Store) error {
	var batch []store.Record
	held := int64(0)
	flush := func() error {
		if err := r.room(); err != nil {
			return err
		}
		err := st.Load(batch)
		batch, held = batch[:0], 0
		return err
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		key, value, err := next(in, info)
		if err == io.EOF { //nolint:errorlint // what Next returns
			if err := flush(); err != nil {
				return err
			}
			return io.EOF
		}
		if err != nil {
			return err
		}
		n := int64(len(key) + len(value))
		if len(batch) > 0 && (held+n > limits.RestoreBatchBytes || !store.Fits(len(batch)+1, held+n)) {
			if err := flush(); err != nil {
				return err
			}
		}
		batch, held = append(batch, store.Record{Key: bytes.Clone(key), Value: bytes.Clone(value)}), held+n
	}
}

// room returns ErrStorageFull if there is not enough of it to go on: see space.
func (r *restorer) room() error {
	s := space{low: r.low, free: func() (uint64, error) { return r.free(r.temp) }}
	return s.look().admits(needMuch)
}

// end gives the log its name. Until then nobody can take it for one.
func (r *restorer) end() error {
	if err := syncTree(r.temp); err != nil {
		return err
	}
	if err := r.checkEmpty(); err != nil {
		return err
	}
	if err := unix.Rename(r.temp, r.dir); err != nil { // os.Rename doesn't take an empty folder's place
		return fmt.Errorf("rename %s: %w", r.temp, err)
	}
	return syncPath(filepath.Dir(r.dir))
}

// openBackup reads the head of a backup.
func openBackup(from io.Reader) (*dump.Reader, BackupInfo, checkpoint, error) {
	in, err := dump.NewReader(from)
	if err != nil {
		return in, BackupInfo{}, checkpoint{}, err
	}
	info, cp, err := decodeHead(in.Head())
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrBackup, err)
	}
	return in, info, cp, err
}

// next returns the next record of a backup, and counts it if it does not check in itself.
func next(in *dump.Reader, info *BackupInfo) (key, value []byte, err error) {
	key, value, err = in.Next()
	if err == nil && !store.Sound(key, value) {
		info.Damaged++
	}
	return key, value, err
}

// finished turns the error with which the reading of a backup ended into that of the call: none after io.EOF.
func finished(in *dump.Reader, info BackupInfo, err error) (BackupInfo, error) {
	newer := new(dump.VersionError)
	switch {
	case err == io.EOF: //nolint:errorlint // as load returns it, if nothing else went wrong
		total := in.Total()
		info.Records, info.Bytes = total.Records, total.Bytes
		return info, nil
	case errors.Is(err, dump.ErrForeign), errors.Is(err, dump.ErrCut), errors.Is(err, dump.ErrDamaged), errors.As(err, &newer):
		err = fmt.Errorf("%w: %w", ErrBackup, err)
	}
	return BackupInfo{}, err
}

// skipped returns the checkpoint that a restored log begins with.
func skipped(cp checkpoint) (checkpoint, error) {
	cp.frame += restoreSkip
	cp.nextPosition += restoreSkip
	cp.opening += restoreOpenings + rand.Uint64N(restoreOpenings) //nolint:gosec // it is to differ, not to be secret
	if cp.opening >= 1<<(64-idCounterBits)-restoreOpenings {
		return cp, errors.New("the log was opened and restored too often: its message ids are used up")
	}
	return cp, nil
}

// writeCheckpoint makes the records of a store those of a log, durably.
func writeCheckpoint(st *store.Store, cp checkpoint) error {
	if _, err := st.Write(nil, nil, cp.append(nil)); err != nil {
		return err
	}
	return st.Sync()
}

// verifyRestored loads the log as Open does, and compares it with what the backup says of itself.
func verifyRestored(st *store.Store, want BackupInfo) error {
	r, err := load(st)
	if err != nil {
		return fmt.Errorf("%w: the log that it holds can't be opened: %w", ErrBackup, err)
	}
	got := r.recovered()
	if got.Topics != want.Topics || got.Backlog != want.Backlog || got.DeadLetters != want.DeadLetters {
		return fmt.Errorf("%w: it holds %d topics, %d messages and %d dead letters, and says %d, %d and %d", ErrBackup,
			got.Topics, got.Backlog, got.DeadLetters, want.Topics, want.Backlog, want.DeadLetters)
	}
	return nil
}

// makeJournal makes the journal of a log whose store has the frames up to frame: so that the log is one like any other,
// and a journal that is missing is one that was lost. Open gives it the size that it is to have.
func makeJournal(dir string, frame uint64) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	j, err := journal.Open(journal.Options{
		Dir: dir, SegmentBytes: limits.JournalSegmentMinBytes, Segments: limits.JournalSegments,
	}, frame, func(journal.Frame) error { return errors.New("a new journal has frames") })
	if err != nil {
		return err
	}
	return errors.Join(j.Restart(), j.Close())
}

// syncTree makes the files and folders below dir durable.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return syncPath(name)
	})
}

func syncPath(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
