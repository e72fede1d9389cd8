package cow

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// memoryOf returns a memory of an image of so many bytes of ones.
func memoryOf(t *testing.T, m Method, size, limit uint64) *mapped {
	t.Helper()
	s, err := Open(m)
	if err != nil {
		t.Skip(err)
	}
	template, err := s.Template(limit)
	require.NoError(t, err)
	b := template.Reallocate(size)
	for i := range b {
		b[i] = 1
	}
	image, err := template.Freeze(size)
	require.NoError(t, err)
	memory, err := image.Memory(limit)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, memory.Close())
		require.NoError(t, image.Close())
		require.NoError(t, template.Close())
		require.NoError(t, s.Close())
	})
	return memory.(*mapped)
}

// privatePages counts the private copies of a memory by reading pagemap, page by page.
func (m *mapped) privatePages(t *testing.T) int {
	t.Helper()
	other := &mapped{system: m.system, image: &mappedImage{}, all: make([]byte, len(m.all))}
	if m.system.pagemap < 0 {
		t.Skip("this method doesn't open pagemap")
	}
	n := 0
	page := uint64(os.Getpagesize())
	other.entries = make([]byte, uint64(len(m.all))/page*entryBytes)
	require.NoError(t, m.readEntries(other.entries, 0))
	for i := 0; i < len(other.entries); i += entryBytes {
		if e := other.entries[i+7]; e&0xc0 != 0 && e&0x20 == 0 {
			n++
		}
	}
	return n
}

func TestImage(t *testing.T) {
	t.Run("ItIsSealed", func(t *testing.T) {
		i := memoryOf(t, Copy, pageBytes, pageBytes).image
		_, err := unix.Pwrite(i.fd, []byte{2}, 0)
		require.ErrorIs(t, err, unix.EPERM)
		require.ErrorIs(t, unix.Ftruncate(i.fd, 0), unix.EPERM)
		require.ErrorIs(t, unix.Ftruncate(i.fd, 2*pageBytes), unix.EPERM)
		_, err = unix.FcntlInt(uintptr(i.fd), unix.F_ADD_SEALS, unix.F_SEAL_EXEC)
		require.ErrorIs(t, err, unix.EPERM)
	})
}

// Memory that the image has but nobody has touched is no memory of the image's file, so that writing to it makes one page of
// it, not two.
func TestImage_UntouchedEnd(t *testing.T) {
	const size = 64 * pageBytes
	s, err := Open(Scan)
	if err != nil {
		t.Skip(err)
	}
	template, err := s.Template(size)
	require.NoError(t, err)
	template.Reallocate(size)[3*pageBytes] = 1
	made, err := template.Freeze(size)
	require.NoError(t, err)
	image := made.(*mappedImage)
	require.Equal(t, uint64(3*pageBytes+os.Getpagesize()), image.data)
	memory, err := image.Memory(size)
	require.NoError(t, err)
	b := memory.Reallocate(size)
	for range 2 {
		require.Equal(t, 1, bytes.Count(b, []byte{1}))
		require.Equal(t, byte(1), b[3*pageBytes])
		for i := range b {
			b[i] = 2
		}
		_, err = memory.Reset()
		require.NoError(t, err)
	}
	var file unix.Stat_t
	require.NoError(t, unix.Fstat(image.fd, &file))
	require.LessOrEqual(t, file.Blocks*512, int64(4*pageBytes), "what was written isn't in the file")
	require.NoError(t, errors.Join(memory.Close(), image.Close(), template.Close(), s.Close()))
}

// A long piece of the image comes back as a short one does.
func TestImage_LongPieces(t *testing.T) {
	const size = 3 * readBytes
	m := memoryOf(t, Scan, size, size)
	b := m.Reallocate(size)
	clear(b[1:])
	_, err := m.Reset()
	require.NoError(t, err)
	require.Equal(t, size, bytes.Count(b, []byte{1}))
}

