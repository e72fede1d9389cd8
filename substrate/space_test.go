package substrate

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

func TestStorageWatermarks(t *testing.T) {
	l := openLog(t, t.TempDir())
	var free atomic.Uint64
	l.mu.Lock()
	l.space = space{low: 200, reserve: 100, free: func() (uint64, error) { return free.Load(), nil }}
	l.mu.Unlock()
	publishOne := func() error {
		_, err := l.Publish(t.Context(), l.newMessage(testTopic, "x"))
		return err
	}
	free.Store(200)
	for range 4 {
		require.NoError(t, publishOne())
	}
	d := claim(t, l, testTopic, 4)
	settle(t, l, d[3], Bury, "bad")

	free.Store(199) // below the first: no messages, everything else
	require.ErrorIs(t, publishOne(), ErrStorageFull)
	outbox := []Message{l.newMessage("out", "x")}
	require.ErrorIs(t, l.Settle(t.Context(), []Settlement{{Lease: d[0].Lease, Verdict: Ack}}, outbox), ErrStorageFull)
	settle(t, l, d[0], Ack, "")
	settle(t, l, d[1], Retry, "again")
	require.Len(t, claim(t, l, testTopic, 1), 1)

	free.Store(99) // below the second: reads, and what gives space back
	require.ErrorIs(t, publishOne(), ErrStorageFull)
	require.ErrorIs(t, l.Settle(t.Context(), []Settlement{{Lease: d[2].Lease, Verdict: Ack}}, nil), ErrStorageFull)
	_, err := l.Claim(t.Context(), claimRequest(testTopic, 1))
	require.ErrorIs(t, err, ErrStorageFull)
	_, err = l.Extend(t.Context(), d[2].Lease, time.Minute)
	require.ErrorIs(t, err, ErrStorageFull)
	_, err = l.Redrive(t.Context(), testTenant, testTopic, Redrive{})
	require.ErrorIs(t, err, ErrStorageFull)
	require.Len(t, deadLetters(t, l, DeadLetterFilter{}), 1)
	n, err := l.Discard(t.Context(), testTenant, testTopic, DeadLetterFilter{})
	require.NoError(t, err)
	require.Equal(t, 1, n)

	free.Store(200)
	settle(t, l, d[2], Ack, "")
	require.NoError(t, publishOne())
	require.NoError(t, l.Err())
}

// TestFullDisk fills a small file system, drains it, and goes on, several times, without a restart.
func TestFullDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("fills a disk of 1.5 GiB")
	}
	disk := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", "size=1536m", "tmpfs", disk).CombinedOutput(); err != nil {
		t.Skipf("needs to mount a tmpfs: %s", out)
	}
	t.Cleanup(func() {
		require.NoError(t, exec.Command("umount", "-l", disk).Run()) //nolint:noctx // the test's context has ended
	})
	l, err := Open(t.Context(), Options{
		Dir: filepath.Join(disk, "log"), SegmentBytes: 16 * limits.MiB,
		StorageLowBytes: 768 * limits.MiB, StorageReserveBytes: 384 * limits.MiB,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	payload := strings.Repeat("x", 50_000)
	for cycle := range 2 {
		published := 0
		for {
			msgs := make([]Message, 20)
			for i := range msgs {
				msgs[i] = l.newMessage(testTopic, payload)
			}
			_, err := l.Publish(t.Context(), msgs...)
			if errors.Is(err, ErrStorageFull) {
				break
			}
			require.NoError(t, err)
			published += len(msgs)
		}
		require.Greater(t, published, 1_000, "cycle %d", cycle)
		require.NoError(t, os.WriteFile(filepath.Join(disk, "other"), make([]byte, 20*limits.MiB), 0o600))
		for acked := 0; acked < published; {
			deliveries := claim(t, l, testTopic, 100)
			require.NotEmpty(t, deliveries)
			var s []Settlement
			for _, d := range deliveries {
				s = append(s, Settlement{Lease: d.Lease, Verdict: Ack})
			}
			require.NoError(t, l.Settle(t.Context(), s, nil))
			acked += len(s)
		}
		require.NoError(t, os.Remove(filepath.Join(disk, "other")))
		room := func() bool {
			free, err := l.space.free()
			return err == nil && free > l.space.low+300*limits.MiB
		}
		require.Eventually(t, room, 30*time.Second, 50*time.Millisecond, "the space comes back, cycle %d", cycle)
	}
	require.NoError(t, l.Err())
}
