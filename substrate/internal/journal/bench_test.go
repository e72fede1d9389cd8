package journal

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// random returns n bytes that no disk below can make less of.
func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}

// BenchmarkAppend measures a durable group of 1 KiB frames, beside the same bytes written and synced bare.
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("frames=%d", n), func(b *testing.B) {
			o := Options{Dir: b.TempDir(), SegmentBytes: 16 << 20, Segments: 2}
			j := start(b, folder(o.Dir), o, 0)
			frames := group(j, make([]int, n)...)
			for i := range frames {
				frames[i].Body = random(1024)
			}
			b.SetBytes(groupBytes(frames))
			for b.Loop() {
				for i := range frames {
					frames[i].Number = j.Next() + uint64(i)
				}
				require.NoError(b, j.Reserve(groupBytes(frames)))
				require.NoError(b, j.Append(frames, true, nil))
				j.Release(j.Next() - 1)
			}
			require.NoError(b, j.Close())
		})
		b.Run(fmt.Sprintf("bare=%d", n), func(b *testing.B) {
			f, err := os.Create(filepath.Join(b.TempDir(), "bare"))
			require.NoError(b, err)
			require.NoError(b, fillZero(f, 16<<20))
			bytes := random(n * int(FrameBytes(1024)))
			b.SetBytes(int64(len(bytes)))
			var off int64
			for b.Loop() {
				if off+int64(len(bytes)) > 16<<20 {
					off = 0
				}
				_, err := f.WriteAt(bytes, off)
				require.NoError(b, err)
				require.NoError(b, osFile{f}.Datasync())
				off += int64(len(bytes))
			}
			require.NoError(b, f.Close())
		})
	}
}
