package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/longshore/longshore/internal/config"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate"
)

func TestReportLog(t *testing.T) {
	report := func(free uint64, err error) []observer.LoggedEntry {
		core, seen := observer.New(zapcore.InfoLevel)
		reportLog(zap.New(core), substrate.Recovered{Topics: 2, Backlog: 3, DeadLetters: 4, Frames: 5, Crashed: 6}, limits.StorageLowBytes,
			func(string) (uint64, error) { return free, err }, "d")
		return seen.All()
	}
	t.Run("SaysWhatWasFoundInOneLine", func(t *testing.T) {
		got := report(limits.StorageLowBytes, nil)
		require.Len(t, got, 1)
		require.Equal(t, "log opened", got[0].Message)
		require.Equal(t, map[string]any{
			"topics": int64(2), "backlog": int64(3), "dead_letters": int64(4), "frames_replayed": int64(5), "crashed_deliveries": int64(6),
		}, got[0].ContextMap())
	})
	t.Run("WarnsThatPublishesWillBeRefused", func(t *testing.T) {
		for _, got := range [][]observer.LoggedEntry{report(limits.StorageLowBytes-1, nil), report(0, errors.New("no disk"))} {
			require.Len(t, got, 2)
			require.Equal(t, zapcore.WarnLevel, got[1].Level)
			require.Contains(t, got[1].Message, "publishes will be refused")
		}
	})
	t.Run("FreeSpaceIsThatOfTheFolder", func(t *testing.T) {
		free, err := freeBytes(t.TempDir())
		require.NoError(t, err)
		require.Positive(t, free)
		_, err = freeBytes(filepath.Join(t.TempDir(), "none"))
		require.ErrorIs(t, err, os.ErrNotExist)
	})
}

func TestOpenLogThatIsDamaged(t *testing.T) {
	h := &config.Host{Data: t.TempDir()}
	for range 2 {
		log, err := OpenLog(t.Context(), h, nil)
		require.NoError(t, err)
		_, err = log.Publish(t.Context(), substrate.Message{ID: log.MintID(), Tenant: "default", Topic: "a", Payload: []byte("x")})
		require.NoError(t, err)
		require.NoError(t, log.Close())
	}
	require.NoError(t, os.RemoveAll(filepath.Join(LogDir(h.Data), "journal")))
	_, err := OpenLog(t.Context(), h, nil)
	require.ErrorIs(t, err, substrate.ErrJournalMissing)
	require.ErrorAs(t, err, new(*DamageError))
	require.Regexp(t, "^the log in .*: nothing was changed; put the folder aside and restore a backup$", err.Error())

	damaged := openError("d", fmt.Errorf("log: %w: %w", substrate.ErrDamaged, errors.Join(errors.New("one"), errors.New("two"))))
	require.EqualError(t, damaged,
		"the log in d can't be opened: log: the log is damaged: one; two: nothing was changed; put the folder aside and restore a backup")
	require.NotErrorAs(t, openError("d", os.ErrPermission), new(*DamageError))
}
