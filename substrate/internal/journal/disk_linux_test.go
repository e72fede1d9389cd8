package journal

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=40k"); err != nil {
		t.Skipf("mounting a small tmpfs takes root: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	o := Options{Dir: dir, SegmentBytes: testSegmentBytes, Segments: 4}
	j := start(t, folder(dir), o, 0)
	want := add(t, j, true, 12000)
	want = append(want, add(t, j, true, 12000)...)
	require.ErrorIs(t, j.Reserve(12000), unix.ENOSPC, "two segments fit, a third doesn't")
	require.Equal(t, want, replayed(t, folder(dir), o, 0))
	leftovers, err := filepath.Glob(filepath.Join(dir, "*.new"))
	require.NoError(t, err)
	require.Empty(t, leftovers, "the half-made segment is removed")

	j.Release(1)
	want = append(want, add(t, j, true, 12000)...)
	require.Equal(t, want[1:], replayed(t, folder(dir), o, 1), "segments that are there go on")
	require.NoError(t, j.Close())
}

func TestFolder(t *testing.T) {
	d := folder(t.TempDir())
	for _, name := range []string{"seg-", "seg-01", "seg--1", "seg-1.new", "seg-x", "other"} {
		require.NoError(t, os.WriteFile(filepath.Join(string(d), name), nil, 0o600))
	}
	require.NoError(t, os.Mkdir(d.path(7), 0o700))
	f, err := d.create(2, 3*zeroChunkBytes/2)
	require.NoError(t, err)
	require.NoError(t, f.Datasync())
	require.NoError(t, f.Close())
	slots, err := d.list()
	require.NoError(t, err)
	require.Equal(t, []int{2}, slots)
	var stat unix.Stat_t
	require.NoError(t, unix.Stat(d.path(2), &stat))
	require.EqualValues(t, 3*zeroChunkBytes/2, stat.Size)
	require.GreaterOrEqual(t, stat.Blocks*512, stat.Size, "a hole")
}
