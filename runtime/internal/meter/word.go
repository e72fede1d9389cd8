package meter

import "github.com/longshore/longshore/runtime/internal/wasmbin"

// The global that Info.FuelGlobal names holds fuel above, and in its lowest depthBits the calls that may still be nested.
// So a call takes both with one subtraction, and the sign is that of the fuel. The highest of the lower bits is set only
// where one call too many has been taken.
const (
	depthBits = 20
	oneFuel   = 1 << depthBits
	tooDeep   = 1 << (depthBits - 1)
)

// MaxCallDepth is the most that Options.CallDepth can be.
const MaxCallDepth = tooDeep - 1

// Word is the value of the global with so much fuel, at most 2⁴², and so many calls that may be nested.
func Word(fuel, depth int64) uint64 { return uint64(fuel<<depthBits | depth) }

// Fuel is what a value of the global says of fuel.
func Fuel(word uint64) int64 { return int64(word) >> depthBits }

// toWord appends the conversion of fuel, an i64, to what is taken from a word.
func (c *code) toWord() {
	c.i64(depthBits)
	c.op(wasmbin.OpI64Shl)
}
