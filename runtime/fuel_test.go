package runtime

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/longshore/longshore/limits"
)

// A guest that runs blocks of given costs, and yields where its fuel is below zero, is ended at the same block whatever
// the slices were.
func TestFuel_SlicesDontMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(0, 1_000_000).Draw(t, "limit")
		costs := rapid.SliceOfN(rapid.Int64Range(1, 50_000), 1, 100).Draw(t, "costs")
		f := newFuel(nil, limit)
		now := f.since
		var global, used int64
		for i, cost := range costs {
			global -= cost
			used += cost
			require.Equal(t, used, f.used(global))
			if global >= 0 {
				continue
			}
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(50*time.Millisecond)).Draw(t, "took")))
			next, err := f.grant(global, now)
			if used > limit {
				require.ErrorIs(t, err, &limits.Error{Name: limits.NameFuel})
				return
			}
			require.NoError(t, err, "block %d", i)
			require.Equal(t, used, f.used(next), "a grant uses nothing")
			require.LessOrEqual(t, f.granted, limit)
			require.GreaterOrEqual(t, next, int64(0))
			global = next
		}
		require.LessOrEqual(t, used, limit+50_000*100)
		require.Equal(t, used > limit, f.check(f.used(global)) != nil)
	})
}

func TestFuel_SlicesAimAtTheirDuration(t *testing.T) {
	for name, perFuel := range map[string]time.Duration{"Cheap": 25, "Costly": 150} {
		t.Run(name, func(t *testing.T) {
			f := newFuel(nil, 1<<60)
			now := f.since
			left, err := f.grant(-1, now)
			require.NoError(t, err)
			require.EqualValues(t, firstSlice, left)
			var took time.Duration
			for range 20 {
				took = time.Duration(left) * perFuel
				now = now.Add(took)
				left, err = f.grant(-1, now)
				require.NoError(t, err)
			}
			require.InEpsilon(t, sliceDuration, took, 0.1)
		})
	}
	t.Run("WithinBounds", func(t *testing.T) {
		f := newFuel(nil, 1<<60)
		now := f.since
		var left int64
		for _, took := range []time.Duration{0, time.Hour} {
			for range 20 {
				now = now.Add(took)
				var err error
				left, err = f.grant(-1, now)
				require.NoError(t, err)
			}
			require.EqualValues(t, map[time.Duration]int64{0: maxSlice, time.Hour: minSlice}[took], left)
		}
	})
}
