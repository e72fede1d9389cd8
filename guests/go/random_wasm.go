//go:build wasip1

package longshore

import "unsafe"

//go:linkname runtimeRand runtime.rand
func runtimeRand() uint64

//go:wasmimport wasi_snapshot_preview1 random_get
//go:noescape
func wasiRandomGet(to *[seedWords]uint64, size uint32) uint32

// dataStart is below all that Go's linker lays out.
const dataStart = 4096

// runtimeGenerator is nil if it wasn't found. The runtime's m lies among the module's variables, below the heap.
var runtimeGenerator = findGenerator(
	unsafe.Slice((*uint64)(unsafe.Add(nil, dataStart)), (addressOf(make([]uint64, generatorBuf))-dataStart)/wordBytes),
	runtimeRand,
)

// freshenRandomness gives the runtime a new seed, from the system's randomness.
func freshenRandomness() {
	var random [seedWords]uint64
	if runtimeGenerator == nil || wasiRandomGet(&random, uint32(unsafe.Sizeof(random))) != 0 {
		println("longshore: Go's random numbers are the same in every message: this release's generator is not known")
		return
	}
	runtimeGenerator.reseed(random)
}