func TestTouched(t *testing.T) {
	for _, method := range []Method{Scan, Pagemap} {
		t.Run(method.String(), func(t *testing.T) {
			page := uint64(os.Getpagesize())
			m := memoryOf(t, method, 2*pageBytes, 8*pageBytes)
			b := m.Reallocate(8 * pageBytes)
			require.Zero(t, m.Touched())
			for at := uint64(0); at < 5*pageBytes; at += 2 * page {
				b[at] = 2
			}
			require.Zero(t, m.Touched(), "nobody has looked")
			m.Look()
			require.EqualValues(t, 5*pageBytes/2, m.Touched())
			b[page] = 2
			_, err := m.Reset()
			require.NoError(t, err)
			require.EqualValues(t, 5*pageBytes/2+page, m.Touched(), "what was copied back stays")
			require.NoError(t, m.Trim())
			require.Zero(t, m.Touched(), "it is the kernel's again")
		})
	}
}

func TestGivingBack(t *testing.T) {
	write := func(m *mapped, size uint64) {
		b := m.Reallocate(size)
		for at := 0; at < len(b); at += os.Getpagesize() {
			b[at] = 2
		}
	}
	t.Run("WhatGrewFarPastTheImageGoesAtOnce", func(t *testing.T) {
		m := memoryOf(t, Scan, pageBytes, 4*overgrownBytes)
		write(m, 2*pageBytes)
		_, err := m.Reset()
		require.NoError(t, err)
		require.NotZero(t, m.privatePages(t), "a little is kept")
		write(m, pageBytes+overgrownBytes+pageBytes)
		_, err = m.Reset()
		require.NoError(t, err)
		require.LessOrEqual(t, m.privatePages(t), pageBytes/os.Getpagesize(), "much isn't")
	})
	t.Run("ManyPrivateCopiesGoAfterAWhile", func(t *testing.T) {
		const size = (trimPages + 16) * 4096
		m := memoryOf(t, Scan, size, size)
		write(m, size)
		for range trimResets - 1 {
			_, err := m.Reset()
			require.NoError(t, err)
		}
		require.NotZero(t, m.privatePages(t))
		_, err := m.Reset()
		require.NoError(t, err)
		require.Zero(t, m.privatePages(t))
	})
	t.Run("TrimLeavesNoPrivateCopy", func(t *testing.T) {
		m := memoryOf(t, Scan, 4*pageBytes, 8*pageBytes)
		write(m, 8*pageBytes)
		_, err := m.Reset()
		require.NoError(t, err)
		require.NoError(t, m.Trim())
		require.Zero(t, m.privatePages(t))
	})
	t.Run("ClosingGivesTheAddressSpaceBack", func(t *testing.T) {
		before := mappings(t)
		for range 50 {
			m := memoryOf(t, Scan, pageBytes, 2*pageBytes)
			require.NoError(t, m.Close())
			require.NoError(t, m.image.Close())
		}
		require.Less(t, mappings(t), before+50)
	})
}

// mappings returns how many mappings the process has of memfds.
func mappings(t *testing.T) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	return strings.Count(string(maps), "longshore-image")
}

func TestReading(t *testing.T) {
	t.Run("WhatWasReadAloneIsNotRestored", func(t *testing.T) {
		m := memoryOf(t, Scan, 4*pageBytes, 64*pageBytes)
		b := m.Reallocate(64 * pageBytes)
		sum := 0
		for at := 0; at < len(b); at += 4096 {
			sum += int(b[at])
		}
		require.NotZero(t, sum, strconv.Itoa(sum))
		pages, err := m.Reset()
		require.NoError(t, err)
		require.Zero(t, pages)
	})
}

func TestRoom(t *testing.T) {
	s, err := Open(Copy)
	require.NoError(t, err)
	r := &s.impl.(*mappedSystem).room
	require.Zero(t, r.taken.Load(), "trying the method leaves nothing")
	s.Bound(3 * pageBytes)
	template, err := s.Template(pageBytes)
	require.NoError(t, err)
	image, err := template.Freeze(pageBytes)
	require.NoError(t, err)
	memory, err := image.Memory(3 * pageBytes)
	require.NoError(t, err, "a template that is frozen takes none")
	_, err = image.Memory(pageBytes)
	require.ErrorIs(t, err, ErrNoRoom)
	require.NoError(t, memory.Close())
	_, err = image.Memory(4 * pageBytes)
	require.ErrorIs(t, err, ErrNoRoom)
	require.Zero(t, r.taken.Load())

	s.Bound(1 << 62)
	_, err = r.reserve(1 << 61)
	require.ErrorIs(t, err, ErrNoRoom, "the kernel says so too")
	require.Zero(t, r.taken.Load())
	require.NoError(t, errors.Join(memory.Close(), image.Close(), template.Close(), s.Close()))
}
