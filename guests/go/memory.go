package longshore

import "unsafe"

// heap is the memory that the host asked for, to put strings and lists into, and that nothing in Go points to yet. It
// keeps each block from the garbage collector until the code that called the host adopts it; free lets go of the rest.
type heap struct {
	blocks map[uint32][]uint64 // by address; of uint64 because no type of the ABI is aligned to more than 8
}

const wordBytes = 8

// realloc is cabi_realloc: it moves a block of oldSize bytes at old into one of size bytes, and returns its address.
// Without bytes there is no block, only an address that is aligned as asked.
func (h *heap) realloc(old, oldSize, align, size uint32) uint32 {
	if size == 0 {
		delete(h.blocks, old)
		return align
	}
	block := make([]uint64, (uint64(size)+wordBytes-1)/wordBytes)
	if oldSize > 0 {
		copy(bytesOf(block), h.adopt(old, oldSize))
	}
	if h.blocks == nil {
		h.blocks = make(map[uint32][]uint64)
	}
	address := addressOf(block)
	h.blocks[address] = block
	return address
}

// adopt hands over a block: the caller owns its first size bytes, and the garbage collector takes it after that. It panics
// if there is no such block: the host is to put what it returns into memory that it asked for.
func (h *heap) adopt(address, size uint32) []byte {
	if size == 0 {
		return nil
	}
	block, ok := h.blocks[address]
	if !ok || uint64(size) > uint64(len(block))*wordBytes {
		panic("longshore: the host returned memory that it wasn't given")
	}
	delete(h.blocks, address)
	return bytesOf(block)[:size:size]
}

// free lets go of all blocks that weren't adopted.
func (h *heap) free() { clear(h.blocks) }

// bytesOf returns a block's bytes.
func bytesOf(block []uint64) []byte {
	if len(block) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(block))), len(block)*wordBytes)
}

// addressOf returns a block's address in linear memory. Go's garbage collector doesn't move blocks, but frees them: the
// caller keeps the block.
func addressOf(block []uint64) uint32 {
	return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(block)))) //nolint:gosec // WebAssembly's addresses have 32 bits
}
