package messaging

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/longshore/longshore/limits"
)

// randomChunkBytes is what is filled between two looks at the deadline.
const randomChunkBytes = 64 * limits.KiB

// randomBytes is random's get-random-bytes: func(len: u64) -> list<u8>.
//
//	len u64, ret | list<u8>
func randomBytes(ctx context.Context, c *Call, stack []uint64) {
	if stack[0] > math.MaxUint32 {
		panic(&ABIError{Problem: fmt.Sprintf("%d random bytes are more than fits memory", stack[0])})
	}
	n := int(stack[0])
	ptr := c.guest.alloc(ctx, n, u8Shape)
	for at := 0; at < n; at += randomChunkBytes {
		c.mustGoOn(ctx)
		fillRandom(c.guest.view(ptr+uint32(at), uint32(min(n-at, randomChunkBytes))))
	}
	b := make([]byte, textShape.size)
	putList(b, ptr, n)
	c.guest.store(arg(stack, 1), textShape, b)
}

// randomU64 is random's get-random-u64: func() -> u64.
func randomU64(_ context.Context, _ *Call, stack []uint64) {
	var b [8]byte
	fillRandom(b[:])
	stack[0] = binary.LittleEndian.Uint64(b[:])
}

// randomSeed is insecure-seed's insecure-seed: func() -> tuple<u64, u64>.
func randomSeed(_ context.Context, c *Call, stack []uint64) {
	s := recordOf(field{name: "0", shape: u64Shape}, field{name: "1", shape: u64Shape})
	b := make([]byte, s.size)
	fillRandom(b)
	c.guest.store(arg(stack, 0), s, b)
}

// fillRandom never fails: the Go runtime ends the process where the system has no randomness.
func fillRandom(b []byte) { _, _ = rand.Read(b) }
