package substrate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/longshore/longshore/limits"
)

// TestProofFullDisk fills the disk of a log until the log refuses, drains it, and goes on, several times, in one process. The
// disk is a file system in memory that only that process sees: for that it needs a user namespace, or to be root.
func TestProofFullDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("fills a disk of 900 MiB")
	}
	until := proofUntil(t)
	cycles, fault := 0, ""
	plan := proofPlan{Role: "full", Dirs: []string{t.TempDir()}, Seconds: int(time.Until(until).Seconds())}
	own := func(a *syscall.SysProcAttr) {
		a.Unshareflags = syscall.CLONE_NEWNS
		if os.Getuid() != 0 {
			a.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS
			a.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
			a.Unshareflags = 0
		}
	}
	c, err := launchProofChild(t, plan, own, func(s proofStep) {
		if s.Kind == "cycle" {
			cycles++
		}
		fault += s.Fault
	})
	if errors.Is(err, os.ErrPermission) {
		figure("disk_full_cycles", 0)
		t.Skip("NOT PROVED: this machine lets nobody make a mount namespace: ", err)
	}
	require.NoError(t, err)
	failed := c.wait(t)
	if strings.HasPrefix(fault, noMount) {
		figure("disk_full_cycles", 0)
		t.Skip("NOT PROVED: ", fault)
	}
	require.Empty(t, fault)
	require.NoError(t, failed, "%s", c.output)
	require.GreaterOrEqual(t, cycles, 2)
	figure("disk_full_cycles", cycles)
}

const noMount = "this machine lets nobody mount a file system"

// proofFull is the child: it fills and drains.
func proofFull(t *testing.T, p *proofPlan, report *proofReport) {
	t.Helper()
	disk := p.Dirs[0]
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=900m"); err != nil {
		report.line(proofStep{Fault: fmt.Sprintf("%s: %v", noMount, err)})
		return
	}
	defer func() { _ = unix.Unmount(disk, unix.MNT_DETACH) }()
	l, err := Open(t.Context(), Options{
		Dir: filepath.Join(disk, "log"), SegmentBytes: 16 * limits.MiB,
		StorageLowBytes: 512 * limits.MiB, StorageReserveBytes: 256 * limits.MiB,
	})
	require.NoError(t, err)
	until := time.Now().Add(time.Duration(p.Seconds) * time.Second)
	for cycle := 0; cycle < 2 || time.Now().Before(until); cycle++ {
		published, err := fill(t.Context(), l)
		require.NoError(t, err)
		require.Greater(t, published, 1_000, "cycle %d", cycle)
		require.NoError(t, os.WriteFile(filepath.Join(disk, "other"), make([]byte, 20*limits.MiB), 0o600))
		require.NoError(t, drainDisk(t.Context(), l, published))
		require.NoError(t, os.Remove(filepath.Join(disk, "other")))
		room := func() bool { // what was deleted last may wait for more, once the disk isn't nearly full any longer
			free, err := l.space.free()
			return err == nil && free > l.space.low+100*limits.MiB
		}
		require.Eventually(t, room, 30*time.Second, 20*time.Millisecond, "the space comes back, cycle %d", cycle)
		report.line(proofStep{Kind: "cycle"})
	}
	require.NoError(t, errors.Join(l.Err(), l.Close()))
}

// fill publishes until the log refuses, and returns how many messages it took.
func fill(ctx context.Context, l *Log) (published int, err error) {
	payload := strings.Repeat("x", 50_000)
	for {
		msgs := make([]Message, 20)
		for i := range msgs {
			msgs[i] = l.newMessage(testTopic, payload)
		}
		_, err := l.Publish(ctx, msgs...)
		if errors.Is(err, ErrStorageFull) {
			return published, nil
		}
		if err != nil {
			return published, err
		}
		published += len(msgs)
	}
}

// drainDisk acknowledges so many messages: neither fewer nor more are there.
func drainDisk(ctx context.Context, l *Log, published int) error {
	for acked := 0; ; {
		got, err := l.Claim(ctx, claimRequest(testTopic, 100))
		if err != nil {
			return err
		}
		if len(got.Deliveries) == 0 {
			if acked != published {
				return fmt.Errorf("%d messages were taken, %d were delivered", published, acked)
			}
			return nil
		}
		var s []Settlement
		for _, d := range got.Deliveries {
			s = append(s, Settlement{Lease: d.Lease, Verdict: Ack})
		}
		if err := l.Settle(ctx, s, nil); err != nil {
			return err
		}
		acked += len(s)
	}
}
