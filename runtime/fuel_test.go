package runtime

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"pgregory.net/rapid"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime/internal/cow"
	"github.com/longshore/longshore/wasi/messaging"
)

// A guest that runs blocks of given costs, and yields where its fuel is below zero, is ended at the same block whatever
// the slices were. A trap finds the same amount used too, which is short by a bounded part of the real one.
func TestFuel_SlicesDontMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(0, 1_000_000).Draw(t, "limit")
		costs := rapid.SliceOfN(rapid.Int64Range(1, 50_000), 1, 100).Draw(t, "costs")
		flushes := rapid.SliceOfN(rapid.Bool(), len(costs), len(costs)).Draw(t, "flushes")
		run := func(name string) (afterTrap []int64) {
			f := newFuel(nil, limit)
			now := f.since
			var left, global, used int64
			for i, cost := range costs {
				left -= cost
				used += cost
				require.Equal(t, used, f.spent(left))
				if left < 0 {
					now = now.Add(time.Duration(rapid.Int64Range(0, int64(50*time.Millisecond)).Draw(t, name)))
					next, err := f.grant(left, now)
					if used > limit {
						require.ErrorIs(t, err, &limits.Error{Name: limits.NameFuel})
						return afterTrap
					}
					require.NoError(t, err, "block %d", i)
					require.Equal(t, used, f.spent(next), "a grant uses nothing")
					require.LessOrEqual(t, f.granted, limit)
					require.GreaterOrEqual(t, next, int64(0))
					global += next - left
					left = next
				}
				if flushes[i] {
					global = left
				}
				trapped := f.used(global)
				require.LessOrEqual(t, trapped, used)
				require.Greater(t, trapped, used-maxSlice-cost)
				afterTrap = append(afterTrap, trapped)
			}
			require.LessOrEqual(t, used, limit+50_000*100)
			require.Equal(t, used > limit, f.check(f.used(left)) != nil)
			return afterTrap
		}
		require.Equal(t, run("took"), run("took again"))
	})
}

func TestFuel_SlicesAimAtTheirDuration(t *testing.T) {
	for name, perFuel := range map[string]time.Duration{"Cheap": 25, "Costly": 80} {
		t.Run(name, func(t *testing.T) {
			f := newFuel(nil, 1<<60)
			now := f.since
			left, err := f.grant(-1, now)
			require.NoError(t, err)
			require.EqualValues(t, firstSlice, left)
			for range 20 {
				now = now.Add(time.Duration(left+1) * perFuel)
				left, err = f.grant(-1, now)
				require.NoError(t, err)
			}
			require.InEpsilon(t, sliceDuration, time.Duration(f.slice)*perFuel, 0.1)
		})
	}
	t.Run("WithinBounds", func(t *testing.T) {
		f := newFuel(nil, 1<<60)
		now := f.since
		for _, took := range []time.Duration{0, time.Hour} {
			for range 40 {
				now = now.Add(took)
				_, err := f.grant(-1, now)
				require.NoError(t, err)
			}
			require.EqualValues(t, map[time.Duration]int64{0: maxSlice, time.Hour: minSlice}[took], f.slice)
		}
	})
}

// Each page that a guest touches for the first time takes the kernel as long as thousands of instructions.
func TestFuel_MuchUntouchedMemoryHasSmallSlices(t *testing.T) {
	r := wazero.NewRuntime(t.Context())
	defer func() { require.NoError(t, r.Close(t.Context())) }()
	const pages = surpriseBytes / pageBytes
	wasm := []byte("\x00asm\x01\x00\x00\x00\x05\x04\x01\x00" + string(binary.AppendUvarint(nil, pages)))
	guest, err := r.Instantiate(t.Context(), wasm)
	require.NoError(t, err)

	call := messaging.NewCall(messaging.CallOptions{Limits: limits.DefaultGuest()})
	f := newFuel(call, 1<<60)
	memory := &countedMemory{there: pageBytes}
	f.memory = memory
	ctx := &guestContext{call.Start(t.Context(), nil), f}
	most := func() int64 {
		left := int64(-1)
		yield(ctx, guest, []uint64{uint64(left)})
		return f.most
	}
	require.EqualValues(t, maxSlice, most())
	_, ok := guest.Memory().Grow(1)
	require.True(t, ok)
	for range lookYields {
		require.EqualValues(t, sparseSlice, most())
	}
	require.EqualValues(t, maxSlice, most(), "one page was touched")
	memory.there, memory.touched = 0, 0
	for range 3 * lookYields {
		require.EqualValues(t, sparseSlice, most())
	}
	require.Equal(t, 3, memory.looks, "seldomer and seldomer")
}

// countedMemory is a memory of which so many bytes are there.
type countedMemory struct {
	cow.Memory
	there, touched uint64
	looks          int
}

func (m *countedMemory) Touched() uint64 { return m.touched }

func (m *countedMemory) Look() { m.touched, m.looks = m.there, m.looks+1 }
