package signedctx

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestCache(t *testing.T) {
	t.Run("NeverHoldsMoreThanItsBoundNorAWrongValue", func(t *testing.T) {
		rapid.Check(t, func(r *rapid.T) {
			bound := rapid.IntRange(2, 12).Draw(r, "bound")
			c, last := newCache[int, int](bound), make(map[int]int)
			for i, key := range rapid.SliceOfN(rapid.IntRange(-15, 15), 0, 200).Draw(r, "keys") {
				if key < 0 {
					if v, ok := c.get(-key); ok {
						require.Equal(r, last[-key], v)
					}
				} else {
					c.put(key, i)
					last[key] = i
					v, ok := c.get(key)
					require.True(r, ok)
					require.Equal(r, i, v)
				}
				require.LessOrEqual(r, c.len(), bound)
			}
		})
	})
	t.Run("KeepsWhatIsUsed", func(t *testing.T) {
		c := newCache[int, string](10)
		c.put(0, "used")
		for i := 1; i < 1000; i++ {
			c.put(i, "once")
			_, ok := c.get(0)
			require.True(t, ok, "%d", i)
		}
		_, ok := c.get(1)
		require.False(t, ok)
	})
}
