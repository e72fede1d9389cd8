package app

import (
	"errors"
	"fmt"
	"strings"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/longshore/longshore/substrate"
)

// DamageError says that the log in a folder is damaged, or that a part of it is gone. Nothing in it was changed.
type DamageError struct {
	Dir string
	Err error
}

// Error implements error, in one line.
func (e *DamageError) Error() string {
	cause := strings.ReplaceAll(e.Err.Error(), "\n", "; ")
	return fmt.Sprintf("the log in %s can't be opened: %s: nothing was changed; put the folder aside and restore a backup", e.Dir, cause)
}

// Unwrap returns the cause.
func (e *DamageError) Unwrap() error { return e.Err }

// openError tells a log that is damaged from one that can't be opened now.
func openError(dir string, err error) error {
	if errors.Is(err, substrate.ErrJournalMissing) || errors.Is(err, substrate.ErrDamaged) {
		return &DamageError{Dir: dir, Err: err}
	}
	return fmt.Errorf("open the log in %s: %w", dir, err)
}

// reportLog logs what was found in a log that was opened, and warns if its disk has too little room to take messages.
func reportLog(log *zap.Logger, found substrate.Recovered, low int64, free func(dir string) (uint64, error), dir string) {
	log.Info("log opened", zap.Int("topics", found.Topics), zap.Int64("backlog", found.Backlog),
		zap.Int64("dead_letters", found.DeadLetters), zap.Int("frames_replayed", found.Frames), zap.Int("crashed_deliveries", found.Crashed))
	switch bytes, err := free(dir); {
	case err != nil:
		log.Warn("publishes will be refused: the free space of the disk can't be told", zap.Error(err))
	case bytes < uint64(low):
		log.Warn("publishes will be refused: the disk is nearly full",
			zap.Uint64("free_bytes", bytes), zap.Int64("needed_bytes", low))
	}
}

// freeBytes returns the space that an ordinary user may still fill on the disk of dir.
func freeBytes(dir string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", dir, err)
	}
	return st.Bavail * uint64(st.Bsize), nil
}
