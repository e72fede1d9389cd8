package journal

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

const testSegmentBytes = 4 * pageBytes // room for 12 KiB of frames

var testOptions = Options{SegmentBytes: testSegmentBytes, Segments: 3}

// collect returns a replay callback and the frames that it was given, with bodies of their own.
func collect() (*[]Frame, func(Frame) error) {
	var frames []Frame
	return &frames, func(f Frame) error {
		f.Body = append([]byte{}, f.Body...)
		frames = append(frames, f)
		return nil
	}
}

// start opens a journal on d, takes everything replayed for applied, and restarts it.
func start(tb testing.TB, d disk, o Options, applied uint64) *Journal {
	tb.Helper()
	j, err := openOn(d, o, applied, func(Frame) error { return nil })
	require.NoError(tb, err)
	require.NoError(tb, j.Restart())
	return j
}

// replayed opens a journal on d and returns what it replays.
func replayed(tb testing.TB, d disk, o Options, applied uint64) []Frame {
	tb.Helper()
	frames, replay := collect()
	j, err := openOn(d, o, applied, replay)
	require.NoError(tb, err)
	require.NoError(tb, j.Close())
	return *frames
}

// group makes the next frames of j with bodies of the lengths given.
func group(j *Journal, lengths ...int) []Frame {
	var frames []Frame
	for i, n := range lengths {
		number := j.Next() + uint64(i)
		body := bytes.Repeat([]byte(fmt.Sprintf("<%d>", number)), n)[:n]
		frames = append(frames, Frame{Number: number, Kind: uint8(number), Body: body})
	}
	return frames
}

func groupBytes(frames []Frame) (n int64) {
	for _, f := range frames {
		n += FrameBytes(int64(len(f.Body)))
	}
	return n
}

// add reserves room for a group and appends it.
func add(tb testing.TB, j *Journal, durable bool, lengths ...int) []Frame {
	tb.Helper()
	frames := group(j, lengths...)
	require.NoError(tb, j.Reserve(groupBytes(frames)))
	require.NoError(tb, j.Append(frames, durable, nil))
	return frames
}

func TestJournal(t *testing.T) {
	t.Run("FramesComeBackWholeAndInOrder", func(t *testing.T) {
		o := Options{Dir: t.TempDir(), SegmentBytes: testSegmentBytes, Segments: 3}
		j := start(t, folder(o.Dir), o, 0)
		require.EqualValues(t, 1, j.Next())
		want := add(t, j, true, 0, 1, 7, 8, 9, 5000)
		want = append(want, add(t, j, true, 5000, 3000)...)
		want = append(want, add(t, j, false, 100)...)
		require.EqualValues(t, 8, j.Synced())
		require.NoError(t, j.Close())
		require.NoError(t, j.Close(), "closing again does nothing")
		require.ErrorIs(t, j.Append(nil, true, nil), ErrClosed)

		frames, replay := collect()
		j, err := Open(o, 0, replay)
		require.NoError(t, err)
		require.Equal(t, want, *frames)
		require.EqualValues(t, 10, j.Next())
		require.NoError(t, j.Close())
		require.Equal(t, want[5:], replayed(t, folder(o.Dir), o, 5), "frames that are applied are left out")
		require.Empty(t, replayed(t, folder(o.Dir), o, 9))
	})

	t.Run("OpenWritesNothing", func(t *testing.T) {
		o := Options{Dir: t.TempDir(), SegmentBytes: testSegmentBytes}
		require.Empty(t, replayed(t, folder(o.Dir), o, 0))
		entries, err := os.ReadDir(o.Dir)
		require.NoError(t, err)
		require.Empty(t, entries)
	})

	t.Run("NumbersGoOnAfterAStoreThatIsAhead", func(t *testing.T) {
		d := newCrashDisk()
		add(t, start(t, d, testOptions, 0), false, 10, 10)
		j := start(t, d, testOptions, 7)
		require.EqualValues(t, 8, j.Next())
		add(t, j, true, 10)
		require.EqualValues(t, 8, replayed(t, d, testOptions, 7)[0].Number)
	})

	t.Run("ReplayErrorsComeBack", func(t *testing.T) {
		d := newCrashDisk()
		add(t, start(t, d, testOptions, 0), true, 10)
		_, err := openOn(d, testOptions, 0, func(Frame) error { return errInjected })
		require.ErrorIs(t, err, errInjected)
	})

	t.Run("OptionsOutOfRangeAreRefused", func(t *testing.T) {
		for _, o := range []Options{{SegmentBytes: 5000}, {SegmentBytes: pageBytes}, {Segments: 1}, {Segments: maxSegments + 1}} {
			_, err := openOn(newCrashDisk(), o, 0, nil)
			require.ErrorContains(t, err, "must be", "%+v", o)
		}
		_, err := Open(Options{Dir: filepath.Join(t.TempDir(), "missing")}, 0, nil)
		require.ErrorIs(t, err, os.ErrNotExist)
	})

	t.Run("OneGroupIsOneSync", func(t *testing.T) {
		d := newCrashDisk()
		j := start(t, d, testOptions, 0)
		before := d.syncs
		add(t, j, true, slices.Repeat([]int{20}, 100)...)
		require.Equal(t, 1, d.syncs-before)
		add(t, j, false, 20)
		require.Equal(t, 1, d.syncs-before)
		require.EqualValues(t, 100, j.Synced())
		require.NoError(t, j.Sync())
		require.NoError(t, j.Sync())
		require.Equal(t, 2, d.syncs-before, "what is durable isn't synced again")
		require.EqualValues(t, 101, j.Synced())
	})
}

