package cow_test

import (
	"bytes"
	"math/rand/v2"
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/runtime/internal/cow"
)

const page = 64 << 10 // of linear memory

// methods are those that this machine must have.
func methods() []cow.Method {
	if goruntime.GOOS != "linux" {
		return []cow.Method{cow.Heap}
	}
	return []cow.Method{cow.Scan, cow.Pagemap, cow.Copy, cow.Heap}
}

// forEach runs a test with every method. One that the machine lacks is skipped, except for those that all have.
func forEach(t *testing.T, test func(t *testing.T, s *cow.System)) {
	t.Helper()
	for _, m := range methods() {
		t.Run(m.String(), func(t *testing.T) {
			s, err := cow.Open(m)
			if err != nil && m < cow.Copy {
				t.Skip(err)
			}
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close()) }()
			require.Equal(t, m, s.Method())
			test(t, s)
		})
	}
}

// newImage makes an image of content, whose length is in whole pages of linear memory.
func newImage(tb testing.TB, s *cow.System, content []byte) cow.Image {
	tb.Helper()
	template, err := s.Template(uint64(len(content)) + page)
	require.NoError(tb, err)
	copy(template.Reallocate(uint64(len(content))), content)
	image, err := template.Freeze(uint64(len(content)))
	require.NoError(tb, err)
	require.NoError(tb, template.Close())
	tb.Cleanup(func() { require.NoError(tb, image.Close()) })
	return image
}

func newMemory(tb testing.TB, image cow.Image, limit uint64) cow.Memory {
	tb.Helper()
	m, err := image.Memory(limit)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, m.Close()) })
	return m
}

// noise returns n pages of content, every fourth of 4 KiB zero.
func noise(n int) []byte {
	r := rand.NewChaCha8([32]byte{1})
	b := make([]byte, n*page)
	for at := 0; at < len(b); at += 4096 {
		if at/4096%4 != 3 {
			_, _ = r.Read(b[at : at+4096])
		}
	}
	return b
}

func TestReset(t *testing.T) {
	forEach(t, func(t *testing.T, s *cow.System) {
		t.Helper()
		t.Run("WhateverWasWrittenIsGone", func(t *testing.T) {
			const limit = 40 * page
			content := noise(8)
			m := newMemory(t, newImage(t, s, content), limit)
			r := rand.New(rand.NewPCG(1, 2))
			for range 60 {
				size := 8*page + r.IntN(limit/page-8+1)*page
				b := m.Reallocate(uint64(size))
				require.Len(t, b, size)
				require.True(t, bytes.Equal(content, b[:len(content)]), "the image is there")
				require.Zero(t, bytes.Count(b[len(content):], []byte{9}), "and zeros are past it")
				for range r.IntN(300) {
					b[r.IntN(size)] = 9
				}
				_, err := m.Reset()
				require.NoError(t, err)
				m.Publish(uint64(len(content)))
				require.Len(t, m.Reallocate(limit), len(content), "it is as small as before")
				b = b[:cap(b)]
				require.True(t, bytes.Equal(content, b[:len(content)]))
				require.Equal(t, len(b)-len(content), bytes.Count(b[len(content):], []byte{0}))
			}
		})
		t.Run("EveryPageWrittenIsFoundHoweverManyRangesTheyAre", func(t *testing.T) {
			content := noise(64)
			m := newMemory(t, newImage(t, s, content), 64*page)
			b := m.Reallocate(64 * page)
			for at := 0; at < len(b); at += 2 * 4096 { // 512 ranges
				b[at]++
			}
			_, err := m.Reset()
			require.NoError(t, err)
			require.True(t, bytes.Equal(content, b))
		})
		t.Run("MemoriesOfOneImageDontSeeEachOther", func(t *testing.T) {
			content := noise(2)
			image := newImage(t, s, content)
			one, two := newMemory(t, image, 4*page), newMemory(t, image, 4*page)
			a, b := one.Reallocate(4*page), two.Reallocate(4*page)
			clear(a)
			a[3*page] = 1
			require.True(t, bytes.Equal(content, b[:len(content)]))
			require.Zero(t, b[3*page])
			_, err := one.Reset()
			require.NoError(t, err)
			require.True(t, bytes.Equal(content, a[:len(content)]))
		})
		t.Run("AnImageMayBeEmpty", func(t *testing.T) {
			m := newMemory(t, newImage(t, s, nil), 2*page)
			require.Empty(t, m.Reallocate(0))
			b := m.Reallocate(2 * page)
			b[0], b[2*page-1] = 1, 2
			_, err := m.Reset()
			require.NoError(t, err)
			require.Equal(t, len(b), bytes.Count(b, []byte{0}))
		})
		t.Run("TrimmedMemoryHoldsItsImage", func(t *testing.T) {
			content := noise(2)
			m := newMemory(t, newImage(t, s, content), 4*page)
			b := m.Reallocate(4 * page)
			clear(b)
			b[3*page] = 1
			_, err := m.Reset()
			require.NoError(t, err)
			require.NoError(t, m.Trim())
			require.True(t, bytes.Equal(content, b[:len(content)]))
			require.Zero(t, b[3*page])
		})
	})
}

func TestReallocate(t *testing.T) {
	forEach(t, func(t *testing.T, s *cow.System) {
		t.Helper()
		t.Run("NoMoreThanTheLimitIsGiven", func(t *testing.T) {
			m := newMemory(t, newImage(t, s, noise(1)), 3*page)
			require.NotNil(t, m.Reallocate(3*page))
			require.Nil(t, m.Reallocate(3*page+1))
		})
		t.Run("WhatWasWrittenIsKept", func(t *testing.T) {
			const limit = 64 * page
			m := newMemory(t, newImage(t, s, nil), limit)
			base := &m.Reallocate(page)[0]
			for size := uint64(page); size <= limit; size += page {
				b := m.Reallocate(size)
				b[size-1] = 1
				if s.Method() != cow.Heap {
					require.Same(t, base, &b[0], "the base never moves")
				}
			}
			b := m.Reallocate(limit)
			for at := page - 1; at < limit; at += page {
				require.EqualValues(t, 1, b[at])
			}
		})
	})
}

func TestOpen(t *testing.T) {
	t.Run("ItTakesTheFirstMethodThatWorks", func(t *testing.T) {
		s, err := cow.Open(cow.Method(99), cow.Heap, cow.Copy)
		require.NoError(t, err)
		require.Equal(t, cow.Heap, s.Method())
		require.NoError(t, s.Close())
	})
	t.Run("WithoutOneItSaysWhy", func(t *testing.T) {
		_, err := cow.Open(cow.Method(99))
		require.ErrorContains(t, err, "method 99")
	})
}

func BenchmarkReset(b *testing.B) {
	const dirty = 10
	for _, m := range methods() {
		b.Run(m.String(), func(b *testing.B) {
			s, err := cow.Open(m)
			require.NoError(b, err)
			memory := newMemory(b, newImage(b, s, noise(144)), 160*page) // 9 MiB
			content := memory.Reallocate(144 * page)
			for b.Loop() {
				for i := range dirty {
					content[i*10*4096] = 1
				}
				if _, err := memory.Reset(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
