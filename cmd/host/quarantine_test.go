package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/cmd/host/internal/cli"
	"github.com/longshore/longshore/cmd/host/internal/wire"
	"github.com/longshore/longshore/substrate"
)

// damage changes a byte of each stored record in which one of the texts stands.
func damage(t *testing.T, dir string, texts ...string) {
	t.Helper()
	db, err := badger.Open(badger.DefaultOptions(filepath.Join(dir, "longshore-data", "log", "store")).WithLogger(nil).WithCompression(0))
	require.NoError(t, err)
	require.NoError(t, db.Update(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.DefaultIteratorOptions)
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			value, err := it.Item().ValueCopy(nil)
			require.NoError(t, err)
			for _, text := range texts {
				if at := strings.Index(string(value), text); at >= 0 {
					value[at] ^= 1
					require.NoError(t, txn.Set(it.Item().KeyCopy(nil), value))
				}
			}
		}
		return nil
	}))
	require.NoError(t, db.Close())
}

func TestQuarantineCommands(t *testing.T) {
	dir := t.TempDir()
	misbehave(t, dir, "context: optional", "trap")
	prepareLog(t, dir, func(l *substrate.Log) {
		for _, payload := range []string{"damaged one", "damaged two"} {
			_, err := l.Publish(t.Context(), substrate.Message{ID: l.MintID(), Tenant: "default", Topic: "trap", Payload: []byte(payload)})
			require.NoError(t, err)
		}
	})
	damage(t, dir, "damaged one", "damaged two")
	p := startHost(t, dir)
	list := func(flags ...string) string {
		return ok(t, dir, append([]string{"quarantine", "list", "trap"}, flags...)...)
	}

	t.Run("AConsumerPutsAsideWhatDoesNotCheckAndSaysSo", func(t *testing.T) {
		require.Eventually(t, func() bool { return strings.Count(list("-o", "name"), "\n") == 2 }, 10*time.Second, 10*time.Millisecond)
		require.Eventually(t, func() bool { return strings.Contains(p.stderr.String(), `the checksum does not match`) }, 10*time.Second, 10*time.Millisecond)
		require.Contains(t, p.stderr.String(), "corrupt-record")
		s, err := p.admin.Topic(t.Context(), "default", "trap")
		require.NoError(t, err)
		require.EqualValues(t, 2, s.Quarantined)
		require.Zero(t, s.Ready+s.Leased+s.Delayed+s.DeadLetters)
	})
	t.Run("ListShowsWhatIsWrong", func(t *testing.T) {
		require.Regexp(t, `^ID +SINCE +BYTES +REASON +ERROR\n`, list())
		require.Regexp(t, `(?m)^position-1 +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +\d\d +corrupt-record +the checksum does not match$`, list())
		require.Equal(t, "position-1\nposition-2\n", list("-o", "name"))
	})
	t.Run("ShowHasTheBytesInHex", func(t *testing.T) {
		require.Regexp(t, `(?m)^record +01[0-9a-f]+$`, ok(t, dir, "quarantine", "show", "trap", "position-2"))
		var d wire.QuarantineDetail
		require.NoError(t, json.Unmarshal([]byte(ok(t, dir, "quarantine", "show", "trap", "position-2", "-o", "json")), &d))
		require.EqualValues(t, 2, d.Entry.Position)
		require.Len(t, d.Bytes, 2*d.Entry.Length)
	})
	t.Run("DiscardAsks", func(t *testing.T) {
		a := run(t, dir, "", "quarantine", "discard", "trap")
		require.Equal(t, cli.ExitUsage, a.code)
		require.Contains(t, a.err, "2 quarantined records of trap would be discarded")
		require.Contains(t, a.err, "add --yes")
		require.Equal(t, "1  would be discarded\n", ok(t, dir, "quarantine", "discard", "trap", "--limit", "1", "--dry-run"))
		require.Equal(t, "0  would be discarded\n", ok(t, dir, "quarantine", "discard", "trap", "--older-than", "1h", "--yes"))
		require.Equal(t, "1  discarded\n", ok(t, dir, "quarantine", "discard", "trap", "--id", "position-1", "--yes"))
		require.Equal(t, "position-2\n", list("-o", "name"))
		require.Equal(t, "1  discarded\n", ok(t, dir, "quarantine", "discard", "trap", "-y"))
		require.Empty(t, list("-o", "name"))
	})
	t.Run("ExitCodes", func(t *testing.T) {
		for _, c := range []struct {
			code int
			says string
			args []string
		}{
			{cli.ExitUsage, "needs one of", []string{"quarantine"}},
			{cli.ExitUsage, "takes TOPIC", []string{"quarantine", "list"}},
			{cli.ExitUsage, "--id is empty", []string{"quarantine", "discard", "trap", "--id", "", "--yes"}},
			{cli.ExitUsage, "--older-than", []string{"quarantine", "discard", "trap", "--older-than", "0s", "--yes"}},
			{cli.ExitUsage, "--limit", []string{"quarantine", "discard", "trap", "--limit", "-1", "--yes"}},
			{cli.ExitUsage, "is not allowed", []string{"quarantine", "show", "trap", "7"}},
			{cli.ExitFailed, "not found", []string{"quarantine", "show", "trap", "position-7"}},
			{cli.ExitFailed, "not found", []string{"quarantine", "list", "unknown"}},
		} {
			a := run(t, dir, "", c.args...)
			require.Equal(t, c.code, a.code, "%v: %s", c.args, a.err)
			require.Contains(t, a.err, c.says)
			require.Empty(t, a.out)
		}
	})
}
