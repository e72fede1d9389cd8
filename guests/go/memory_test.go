package longshore

import (
	"runtime"
	"testing"
)

// put lends the heap a string, as a host does, and writes its address and length at an offset of v.
func put(h *heap, v view, at uint32, s string) {
	address := h.realloc(0, 0, 1, uint32(len(s)))
	copy(bytesOf(h.blocks[address]), s)
	putWords(v, at, address, uint32(len(s)))
}

// putList lends the heap a list of n elements, writes its address and length at an offset of v, and returns its bytes.
func putList(h *heap, v view, at uint32, item layout, n int) view {
	address := h.realloc(0, 0, item.align, item.size*uint32(n))
	putWords(v, at, address, uint32(n))
	return bytesOf(h.blocks[address])
}

// putWords writes numbers of 4 bytes, one after the other.
func putWords(v view, at uint32, words ...uint32) {
	for i, w := range words {
		for b := range uint32(4) {
			v[at+uint32(i)*4+b] = byte(w >> (8 * b))
		}
	}
}

func TestHeap(t *testing.T) {
	t.Run("AdoptHandsOverWhatTheHostWrote", func(t *testing.T) {
		var h heap
		address := h.realloc(0, 0, 1, 5)
		copy(bytesOf(h.blocks[address]), "hello")
		runtime.GC()
		if got := h.adopt(address, 5); string(got) != "hello" || cap(got) != 5 {
			t.Errorf("got %q with capacity %d", got, cap(got))
		}
		if len(h.blocks) != 0 {
			t.Errorf("%d blocks are still pinned", len(h.blocks))
		}
	})
	t.Run("ReallocKeepsTheBytesOfTheOldBlock", func(t *testing.T) {
		var h heap
		old := h.realloc(0, 0, 1, 5)
		copy(bytesOf(h.blocks[old]), "hello")
		address := h.realloc(old, 5, 1, 3_000)
		if got := h.adopt(address, 5); string(got) != "hello" {
			t.Errorf("got %q", got)
		}
		if len(h.blocks) != 0 {
			t.Errorf("%d blocks are still pinned", len(h.blocks))
		}
	})
	t.Run("NothingIsAllocatedForNothing", func(t *testing.T) {
		var h heap
		if got := h.realloc(0, 0, 8, 0); got != 8 {
			t.Errorf("got address %d, want the alignment", got)
		}
		if got := h.adopt(8, 0); got != nil || len(h.blocks) != 0 {
			t.Errorf("got %v and %d blocks", got, len(h.blocks))
		}
	})
	t.Run("FreeLetsGoOfTheRest", func(t *testing.T) {
		var h heap
		address := h.realloc(0, 0, 1, 5)
		h.free()
		mustPanic(t, func() { h.adopt(address, 5) })
	})
	t.Run("ForeignMemoryIsRefused", func(t *testing.T) {
		var h heap
		address := h.realloc(0, 0, 1, 8)
		mustPanic(t, func() { h.adopt(address+1, 4) })
		mustPanic(t, func() { h.adopt(address, 9) })
	})
}

func mustPanic(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Error("didn't panic")
		}
	}()
	f()
}
