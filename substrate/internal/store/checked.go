package store

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/dgraph-io/badger/v4"
)

// openChecked opens the database, once its files are known to be whole: so far as Badger looks, it takes what does not check
// for the trace of a crash, and goes on without it.
func openChecked(dir string) (*badger.DB, error) {
	if err := checkInventory(dir); err != nil {
		return nil, err
	}
	if err := verifyTables(dir); err != nil {
		return nil, err
	}
	if err := verifyLogs(dir); err != nil {
		return nil, err
	}
	db, err := openBadger(dir)
	var system syscall.Errno
	switch {
	case errors.As(err, &system) && !errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("store: open %s: %w", dir, err)
	case err != nil:
		return nil, fmt.Errorf("%w: open %s: %w", ErrDamaged, dir, err)
	}
	return db, nil
}

// openBadger makes an error of a panic: a log whose entries don't check can bring Badger to that.
func openBadger(dir string) (db *badger.DB, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("badger: %v", p)
		}
	}()
	return badger.Open(options(dir))
}
