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
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("store: sync: %w", err)
	}
	for _, e := range entries {
		if !isLogFile(e.Name()) {
			continue
		}
		if err := failpoint.Hit("store.sync"); err != nil {
			return err
		}
		err := syncFile(filepath.Join(s.dir, e.Name()))
		if err != nil && !errors.Is(err, os.ErrNotExist) { // gone since: its table is synced
			return fmt.Errorf("store: sync: %w", err)
		}
	}
	if err := failpoint.Hit("store.sync-folder"); err != nil {
		return err
	}
	if err := syncFile(s.dir); err != nil {
		return fmt.Errorf("store: sync: %w", err)
	}
	if err := s.takeInventory(); err != nil {
		return fmt.Errorf("store: inventory: %w", err)
	}
	return nil
}

func syncFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
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
