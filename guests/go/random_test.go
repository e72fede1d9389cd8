package longshore

import (
	"testing"
	"unsafe"
)

// drawer draws from a generator as Go's runtime does, but fills it with numbers that tell one draw from the other.
type drawer struct {
	*generator
	filled uint64
}

func (d *drawer) draw() uint64 {
	if d.next >= d.end {
		d.filled++
		for i := range d.buf {
			d.buf[i] = d.filled<<32 | uint64(i) | d.seed[0]<<48
		}
		d.next, d.end, d.counter = 0, generatorBuf, (d.counter+generatorBlocks)%(generatorLast+generatorBlocks)
	}
	d.next++
	return d.buf[d.next-1]
}

func TestFindGenerator(t *testing.T) {
	memory := make([]uint64, 4096)
	const at = 1234
	d := &drawer{generator: (*generator)(unsafe.Pointer(&memory[at]))}
	for i := range 3 * generatorBuf { // wherever in a filling it is
		copy(memory[100:], memory[at:at+generatorBuf]) // a copy of the numbers is no generator
		if got := findGenerator(memory, d.draw); got != d.generator {
			t.Fatalf("after %d draws: got %p, want %p", i, got, d.generator)
		}
		d.draw()
	}
	t.Run("OfAnotherLayoutIsNil", func(t *testing.T) {
		n := uint64(0)
		if g := findGenerator(memory, func() uint64 { n++; memory[50+n] = n * n; return n * n }); g != nil {
			t.Errorf("got %v", g)
		}
	})
	t.Run("ANewSeedGivesNewNumbers", func(t *testing.T) {
		d.reseed([seedWords]uint64{1, 2, 3, 4, 5})
		first := d.draw()
		d.reseed([seedWords]uint64{6, 7, 8, 9, 10})
		if second := d.draw(); first == second || d.cheap != 10 {
			t.Errorf("got %x and %x, cheap %d", first, second, d.cheap)
		}
	})
	if FreshRandomness() {
		t.Error("outside WebAssembly there is no host to seed it")
	}
}
