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
	"github.com/longshore/longshore/runtime/internal/meter"
	"github.com/longshore/longshore/wasi/messaging"
)

// Fuel is granted in slices, each of which should take a guest about sliceDuration: the cost of a unit of fuel varies
// more than a hundredfold between guests, and within one that turns from arithmetic to memory that no cache holds. The
// largest slice is what such a turn can take by surprise.
const (
	sliceDuration = 2 * time.Millisecond
	firstSlice    = 50_000
	minSlice      = 10_000
	maxSlice      = 100_000
)

// fuel is what one call may still use.
//
// The guest counts a global down and yields where it finds it below zero. What it used is always granted minus the
// value of that global, however it was sliced.
type fuel struct {
	call    *messaging.Call
	limit   int64
	granted int64
	slice   int64
	since   time.Time // start of the slice
}

// fuelKey is the context key of the *fuel of a call.
type fuelKey struct{}

func newFuel(call *messaging.Call, limit int64) *fuel {
	return &fuel{call: call, limit: limit, slice: firstSlice, since: time.Now()}
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
func yield(ctx context.Context, _ api.Module, stack []uint64) {
	f, ok := ctx.Value(fuelKey{}).(*fuel)
	if !ok {
		panic(errors.New("runtime: a guest ran outside of a call"))
	}
	left := int64(stack[0])
	if left == math.MinInt64 {
		depth := f.call.Limits().CallDepth
		panic(&limits.Error{Name: limits.NameCallDepth, Limit: depth, Actual: depth + 1})
	}
	left, err := f.grant(left, time.Now())
	if err == nil {
		err = f.call.Check(ctx)
	}
	if err != nil {
		panic(err)
	}
	stack[0] = uint64(left)
}

// grant returns the next value of the fuel global for a guest that has left (negative: it overdrew). Whether it fails
// depends only on what was used in all, never on the slices.
func (f *fuel) grant(left int64, now time.Time) (int64, error) {
	used := f.used(left)
	if err := f.check(used); err != nil {
		return 0, err
	}
	f.adapt(now.Sub(f.since))
	f.since = now
	next := min(f.slice, f.limit-used)
	f.granted = used + next
	return next, nil
}

// check returns an error if so much fuel is too much.
func (f *fuel) check(used int64) error { return limits.Check(limits.NameFuel, used, f.limit) }

// used returns the fuel used by a guest whose fuel global is left.
func (f *fuel) used(left int64) int64 { return f.granted - left }

// adapt aims the next slice at sliceDuration, given how long the last one took, by at most a factor of four.
func (f *fuel) adapt(took time.Duration) {
	if f.granted == 0 {
		return // nothing was granted yet: this is the first check of the call
	}
	took = min(max(took, sliceDuration/4), 4*sliceDuration)
	f.slice = min(max(f.slice*int64(sliceDuration)/int64(took), minSlice), maxSlice)
}
