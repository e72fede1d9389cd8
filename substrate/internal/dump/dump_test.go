package dump

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/longshore/longshore/limits"
)

type pair struct{ key, value string }

// written returns a stream of records.
func written(tb testing.TB, head string, records ...pair) []byte {
	tb.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, []byte(head))
	require.NoError(tb, err)
	for _, r := range records {
		require.NoError(tb, w.Add([]byte(r.key), []byte(r.value)))
	}
	total, err := w.End()
	require.NoError(tb, err)
	require.Equal(tb, Total{uint64(len(records)), int64(b.Len())}, total)
	digest := sha256.Sum256(b.Bytes()[:b.Len()-endBytes])
	require.True(tb, bytes.HasSuffix(b.Bytes(), digest[:]))
	return b.Bytes()
}

// readAll reads a stream to its end.
func readAll(from io.Reader) (head string, records []pair, total Total, err error) {
	r, err := NewReader(from)
	if err != nil {
		return "", nil, Total{}, err
	}
	for {
		key, value, err := r.Next()
		if errors.Is(err, io.EOF) {
			return string(r.Head()), records, r.Total(), nil
		}
		if err != nil {
			return "", records, Total{}, err
		}
		records = append(records, pair{string(key), string(value)})
	}
}

func small(tb testing.TB) []byte {
	tb.Helper()
	return written(tb, "the head", pair{"a", "one"}, pair{"b", ""}, pair{"c", "three"})
}

