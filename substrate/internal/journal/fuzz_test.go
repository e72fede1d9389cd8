package journal

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// squeeze takes the parts of a segment that tell something: its header and its first frames.
func squeeze(f *crashFile) []byte {
	return append(slices.Clone(f.data[:headerBytes]), f.data[pageBytes:pageBytes+400]...)
}

// unsqueeze makes a segment of b, cut off after it if b has an odd length.
func unsqueeze(d *crashDisk, b []byte) *crashFile {
	data := make([]byte, 2*pageBytes)
	n := copy(data[:headerBytes], b)
	n = pageBytes + copy(data[pageBytes:], b[n:])
	if len(b)%2 == 1 {
		data = data[:n]
	}
	return &crashFile{disk: d, data: data, durable: slices.Clone(data)}
}

// FuzzOpen opens whatever bytes two segments have. It must end, without a panic, with frames in order or a typed error;
// and a journal that opens must go on working.
func FuzzOpen(f *testing.F) {
	d := newCrashDisk()
	o := Options{SegmentBytes: 2 * pageBytes, Segments: 2}
	j := start(f, d, o, 0)
	add(f, j, true, 10, 20)
	f.Add(squeeze(d.files[0]), []byte{}, uint64(0))
	add(f, j, false, 100, 3000)
	add(f, j, false, 3000, 10, 30)
	f.Add(squeeze(d.files[0]), squeeze(d.files[1]), uint64(0))
	f.Add(squeeze(d.files[0]), squeeze(d.files[1]), uint64(4))
	j.Release(4)
	add(f, j, true, 3000, 10)
	f.Add(squeeze(d.files[0]), squeeze(d.files[1]), uint64(4))
	f.Fuzz(func(t *testing.T, first, second []byte, applied uint64) {
		applied %= 1 << 62
		d := newCrashDisk()
		d.files[0], d.files[1] = unsqueeze(d, first), unsqueeze(d, second)
		last := applied
		j, err := openOn(d, o, applied, func(f Frame) error {
			require.Equal(t, last+1, f.Number)
			require.LessOrEqual(t, int64(len(f.Body)), o.SegmentBytes)
			last = f.Number
			return nil
		})
		if err != nil {
			var damage *DamageError
			var version *VersionError
			require.True(t, errors.As(err, &damage) || errors.As(err, &version), "%v", err)
			return
		}
		require.Equal(t, last+1, j.Next())
		require.NoError(t, j.Restart())
		want := add(t, j, true, 100)
		require.Equal(t, want, replayed(t, d, o, last))
	})
}

// FuzzFrames is FuzzOpen behind the CRCs: it fills a segment with frames that check but say what the fuzzer likes.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{1, 0, 3, 2, 1, 40, 4, 0, 0}, uint64(0))
	f.Add([]byte{1, 0, 3, 9, 9, 255, 2, 1, 7, 3, 1, 0}, uint64(1))
	f.Fuzz(func(t *testing.T, script []byte, applied uint64) {
		applied %= 300
		d := newCrashDisk()
		o := Options{SegmentBytes: 2 * pageBytes, Segments: 2}
		_, err := d.create(0, o.SegmentBytes)
		require.NoError(t, err)
		data := d.files[0].data
		copy(data, header{epoch: 1, sequence: 1, first: 1, salt: 7}.page())
		off := pageBytes
		for ; len(script) >= 3 && off+512 < len(data); script = script[3:] {
			body := make([]byte, script[2])
			b := appendFrame(nil, Frame{Number: uint64(script[0]), Body: body}, uint64(script[1]), 7)
			off += copy(data[off:], b)
		}
		last := applied
		j, err := openOn(d, o, applied, func(f Frame) error {
			require.Equal(t, last+1, f.Number)
			last = f.Number
			return nil
		})
		if err != nil {
			var damage *DamageError
			require.ErrorAs(t, err, &damage)
			require.LessOrEqual(t, damage.From, damage.To)
			require.Greater(t, damage.To, applied)
			return
		}
		require.Equal(t, last+1, j.Next())
	})
}
