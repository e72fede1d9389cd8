package runtime

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime/internal/cow"
	"github.com/longshore/longshore/runtime/internal/meter"
	"github.com/longshore/longshore/wasi/messaging"
)

// Fuel is granted in slices, each of which should take a guest about sliceDuration: the cost of a unit of fuel varies
// more than a hundredfold between guests, and within one that turns from arithmetic to memory that no cache holds. The
// largest slice is what such a turn can take by surprise; a slice never goes past a multiple of it.
//
// The worst turn is to memory that the kernel has not given yet: some microseconds for a page, which a guest touches with
// three instructions. All pages of surpriseBytes take less than 10 ms. Who has more such memory gets slices of at most
// sparseSlice. Whether it has is looked up after lookYields of them, and again after twice as many each time.
const (
	sliceDuration = time.Millisecond
	firstSlice    = 50_000
	minSlice      = 1_000
	sparseSlice   = 10_000
	maxSlice      = 100_000
	surpriseBytes = 12 * limits.MiB
	lookYields    = 16
)

// fuel is what one call may still use.
//
// The guest counts down and yields where it finds itself below zero. What it used is always granted minus what it has
// left, however that was sliced. Between calls of its functions a guest keeps what it has left in registers, and its
// fuel global is behind: a trap loses what was used since. The host makes up for it at each multiple of maxSlice, where
// it looks at the real value, so that what a trap loses is bounded, and the same in each run.
type fuel struct {
	call    *messaging.Call
	limit   int64
	granted int64
	slice   int64
	most    int64     // largest slice for the memory that the guest has
	noted   int64     // used when it was first seen past the last multiple of maxSlice, or where the guest was ended
	since   time.Time // start of what is measured for the next slice
	base    int64     // used then

	memory cow.Memory // of the guest; nil while it is initialised
	small  int        // yields that found much memory that nobody is known to have touched
}

// guestContext is the context in which the guest functions of a call run.
type guestContext struct {
	context.Context // as messaging.Call.Start makes it
	fuel            *fuel
}

// guestKey is the context key of the guestContext.
type guestKey struct{}

// Value implements context.Context.
func (c *guestContext) Value(key any) any {
	if key == (guestKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// fuelOf returns the fuel of the call that a host function was called in. It panics if there is none. The context is
// nearly always that of the call itself, which is found sooner by its type than by a key.
func fuelOf(ctx context.Context) *fuel {
	if c, ok := ctx.(*guestContext); ok {
		return c.fuel
	}
	return fuelAmong(ctx)
}

// fuelAmong is fuelOf where the context is another one, made of that of the call.
func fuelAmong(ctx context.Context) *fuel {
	c, ok := ctx.Value(guestKey{}).(*guestContext)
	if !ok {
		panic(errors.New("runtime: a guest ran outside of a call"))
	}
	return c.fuel
}

func newFuel(call *messaging.Call, limit int64) *fuel {
	return &fuel{call: call, limit: limit, slice: firstSlice, most: maxSlice, since: time.Now()}
}

// registerYield provides the function that metered modules call at their safe points.
func registerYield(ctx context.Context, r wazero.Runtime) error {
	i64 := []api.ValueType{api.ValueTypeI64}
	_, err := r.NewHostModuleBuilder(meter.ImportModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(yield), i64, i64).Export(meter.ImportYield).Instantiate(ctx)
	if err != nil {
		return fmt.Errorf("runtime: registering yield: %w", err)
	}
	return nil
}

// yield takes the value of the fuel global and returns its new value, or panics with the typed error that ends the
// call. math.MinInt64 means that the guest's calls nest too deep.
func yield(ctx context.Context, guest api.Module, stack []uint64) {
	f := fuelOf(ctx)
	left := int64(stack[0])
	if left == math.MinInt64 {
		depth := f.call.Limits().CallDepth
		panic(&limits.Error{Name: limits.NameCallDepth, Limit: depth, Actual: depth + 1})
	}
	now := time.Now()
	f.expect(uint64(guest.Memory().Size()))
	next, err := f.grant(left, now)
	if err == nil {
		err = f.call.CheckAt(ctx, now)
	}
	if err == nil {
		err = f.pause(ctx)
	}
	if err != nil {
		f.noted = f.spent(left)
		panic(err)
	}
	stack[0] = uint64(next)
}

// pause lets others run.
func (f *fuel) pause(ctx context.Context) error {
	paused := f.call.Pause(ctx)
	if paused == 0 {
		return nil
	}
	f.since = f.since.Add(paused)
	return f.call.Check(ctx) // the call may have been given up meanwhile
}

// expect bounds the slices of a guest with so many bytes of memory.
func (f *fuel) expect(bytes uint64) {
	f.most = maxSlice
	if bytes <= surpriseBytes || f.untouched(bytes) <= surpriseBytes {
		return
	}
	f.most = sparseSlice
	if f.small++; f.memory != nil && f.small >= lookYields && f.small&(f.small-1) == 0 {
		f.memory.Look()
	}
}

// untouched returns how many of so many bytes of memory may be work for the kernel.
func (f *fuel) untouched(bytes uint64) uint64 {
	if f.memory == nil {
		return bytes
	}
	return bytes - min(bytes, f.memory.Touched())
}

// grant returns the next value of the guest's fuel, which has left (negative: it overdrew). Whether it fails depends
// only on what was used in all, never on the slices.
func (f *fuel) grant(left int64, now time.Time) (int64, error) {
	used := f.spent(left)
	if err := f.check(used); err != nil {
		return 0, err
	}
	f.adapt(used, now)
	if (used-1)/maxSlice > (f.noted-1)/maxSlice {
		f.noted = used
	}
	next := min(f.slice, f.most, f.limit-used, (maxSlice-used%maxSlice)%maxSlice)
	f.granted = used + next
	return next, nil
}

// check returns an error if so much fuel is too much.
func (f *fuel) check(used int64) error { return limits.Check(limits.NameFuel, used, f.limit) }

// spent returns the fuel used by a guest that has left.
func (f *fuel) spent(left int64) int64 { return f.granted - left }

// used returns the fuel used by a guest that has ended and whose fuel global is left. After a trap it may be too little,
// by at most maxSlice and what one basic block or bulk instruction costs.
func (f *fuel) used(left int64) int64 { return max(f.spent(left), f.noted) }

// adapt aims the next slice at sliceDuration, given how long the fuel since the last one took, by at most a factor of four.
func (f *fuel) adapt(used int64, now time.Time) {
	spent, took := used-f.base, max(now.Sub(f.since), time.Nanosecond)
	if spent < minSlice {
		return // too little to tell
	}
	f.base, f.since = used, now
	aim := float64(spent) * float64(sliceDuration) / float64(took)
	aim = min(max(aim, float64(f.slice)/4), float64(f.slice)*4)
	f.slice = min(max(int64(aim), minSlice), maxSlice)
}
