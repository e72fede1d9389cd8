package messaging

import (
	"context"
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"github.com/tetratelabs/wazero/api"

	"github.com/longshore/longshore/limits"
)

// guest is the instance that a call talks to. Views of its memory are valid until the guest runs again: copy first.
type guest struct {
	module     api.Module
	memory     api.Memory
	allocator  string       // name of the guest's: (old pointer, old size, alignment, new size) -> pointer
	handle     api.Function // this and the next two are looked up when first needed
	realloc    api.Function
	postReturn api.Function
	busy       bool // the host is calling realloc or post-return, during which a guest may not call back
}

// Instance is an instance of a guest, and what calls have looked up in it. It serves one call after another.
type Instance struct{ guest guest }

// NewInstance makes m, an instance of the bound module, ready for calls.
func (b *Binding) NewInstance(m api.Module) *Instance {
	return &Instance{guest{module: m, memory: m.Memory(), allocator: b.exports.Realloc}}
}

// export returns an exported function, looked up in the module when first needed; nil if there is none.
func (g *guest) export(known *api.Function, name string) api.Function {
	if *known == nil {
		*known = g.module.ExportedFunction(name)
	}
	return *known
}

// view returns n bytes at ptr. The result is the guest's memory itself.
func (g *guest) view(ptr, n uint32) []byte {
	b, ok := g.memory.Read(ptr, n)
	if !ok {
		panic(&ABIError{Problem: fmt.Sprintf("%d bytes at %d are outside of memory", n, ptr)})
	}
	return b
}

// value returns the memory of one value of shape s at ptr.
func (g *guest) value(ptr uint32, s shape) []byte {
	checkAligned(ptr, s)
	return g.view(ptr, s.size)
}

// list returns the memory of n elements of shape s at ptr.
func (g *guest) list(ptr, n uint32, s shape) []byte {
	checkAligned(ptr, s)
	bytes := uint64(n) * uint64(s.size)
	if bytes > uint64(^uint32(0)) {
		panic(&ABIError{Problem: fmt.Sprintf("a list of %d elements of %d bytes is larger than memory", n, s.size)})
	}
	return g.view(ptr, uint32(bytes))
}

// text returns the memory of a string, which must be UTF-8. One that is longer than all that a call may hold is not
// looked at.
func (g *guest) text(ptr, n uint32) []byte {
	if err := limits.Check(limits.NameHeldBytes, int64(n), limits.HeldBytes); err != nil {
		panic(err)
	}
	b := g.view(ptr, n)
	if !utf8.Valid(b) {
		panic(&ABIError{Problem: fmt.Sprintf("the string of %d bytes at %d is not UTF-8", n, ptr)})
	}
	return b
}

// store writes a value of shape s to ptr.
func (g *guest) store(ptr uint32, s shape, value []byte) {
	copy(g.value(ptr, s), value)
}

// alloc has the guest allocate n values of shape s, if there is time left.
func (g *guest) alloc(ctx context.Context, n int, s shape) uint32 {
	ptr, _ := g.allocView(ctx, n, s)
	return ptr
}

// allocView is alloc; it returns the memory as well.
func (g *guest) allocView(ctx context.Context, n int, s shape) (ptr uint32, view []byte) {
	FromContext(ctx).step(ctx)
	realloc := g.export(&g.realloc, g.allocator)
	if realloc == nil {
		panic(&ABIError{Func: g.allocator, Problem: "the module doesn't export it"})
	}
	size := uint64(n) * uint64(s.size)
	if size > uint64(^uint32(0)) {
		panic(&ABIError{Func: g.allocator, Problem: fmt.Sprintf("%d bytes are more than fits memory", size)})
	}
	stack := [4]uint64{0, 0, uint64(s.align), size}
	g.busy = true
	err := realloc.CallWithStack(ctx, stack[:])
	g.busy = false
	if err != nil {
		panic(fmt.Errorf("%s: %w", g.allocator, err))
	}
	ptr = api.DecodeU32(stack[0])
	checkAligned(ptr, s)
	return ptr, g.view(ptr, uint32(size))
}

// lowerBytes copies b into memory that the guest allocates, and writes pointer and length to at. For nothing, as for empty texts
// and lists, nothing is allocated: the pointer is aligned, and not to be used.
func (g *guest) lowerBytes(ctx context.Context, at, b []byte) {
	if len(b) == 0 {
		putList(at, u8Shape.align, 0)
		return
	}
	ptr, to := g.allocView(ctx, len(b), u8Shape)
	copy(to, b)
	putList(at, ptr, len(b))
}

// lowerText is lowerBytes for a string.
func (g *guest) lowerText(ctx context.Context, at []byte, s string) {
	if s == "" {
		putList(at, u8Shape.align, 0)
		return
	}
	ptr, to := g.allocView(ctx, len(s), u8Shape)
	copy(to, s)
	putList(at, ptr, len(s))
}

// lowerPairs copies metadata into memory that the guest allocates, and writes pointer and length to at.
func (g *guest) lowerPairs(ctx context.Context, at []byte, pairs []Pair) {
	if len(pairs) == 0 {
		putList(at, pairShape.align, 0)
		return
	}
	buf := make([]byte, len(pairs)*int(pairShape.size))
	ptr := g.alloc(ctx, len(pairs), pairShape)
	for i, p := range pairs {
		b := buf[i*int(pairShape.size):]
		g.lowerText(ctx, b[pairKeyAt:], p.Key)
		g.lowerText(ctx, b[pairValueAt:], p.Value)
	}
	copy(g.view(ptr, uint32(len(buf))), buf)
	putList(at, ptr, len(pairs))
}

func checkAligned(ptr uint32, s shape) {
	if ptr%s.align != 0 {
		panic(&ABIError{Problem: fmt.Sprintf("pointer %d is not aligned to %d", ptr, s.align)})
	}
}

// checkCase returns the case number of a variant of shape s.
func checkCase(s shape, n uint8) uint8 {
	if uint32(n) >= s.cases {
		panic(&ABIError{Problem: fmt.Sprintf("case %d of a variant of %d cases", n, s.cases)})
	}
	return n
}

// checkFlatCase is checkCase for a case that is passed as a parameter.
func checkFlatCase(cases, n uint32) uint32 {
	if n >= cases {
		panic(&ABIError{Problem: fmt.Sprintf("case %d of a variant of %d cases", n, cases)})
	}
	return n
}

func putList(at []byte, ptr uint32, n int) {
	binary.LittleEndian.PutUint32(at, ptr)
	binary.LittleEndian.PutUint32(at[4:], uint32(n))
}

func getList(at []byte) (ptr, n uint32) {
	return binary.LittleEndian.Uint32(at), binary.LittleEndian.Uint32(at[4:])
}
