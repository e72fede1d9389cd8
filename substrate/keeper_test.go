package substrate

import (
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

// diskUse returns the bytes that the files under dir take.
func diskUse(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // Badger removed it meanwhile
		}
		if info, err := d.Info(); err == nil {
			if stat, ok := info.Sys().(*syscall.Stat_t); ok {
				bytes += stat.Blocks * 512
			}
		}
		return nil
	}))
	return bytes
}

func TestDiskUseUnderChurnIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("publishes 600 MB")
	}
	const (
		rounds  = 24
		round   = 25_000 // messages
		batch   = 1_000
		payload = 1_000
		leave   = 100 // one in so many stays
	)
	dir := t.TempDir()
	l, err := Open(t.Context(), Options{Dir: dir})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	text := string(make([]byte, payload))
	for n := range int64(rounds) {
		for range round / batch {
			msgs := make([]Message, batch)
			for i := range msgs {
				msgs[i] = l.newMessage(testTopic, text)
			}
			_, err := l.Publish(t.Context(), msgs...)
			require.NoError(t, err)
		}
		storeUpToDate(t, l) // so that they don't pass the store by
		for left := round; left > 0; {
			d := claim(t, l, testTopic, batch)
			left -= len(d)
			settlements := make([]Settlement, len(d))
			for i := range d {
				settlements[i] = Settlement{Lease: d[i].Lease, Verdict: Ack}
				if d[i].Lease.Position%leave == 0 {
					settlements[i].Verdict = Bury
				}
			}
			require.NoError(t, l.Settle(t.Context(), settlements, nil))
		}
		live := (n+1)*round*payload/leave + round*payload
		used := diskUse(t, filepath.Join(dir, "store"))
		t.Logf("round %d: %d MB of messages at most, %d MB on disk", n, live/1e6, used/1e6)
		require.Less(t, used, 3*live+limits.ReclaimBusyBytes)
	}
	require.Equal(t, int64(rounds*round/leave), stats(t, l, testTopic).DeadLetters)
}
