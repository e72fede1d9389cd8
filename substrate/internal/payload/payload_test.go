package payload

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func open(t *testing.T, dir string, ends map[uint32]int64) *Files {
	t.Helper()
	f, err := Open(dir, ends)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() }) // most are closed
	return f
}

func add(t *testing.T, f *Files, run []byte) Place {
	t.Helper()
	p, err := f.Add(len(run), func(b []byte) []byte { return append(b, run...) })
	require.NoError(t, err)
	return p
}

// run returns n bytes that differ from those of other numbers.
func run(number uint64, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(number), byte(number >> 8)}).Read(b) // never fails
	return b
}

func requireRun(t *testing.T, f *Files, p Place, want []byte) {
	t.Helper()
	defer f.Pin()()
	got, err := f.Read(nil, p, 0, p.Bytes)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got))
	if p.Bytes > 2 {
		got, err = f.Read(got, p, 1, p.Bytes-2)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want[1:len(want)-1], got))
	}
}

func TestFiles(t *testing.T) {
	t.Run("KeepRunsOfAnyLengthAcrossOpens", func(t *testing.T) {
		dir, random := t.TempDir(), rand.New(rand.NewPCG(1, 2))
		places, ends := map[uint64]Place{}, map[uint32]int64{}
		runs := map[uint64][]byte{}
		number := uint64(0)
		for range 4 {
			f := open(t, dir, ends)
			for range 5 {
				for range random.IntN(12) {
					number++
					n := []int{0, 1, 4095, 4096, 4097, random.IntN(300_000), MaxRunBytes}[random.IntN(7)]
					runs[number] = run(number, n)
					p := add(t, f, runs[number])
					places[number] = p
					ends[p.File] = max(ends[p.File], p.Offset+int64(p.Bytes))
				}
				require.NoError(t, f.Flush())
				if random.IntN(2) == 0 {
					require.NoError(t, f.Sync())
				}
				for number, p := range places {
					requireRun(t, f, p, runs[number])
				}
			}
			require.NoError(t, f.Close())
		}
		require.NotEmpty(t, places)
	})

	t.Run("RefuseARunThatIsTooLong", func(t *testing.T) {
		f := open(t, t.TempDir(), nil)
		_, err := f.Add(MaxRunBytes+1, nil)
		require.ErrorContains(t, err, fmt.Sprint(MaxRunBytes))
		_, err = f.Add(10, func(b []byte) []byte { return b })
		require.ErrorContains(t, err, "a run has 0 bytes, not 10")
	})

	t.Run("GrowToTheirBoundAndNotBeyond", func(t *testing.T) {
		dir := t.TempDir()
		f := open(t, dir, nil)
		r := run(1, 1_000_000)
		var last Place
		for n := int64(0); n < FileBytes+FileBytes/8; n += int64(len(r)) {
			last = add(t, f, r)
		}
		require.NoError(t, f.Flush())
		require.Equal(t, uint32(2), last.File)
		requireRun(t, f, last, r)
		size, err := f.Size(1)
		require.NoError(t, err)
		require.LessOrEqual(t, size, int64(FileBytes))
		require.Greater(t, size, int64(FileBytes-2_000_000))
		bytes, err := f.Bytes()
		require.NoError(t, err)
		require.InDelta(t, FileBytes+FileBytes/8, bytes, 3_000_000)
	})

	t.Run("NeverUseANumberAgainThatAPlaceNames", func(t *testing.T) {
		dir := t.TempDir()
		f := open(t, dir, map[uint32]int64{7: 5_000})
		p := add(t, f, run(1, 10))
		require.Equal(t, uint32(8), p.File)
		require.NoError(t, f.Close())
	})

	t.Run("NeverWriteWhereAPlaceSaysThatARunWas", func(t *testing.T) {
		dir := t.TempDir()
		f := open(t, dir, nil)
		p := add(t, f, run(1, 100_000))
		require.NoError(t, f.Close())
		require.NoError(t, os.Truncate(filepath.Join(dir, fileName(1)), 50_000))
		f = open(t, dir, map[uint32]int64{1: p.Offset + int64(p.Bytes)})
		next := add(t, f, run(2, 10))
		require.Equal(t, p.File, next.File)
		require.GreaterOrEqual(t, next.Offset, p.Offset+int64(p.Bytes))
		require.NoError(t, f.Flush())
		requireRun(t, f, next, run(2, 10))
	})

	t.Run("SayWhatIsMissing", func(t *testing.T) {
		dir := t.TempDir()
		f := open(t, dir, nil)
		p := add(t, f, run(1, 10_000))
		require.NoError(t, f.Close())
		require.NoError(t, os.Truncate(filepath.Join(dir, fileName(1)), pageBytes+6_000))
		f = open(t, dir, nil)
		got, err := f.Read(nil, p, 0, p.Bytes)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.Len(t, got, 6_000)
		_, err = f.Read(nil, Place{File: 9, Bytes: 1}, 0, 1)
		require.ErrorIs(t, err, os.ErrNotExist)
		_, err = f.Read(nil, p, 1, p.Bytes)
		require.Error(t, err, "more than the run")
	})

	t.Run("AreKeptForThoseWhoPinnedThemBefore", func(t *testing.T) {
		dir := t.TempDir()
		f := open(t, dir, nil)
		p := add(t, f, run(1, 10_000))
		require.NoError(t, f.Flush())
		require.NoError(t, f.Remove(1))
		require.FileExists(t, filepath.Join(dir, fileName(1)), "it is written to")
		require.NoError(t, f.Leave(1))
		early := f.Pin()
		late := f.Pin()
		require.NoError(t, f.Remove(1))
		require.NoFileExists(t, filepath.Join(dir, fileName(1)))
		require.Empty(t, f.Numbers())
		after := f.Pin()
		early()
		requireRun(t, f, p, run(1, 10_000))
		late()
		_, err := f.Read(nil, p, 0, 1)
		require.ErrorIs(t, err, os.ErrNotExist, "who came after it was deleted does not keep it")
		after()
	})

	t.Run("RefuseAFileOfANewerVersion", func(t *testing.T) {
		dir := t.TempDir()
		f := open(t, dir, nil)
		add(t, f, run(1, 10))
		require.NoError(t, f.Close())
		name := filepath.Join(dir, fileName(1))
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, uint32(formatVersion), versionOf(b))
		b[8]++
		require.NoError(t, os.WriteFile(name, b, 0o600))
		f = open(t, dir, nil) // whose header does not check: what is in it has to speak for itself
		require.NoError(t, f.Close())
		copy(b[headerBytes-4:], le(crcOf(b[:headerBytes-4])))
		require.NoError(t, os.WriteFile(name, b, 0o600))
		_, err = Open(dir, nil)
		newer := new(VersionError)
		require.True(t, errors.As(err, &newer))
		require.Equal(t, VersionError{File: "000001.pay", Version: 2}, *newer)
		require.ErrorContains(t, err, "version 2 was written by a newer program; this one knows up to 1")
	})

	t.Run("TakeAFileThatACrashLeftEmpty", func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, fileName(3)), nil, 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "x.pay"), nil, 0o600))
		f := open(t, dir, nil)
		require.Equal(t, []uint32{3}, f.Numbers())
		p := add(t, f, run(1, 10))
		require.NoError(t, f.Flush())
		requireRun(t, f, p, run(1, 10))
		require.NoError(t, f.Close())
	})
}

func crcOf(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

func le(n uint32) []byte { return binary.LittleEndian.AppendUint32(nil, n) }
