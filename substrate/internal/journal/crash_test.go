package journal

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// clone returns a disk with the same bytes, all of them durable.
func (d *crashDisk) clone() *crashDisk {
	c := newCrashDisk()
	for slot, f := range d.files {
		c.files[slot] = &crashFile{disk: c, data: slices.Clone(f.data), durable: slices.Clone(f.data)}
	}
	return c
}

func TestTornTail(t *testing.T) {
	d := newCrashDisk()
	j := start(t, d, testOptions, 0)
	want := add(t, j, true, 10, 100)
	offset := j.current.end
	last := add(t, j, true, 53)
	f := d.files[0]
	tails := map[string]func(b []byte){
		"Zero":   func(b []byte) { clear(b) },
		"Old":    func(b []byte) { fill(b, 0xa5) },
		"Ghosts": func(b []byte) { copy(b, f.data[pageBytes:]) },
	}
	for name, tear := range tails {
		t.Run(name, func(t *testing.T) {
			for cut := offset; cut < offset+frameHeadBytes+53; cut++ {
				torn := d.clone()
				tear(torn.files[0].data[cut:])
				require.Equal(t, want, replayed(t, torn, testOptions, 0), "cut at byte %d", cut-offset)
			}
		})
	}
	t.Run("Truncated", func(t *testing.T) {
		for cut := offset; cut < offset+frameHeadBytes+53; cut++ {
			torn := d.clone()
			torn.files[0].data = torn.files[0].data[:cut]
			require.Equal(t, want, replayed(t, torn, testOptions, 0), "cut at byte %d", cut-offset)
		}
	})
	t.Run("PaddingDoesNotCount", func(t *testing.T) {
		torn := d.clone()
		fill(torn.files[0].data[offset+frameHeadBytes+53:], 0xff)
		require.Equal(t, append(want, last...), replayed(t, torn, testOptions, 0))
	})
}

// sum puts the CRC of b, seeded, into to.
func sum(b, to []byte, seed uint32) {
	binary.LittleEndian.PutUint32(to, crc32.Update(seed, castagnoli(), b))
}

func fill(b []byte, with byte) {
	for i := range b {
		b[i] = with
	}
}

func TestDamage(t *testing.T) {
	d := newCrashDisk()
	j := start(t, d, testOptions, 0)
	add(t, j, true, 40)
	second := j.current.end
	add(t, j, true, 40)
	third := j.current.end
	add(t, j, true, 40)
	add(t, j, true, 12200) // too long for the first segment
	all := replayed(t, d, testOptions, 0)
	require.Len(t, all, 4)

	var damage *DamageError
	t.Run("EveryFlippedBitOfADurableFrameIsSeen", func(t *testing.T) {
		for bit := second * 8; bit < third*8; bit++ {
			flipped := d.clone()
			flipped.files[0].data[bit/8] ^= 1 << (bit % 8)
			_, err := openOn(flipped, testOptions, 0, func(Frame) error { return nil })
			require.ErrorAs(t, err, &damage)
			require.Equal(t, DamageError{File: "seg-0", Offset: second, From: 2, To: 2}, *damage)
			require.Equal(t, all[2:], replayed(t, flipped, testOptions, 2), "what is applied may be damaged")
		}
	})
	t.Run("InTheLastSegmentLaterFramesTell", func(t *testing.T) {
		flipped := d.clone()
		delete(flipped.files, 1)
		flipped.files[0].data[second] ^= 1
		_, err := openOn(flipped, testOptions, 0, func(Frame) error { return nil })
		require.ErrorAs(t, err, &damage)
		require.Equal(t, DamageError{File: "seg-0", Offset: second, From: 2, To: 2}, *damage)
		require.Equal(t, all[2:3], replayed(t, flipped, testOptions, 2))
	})
	t.Run("OfAppliedFramesOnlyItDoesNotHideATornTail", func(t *testing.T) {
		torn := newCrashDisk()
		j := start(t, torn, testOptions, 0)
		add(t, j, true, 40)
		add(t, j, false, 40, 40)
		clear(torn.files[0].data[pageBytes : pageBytes+2*FrameBytes(40)])
		require.Empty(t, replayed(t, torn, testOptions, 1))
	})
	t.Run("OneHeaderCopyIsEnough", func(t *testing.T) {
		for _, at := range []int64{0, headerCopy} {
			flipped := d.clone()
			fill(flipped.files[1].data[at:at+headerBytes], 0)
			require.Equal(t, all, replayed(t, flipped, testOptions, 0))
		}
	})
	t.Run("ALostSegmentInTheMiddleIsSeen", func(t *testing.T) {
		lost := newCrashDisk()
		j := start(t, lost, testOptions, 0)
		for range 3 {
			add(t, j, true, 12000)
		}
		fill(lost.files[1].data[:pageBytes], 0)
		_, err := openOn(lost, testOptions, 0, func(Frame) error { return nil })
		require.ErrorAs(t, err, &damage)
		require.Equal(t, DamageError{File: "seg-0", Offset: j.ring[0].end, From: 2, To: 2}, *damage)
		require.Len(t, replayed(t, lost, testOptions, 2), 1)
		fill(lost.files[0].data[:pageBytes], 0)
		_, err = openOn(lost, testOptions, 1, nil)
		require.ErrorAs(t, err, &damage)
		require.Equal(t, DamageError{File: "seg-2", Offset: pageBytes, From: 2, To: 2}, *damage)
	})
	t.Run("AStoreOlderThanTheLastRestartIsRefused", func(t *testing.T) {
		restarted := d.clone()
		start(t, restarted, testOptions, 4)
		_, err := openOn(restarted, testOptions, 3, func(Frame) error { return nil })
		require.ErrorAs(t, err, &damage)
		require.EqualValues(t, 4, damage.From)
		require.EqualValues(t, 4, damage.To)
		require.ErrorContains(t, err, "frames 4 to 4 are missing")
	})
	t.Run("AnEpochOlderThanTheOneKnownIsNotReplayed", func(t *testing.T) {
		known := testOptions
		known.Epoch = 2
		old := d.clone()
		require.Empty(t, replayed(t, old, known, 1))
		j := start(t, old, known, 1)
		require.EqualValues(t, 3, j.Epoch(), "younger than the one known")
		require.EqualValues(t, 2, j.Next())
		known.Epoch = 1
		require.Equal(t, all, replayed(t, d.clone(), known, 0))
	})
	t.Run("NewerVersionsAreRefusedByNumber", func(t *testing.T) {
		newer := d.clone()
		h := newer.files[0].data[:headerBytes]
		binary.LittleEndian.PutUint32(h[8:], 7)
		sum(h[:60], h[60:], 0)
		_, err := openOn(newer, testOptions, 0, nil)
		var version *VersionError
		require.ErrorAs(t, err, &version)
		require.Equal(t, VersionError{File: "seg-0", Version: 7}, *version)

		newer = d.clone()
		frame := newer.files[0].data[second : second+frameHeadBytes]
		frame[28] = 9
		sum(frame[4:], frame[:4], j.ring[0].head.salt)
		_, err = openOn(newer, testOptions, 0, func(Frame) error { return nil })
		require.ErrorAs(t, err, &version)
		require.Equal(t, VersionError{File: "seg-0", Offset: second, Version: 9}, *version)
	})
}

