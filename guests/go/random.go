package longshore

import "unsafe"

// generator is the state of the random generator of Go's runtime, where math/rand, the order of maps, the seeds of hashes
// and the choices of select come from: two fields of the runtime's only m, laid out as in Go 1.22 to 1.26. The host gives
// every message the memory that initialisation left, and so this state: each would draw the same numbers.
type generator struct {
	buf       [32]uint64 // numbers to draw
	seed      [4]uint64
	next, end uint32 // of buf
	counter   uint32 // of the cipher's blocks since the seed
	_         uint32
	cheap     uint64 // of the other, cheaper generator of the m, which select draws from
}

// Bounds of a generator's fields.
const (
	generatorBuf    = 32
	generatorBlocks = 4  // that the counter grows by
	generatorLast   = 12 // most of the counter
	generatorDraws  = 3  // in a row that tell a generator from other memory
	generatorTries  = 8  // to draw so many from one filling of buf
)

// seedWords is what a new seed takes, with one word for the cheaper generator.
const seedWords = 5

// reseed makes the generator draw other numbers than in any message before.
func (g *generator) reseed(random [seedWords]uint64) {
	copy(g.seed[:], random[:])
	g.cheap = random[seedWords-1]
	g.buf = [generatorBuf]uint64{}
	g.next, g.end, g.counter = 0, 0, 0 // the next draw fills buf
}

// findGenerator looks for the runtime's generator in memory, by the numbers that draw, which draws from it, has just drawn.
// It returns nil if it isn't there, as in a release of Go that keeps it in another way.
func findGenerator(memory []uint64, draw func() uint64) *generator {
	for range generatorTries {
		drawn := [generatorDraws]uint64{draw(), draw(), draw()}
		for at := range len(memory) - generatorDraws {
			if memory[at] == drawn[0] && memory[at+1] == drawn[1] && memory[at+2] == drawn[2] {
				if g := generatorAround(memory, at, draw); g != nil {
					return g
				}
			}
		}
	}
	return nil
}

// generatorAround returns the generator whose last numbers are at an index of memory, or nil: a copy of the numbers
// elsewhere has no fields around it that agree, and doesn't change with the next draw.
func generatorAround(memory []uint64, at int, draw func() uint64) *generator {
	const words = int(unsafe.Sizeof(generator{}) / wordBytes)
	for before := 0; before <= min(at, generatorBuf-generatorDraws-1); before++ {
		start, drawn := at-before, uint32(before+generatorDraws)
		if start+words > len(memory) {
			continue
		}
		g := (*generator)(unsafe.Pointer(&memory[start]))
		if g.next != drawn || g.end > generatorBuf || g.end <= drawn || g.counter%generatorBlocks != 0 || g.counter > generatorLast {
			continue
		}
		if next := g.buf[drawn]; draw() == next && g.next == drawn+1 {
			return g
		}
	}
	return nil
}

// FreshRandomness reports whether each message draws random numbers of its own from the generators of Go's runtime. It is
// false outside WebAssembly, and in a release of Go whose generator this package doesn't know: then what those draw is the
// same in every message, and each message's log says so. crypto/rand doesn't depend on it.
func FreshRandomness() bool { return runtimeGenerator != nil }
