package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/longshore/longshore/substrate/internal/failpoint"
)

// Sync makes everything that Write stored before durable: it flushes each memtable log and value log that exists now,
// and the folder. Tables need nothing: Badger syncs a table before it drops the memtable log that the table replaces.
// (db.Sync is no barrier across a memtable rotation: it flushes the newest file only.)
func (s *Store) Sync() error { return s.flush() }

func (s *Store) syncFiles() error {
	names, err := s.logFiles()
	if err != nil {
		return fmt.Errorf("store: sync: %w", err)
	}
	empty := s.emptyFiles()
	if err := s.files.Sync(); err != nil {
		return fmt.Errorf("store: sync: %w", err)
	}
	logs, folder, covered := due(names, s.synced)
	for _, name := range logs {
		if err := failpoint.Hit("store.sync"); err != nil {
			return err
		}
		err := syncFile(filepath.Join(s.dir, name), datasync)
		if err != nil && !errors.Is(err, os.ErrNotExist) { // gone since: its table is synced
			return fmt.Errorf("store: sync: %w", err)
		}
	}
	if folder {
		if err := failpoint.Hit("store.sync-folder"); err != nil {
			return err
		}
		if err := syncFile(s.dir, (*os.File).Sync); err != nil {
			return fmt.Errorf("store: sync: %w", err)
		}
	}
	s.synced = covered
	if err := s.takeInventory(); err != nil {
		return fmt.Errorf("store: inventory: %w", err)
	}
	for _, file := range empty {
		if err := s.files.Remove(file); err != nil {
			return fmt.Errorf("store: %w", err)
		}
	}
	return nil
}

// emptyFiles returns the payload files of which the records of no block are left. Once what is written now is durable, no
// power cut brings such a block back.
func (s *Store) emptyFiles() (empty []uint32) {
	for _, file := range s.files.Numbers() {
		if s.index.heldIn(file) == 0 {
			empty = append(empty, file)
		}
	}
	return empty
}

// due returns what a sync has to cover: the logs, but for those that were synced after Badger had gone on to a younger one,
// which don't change any more; and the folder, if a log came since the last sync. covered is what the next call gets as
// before: the names of the logs, and whether they are complete.
func due(names []string, before map[string]bool) (logs []string, folder bool, covered map[string]bool) {
	covered = map[string]bool{}
	for _, name := range names {
		complete, known := before[name]
		folder = folder || !known
		if !complete {
			logs = append(logs, name)
		}
		covered[name] = name != newestOf(names, filepath.Ext(name))
	}
	return logs, folder, covered
}

// The ends of the names of Badger's log files, which are numbered.
const (
	memtableSuffix = ".mem"
	valueLogSuffix = ".vlog"
)

func isLogFile(name string) bool {
	return strings.HasSuffix(name, memtableSuffix) || strings.HasSuffix(name, valueLogSuffix)
}

// logFiles returns the names of Badger's log files.
func (s *Store) logFiles() ([]string, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if isLogFile(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// newestOf returns the name with the highest number among those with the suffix, or "".
func newestOf(names []string, suffix string) string {
	newest := ""
	for _, name := range names {
		if strings.HasSuffix(name, suffix) && (len(name) > len(newest) || len(name) == len(newest) && name > newest) {
			newest = name
		}
	}
	return newest
}

// ValueLogBytes returns what the value logs and the payload files take on the disk.
func (s *Store) ValueLogBytes() (bytes int64, err error) {
	names, err := s.logFiles()
	if err != nil {
		return 0, fmt.Errorf("store: %w", err)
	}
	if bytes, err = s.files.Bytes(); err != nil {
		return 0, fmt.Errorf("store: %w", err)
	}
	for _, name := range names {
		var stat unix.Stat_t
		if !strings.HasSuffix(name, valueLogSuffix) {
			continue
		}
		if err := unix.Stat(filepath.Join(s.dir, name), &stat); err != nil {
			return 0, fmt.Errorf("store: %s: %w", name, err)
		}
		bytes += stat.Blocks * 512
	}
	return bytes, nil
}

func syncFile(name string, sync func(*os.File) error) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(sync(f), f.Close())
}

// ErrLocked says that another process holds the folder.
var ErrLocked = errors.New("another process holds the folder: stop it, or use another folder")

// acquire locks the file name for this process, trying for as long as wait. The file is never removed: a lock file that
// is deleted and made again can be held twice.
func acquire(ctx context.Context, name string, wait time.Duration) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	deadline := time.Now().Add(wait)
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			if err := writeHolder(f); err != nil {
				return nil, errors.Join(err, f.Close())
			}
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("store: lock %s: %w", name, err), f.Close())
		}
		if time.Now().After(deadline) {
			return nil, errors.Join(fmt.Errorf("%w (%s)", ErrLocked, holder(f)), f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), f.Close())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func writeHolder(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return fmt.Errorf("store: lock: %w", err)
	}
	if _, err := fmt.Fprintf(f, "pid %d\n", os.Getpid()); err != nil {
		return fmt.Errorf("store: lock: %w", err)
	}
	return nil
}

func holder(f *os.File) string {
	b := make([]byte, 32)
	n, err := f.ReadAt(b, 0)
	if n == 0 && err != nil {
		return "its pid is not known"
	}
	return strings.TrimSpace(string(b[:n]))
}