func TestRing(t *testing.T) {
	t.Run("AGroupGoesOverTheEndOfASegment", func(t *testing.T) {
		d := newCrashDisk()
		j := start(t, d, testOptions, 0)
		want := add(t, j, true, 8000)
		before := d.syncs
		want = append(want, add(t, j, false, 2000, 1000, 3000, 10)...)
		require.Equal(t, 1, d.syncs-before, "the full segment is synced before the next begins")
		require.EqualValues(t, 3, j.Synced())
		require.Len(t, d.files, 2, "segments are made when first needed")
		require.Equal(t, want, replayed(t, d, testOptions, 0))
		d.powerCut(func() bool { return false })
		require.Equal(t, want[:3], replayed(t, d, testOptions, 0))
	})

	t.Run("TheLargestFrameFitsAndALargerOneIsRefused", func(t *testing.T) {
		d := newCrashDisk()
		j := start(t, d, testOptions, 0)
		largest := int(j.MaxFrameBytes())
		var tooLarge *limits.Error
		require.ErrorAs(t, j.Reserve(FrameBytes(int64(largest+1))), &tooLarge)
		require.EqualValues(t, testSegmentBytes-pageBytes, tooLarge.Limit)
		want := append(add(t, j, true, largest), add(t, j, true, largest)...)
		require.Equal(t, want, replayed(t, d, testOptions, 0))
		require.ErrorAs(t, j.Append(group(j, largest+1), true, nil), &tooLarge)
	})

	t.Run("FullUntilReleased", func(t *testing.T) {
		d := newCrashDisk()
		j := start(t, d, testOptions, 0)
		for range 3 {
			add(t, j, true, 12000)
		}
		require.ErrorIs(t, j.Reserve(1000), ErrFull)
		j.Release(0)
		require.ErrorIs(t, j.Reserve(1000), ErrFull)
		j.Release(1)
		j.Release(0)
		require.NoError(t, j.Reserve(1000), "released stays released")
		require.Len(t, replayed(t, d, testOptions, 0), 3, "reserving overwrites nothing")
		add(t, j, true, 12000)
		require.ErrorIs(t, j.Reserve(1000), ErrFull)
		require.Len(t, d.files, 3)
		frames := replayed(t, d, testOptions, 1)
		require.EqualValues(t, 2, frames[0].Number)
		require.Len(t, frames, 3)
	})

	t.Run("StaleFramesOfARecycledSegmentAreNeverReplayed", func(t *testing.T) {
		d := newCrashDisk()
		j := start(t, d, testOptions, 0)
		for range 20 {
			for range 4 {
				add(t, j, true, 2900)
			}
			j.Release(j.Next() - 5)
		}
		add(t, j, true, 10)
		frames := replayed(t, d, testOptions, 76)
		require.Len(t, frames, 5)
		for i, f := range frames {
			require.EqualValues(t, 77+i, f.Number)
		}
		_, err := openOn(d, testOptions, 0, nil)
		var damage *DamageError
		require.ErrorAs(t, err, &damage, "a store that is behind what was released")
		require.EqualValues(t, 1, damage.From)
	})

	t.Run("NoSpaceForASegmentIsNotFinal", func(t *testing.T) {
		d := newCrashDisk()
		d.full = true
		j, err := openOn(d, testOptions, 0, nil)
		require.NoError(t, err)
		require.ErrorIs(t, j.Restart(), errInjected)
		d.full = false
		require.NoError(t, j.Restart())
		add(t, j, true, 12000)
		d.full = true
		require.ErrorIs(t, j.Reserve(1000), errInjected)
		d.full = false
		add(t, j, true, 1000)
		require.Len(t, replayed(t, d, testOptions, 0), 2)
	})

	t.Run("ReleaseRunsBesideAppend", func(t *testing.T) {
		j := start(t, newCrashDisk(), testOptions, 0)
		applied := make(chan uint64, 1)
		var applier sync.WaitGroup
		applier.Go(func() {
			for n := range applied {
				j.Release(n)
				_ = j.Synced()
			}
		})
		for appended := 0; appended < 500; {
			frames := group(j, 900)
			if err := j.Reserve(groupBytes(frames)); err != nil {
				require.ErrorIs(t, err, ErrFull)
				applied <- j.Next() - 1
				continue
			}
			require.NoError(t, j.Append(frames, true, nil))
			appended++
		}
		close(applied)
		applier.Wait()
	})

	t.Run("SizesMayChangeFromOneOpenToTheNext", func(t *testing.T) {
		dir := t.TempDir()
		o := Options{Dir: dir, SegmentBytes: testSegmentBytes, Segments: 4}
		j := start(t, folder(dir), o, 0)
		for range 4 {
			add(t, j, true, 12000)
		}
		require.NoError(t, j.Close())

		smaller := Options{Dir: dir, SegmentBytes: 2 * pageBytes, Segments: 2}
		require.Len(t, replayed(t, folder(dir), smaller, 0), 4)
		j = start(t, folder(dir), smaller, 4)
		for range 6 {
			add(t, j, true, 3000)
			j.Release(j.Next() - 1)
		}
		require.NoError(t, j.Close())
		for slot, present := range []bool{true, true, false, false} {
			info, err := os.Stat(folder(dir).path(slot))
			require.Equal(t, present, err == nil)
			if present {
				require.EqualValues(t, 2*pageBytes, info.Size())
			}
		}
		require.EqualValues(t, 10, replayed(t, folder(dir), o, 9)[0].Number)
	})
}