func TestStream(t *testing.T) {
	t.Run("GivesBackWhatWasWritten", func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			var want []pair
			for range rapid.IntRange(0, 20).Draw(rt, "n") {
				want = append(want, pair{
					rapid.StringN(1, 40, -1).Draw(rt, "key"), string(rapid.SliceOfN(rapid.Byte(), 0, 400).Draw(rt, "value")),
				})
			}
			head := rapid.String().Draw(rt, "head")
			stream := written(t, head, want...)
			for _, from := range []io.Reader{bytes.NewReader(stream), iotest.OneByteReader(bytes.NewReader(stream))} {
				gotHead, got, total, err := readAll(from)
				require.NoError(rt, err)
				require.Equal(rt, head, gotHead)
				require.Equal(rt, want, got)
				require.Equal(rt, Total{uint64(len(want)), int64(len(stream))}, total)
			}
		})
	})

	t.Run("ChangesOfAnyBitAreRefused", func(t *testing.T) {
		stream := small(t)
		for i := range len(stream) * 8 {
			broken := bytes.Clone(stream)
			broken[i/8] ^= 1 << (i % 8)
			_, _, _, err := readAll(bytes.NewReader(broken))
			require.Error(t, err, "bit %d of byte %d", i%8, i/8)
		}
	})

	t.Run("CutsAnywhereAreRefused", func(t *testing.T) {
		stream := small(t)
		for n := range stream {
			_, _, _, err := readAll(bytes.NewReader(stream[:n]))
			if n < len(magic) {
				require.ErrorIs(t, err, ErrForeign, "%d bytes", n)
			} else {
				require.ErrorIs(t, err, ErrCut, "%d bytes", n)
			}
		}
	})

	t.Run("MoreAfterTheEndIsRefused", func(t *testing.T) {
		stream := small(t)
		for _, more := range []string{"x", string(stream)} {
			_, _, _, err := readAll(bytes.NewReader(append(bytes.Clone(stream), more...)))
			require.ErrorIs(t, err, ErrDamaged)
			require.ErrorContains(t, err, "something follows its end")
		}
	})

	t.Run("RecordsInAnotherPlaceAreRefused", func(t *testing.T) {
		stream := written(t, "", pair{"a", "1"}, pair{"b", "2"}, pair{"c", "3"})
		const start, record = headPrefix + crcBytes, recordPrefix + 2
		head, a, b := stream[:start], stream[start:start+record], stream[start+record:start+2*record]
		rest := stream[start+2*record:]
		for name, parts := range map[string][][]byte{
			"swapped": {head, b, a, rest}, "left out": {head, b, rest}, "twice": {head, a, a, b, rest}, "last left out": {head, a, rest},
		} {
			_, _, _, err := readAll(bytes.NewReader(bytes.Join(parts, nil)))
			require.ErrorIs(t, err, ErrDamaged, name)
		}
		_, _, _, err := readAll(bytes.NewReader(bytes.Join([][]byte{head, a, b, rest}, nil)))
		require.NoError(t, err)
	})

	t.Run("OtherFilesAreNamedSo", func(t *testing.T) {
		for _, text := range []string{"", "x", "longshrj and more of it", "{\"json\": true}"} {
			_, err := NewReader(bytes.NewReader([]byte(text)))
			require.ErrorIs(t, err, ErrForeign, text)
		}
	})

	t.Run("ANewerVersionIsNamed", func(t *testing.T) {
		stream := small(t)
		stream[len(magic)] = 2
		_, err := NewReader(bytes.NewReader(stream))
		require.Equal(t, &VersionError{2}, err)
		require.ErrorContains(t, err, "format version 2")
	})

	t.Run("AnErrorOfTheSourceComesBackAndStays", func(t *testing.T) {
		stream := small(t)
		fault := errors.New("fault")
		r, err := NewReader(io.MultiReader(bytes.NewReader(stream[:40]), iotest.ErrReader(fault)))
		for err == nil {
			_, _, err = r.Next()
		}
		require.ErrorIs(t, err, fault)
		_, _, err = r.Next()
		require.ErrorIs(t, err, fault)
	})

	t.Run("AnErrorOfTheTargetComesBack", func(t *testing.T) {
		for room := range len(small(t)) {
			w, err := NewWriter(&narrow{room}, []byte("the head"))
			for _, r := range []pair{{"a", "one"}, {"b", ""}, {"c", "three"}} {
				if err == nil {
					err = w.Add([]byte(r.key), []byte(r.value))
				}
			}
			if err == nil {
				_, err = w.End()
			}
			require.ErrorIs(t, err, io.ErrShortWrite, "room for %d bytes", room)
		}
	})

	t.Run("SizesHaveBounds", func(t *testing.T) {
		_, err := NewWriter(io.Discard, make([]byte, maxHeadBytes+1))
		require.ErrorContains(t, err, "head")
		w, err := NewWriter(io.Discard, make([]byte, maxHeadBytes))
		require.NoError(t, err)
		require.ErrorContains(t, w.Add(nil, nil), "0 bytes")
		require.ErrorContains(t, w.Add(make([]byte, maxKeyBytes+1), nil), "key")
		require.NoError(t, w.Add(make([]byte, maxKeyBytes), nil))
		large := make([]byte, limits.BackupRecordBytes+1)
		require.ErrorIs(t, w.Add([]byte("k"), large), &limits.Error{Name: limits.NameBackupRecord})
		require.NoError(t, w.Add([]byte("k"), large[1:]))
	})

	t.Run("ALengthThatIsNotTrueCostsNoMemory", func(t *testing.T) {
		stream := written(t, "", pair{"a", "1"})
		at := headPrefix + crcBytes + 4
		copy(stream[at:], le32(nil, limits.BackupRecordBytes))
		r, err := NewReader(bytes.NewReader(stream))
		require.NoError(t, err)
		_, _, err = r.Next()
		require.ErrorIs(t, err, ErrCut)
		require.Less(t, r.record.Cap(), 1<<20)
		copy(stream[at:], le32(nil, limits.BackupRecordBytes+1))
		_, _, _, err = readAll(bytes.NewReader(stream))
		require.ErrorIs(t, err, ErrDamaged)
	})
}

// narrow takes so many bytes, and no more.
type narrow struct{ room int }

func (n *narrow) Write(b []byte) (int, error) {
	if len(b) > n.room {
		return n.room, io.ErrShortWrite
	}
	n.room -= len(b)
	return len(b), nil
}

func FuzzReader(f *testing.F) {
	f.Add(small(f))
	f.Add(written(f, ""))
	f.Fuzz(func(t *testing.T, stream []byte) {
		head, records, _, err := readAll(bytes.NewReader(stream))
		if err != nil {
			return
		}
		if !bytes.Equal(written(t, head, records...), stream) {
			t.Fatal("a stream that is whole is not the one that the writer makes")
		}
	})
}