func TestFailedGroup(t *testing.T) {
	faults := map[string]func(d *crashDisk, after int){
		"Write": func(d *crashDisk, after int) { d.failWrite = after },
		"Sync":  func(d *crashDisk, after int) { d.failSync = after },
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			for after := range 2 { // the group goes over the end of a segment: two writes, two syncs
				d := newCrashDisk()
				j := start(t, d, testOptions, 0)
				want := add(t, j, true, 100, 8000)
				lost := group(j, 10, 2000, 3000, 20)
				require.NoError(t, j.Reserve(groupBytes(lost)))
				fault(d, after)
				err := j.Append(lost, true)
				require.ErrorIs(t, err, errInjected)
				require.ErrorIs(t, j.Append(nil, true), errInjected, "the first failure is the last")
				require.ErrorIs(t, j.Reserve(1), errInjected)
				require.ErrorIs(t, j.Sync(), errInjected)
				require.NoError(t, j.Close())
				require.Equal(t, want, replayed(t, d, testOptions, 0))

				j = start(t, d, testOptions, 2)
				again := add(t, j, true, 500)
				require.EqualValues(t, 3, again[0].Number, "its numbers are used again")
				d.powerCut(func() bool { return true })
				require.Equal(t, again, replayed(t, d, testOptions, 2))
			}
		})
	}
	t.Run("LeftWholeIfItsEndCannotBeTakenBack", func(t *testing.T) {
		d := newCrashDisk()
		j := start(t, d, testOptions, 0)
		want := add(t, j, true, 100, 8000)
		lost := group(j, 10, 2000, 3000, 20)
		require.NoError(t, j.Reserve(groupBytes(lost)))
		j.spare.file = brokenFile{d.files[j.spare.slot]}
		require.ErrorIs(t, j.Append(lost, true), errInjected)
		require.Equal(t, append(want, lost...), replayed(t, d, testOptions, 0), "better than a gap that looks like damage")
	})
}

// brokenFile is a file on which every sync fails, and every write after the first.
type brokenFile struct{ *crashFile }

func (f brokenFile) WriteAt(b []byte, off int64) (int, error) {
	if len(f.pending) > 0 {
		return 0, errInjected
	}
	return f.crashFile.WriteAt(b, off)
}

func (f brokenFile) Datasync() error { return errInjected }