func TestMisuseIsFinal(t *testing.T) {
	cases := map[string]func(j *Journal) error{
		"AWrongNumber":   func(j *Journal) error { return j.Append([]Frame{{Number: 2}}, true, nil) },
		"NoRoomReserved": func(j *Journal) error { return j.Append(group(j, 7000, 7000), true, nil) },
	}
	for name, misuse := range cases {
		t.Run(name, func(t *testing.T) {
			d := newCrashDisk()
			j := start(t, d, testOptions, 0)
			err := misuse(j)
			require.Error(t, err)
			require.Equal(t, err, j.Append(nil, true, nil))
			require.Equal(t, err, j.Reserve(1))
			require.Equal(t, err, j.Sync())
			require.Equal(t, err, j.Restart())
			require.Empty(t, replayed(t, d, testOptions, 0))
		})
	}
	t.Run("ReserveBeforeRestart", func(t *testing.T) {
		j, err := openOn(newCrashDisk(), testOptions, 0, nil)
		require.NoError(t, err)
		require.ErrorContains(t, j.Reserve(1), "before Restart")
	})
	t.Run("RestartTwice", func(t *testing.T) {
		require.ErrorContains(t, start(t, newCrashDisk(), testOptions, 0).Restart(), "twice")
	})
}

func TestAppendBeforeRestartIsRefused(t *testing.T) {
	j, err := openOn(newCrashDisk(), testOptions, 0, nil)
	require.NoError(t, err)
	require.ErrorContains(t, j.Append(group(j, 1), true, nil), "before Restart")
}
