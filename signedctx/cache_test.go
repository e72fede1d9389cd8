package signedctx

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func (c *cache[K, V]) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.young) + len(c.old)
}

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

func TestRecent(t *testing.T) {
	t.Run("KnowsATokenByAllOfItsBytes", func(t *testing.T) {
		var r recent
		r.put(&token{raw: "header.body-a.same-signature"})
		require.NotNil(t, r.get([]byte("header.body-a.same-signature")))
		require.Nil(t, r.get([]byte("header.body-b.same-signature")), "it has the same place")
		require.Nil(t, r.get([]byte("short")))
	})
	t.Run("TheLastOfTwoHasTheirPlace", func(t *testing.T) {
		var r recent
		r.put(&token{raw: "a.same-signature"})
		r.put(&token{raw: "b.same-signature"})
		require.Nil(t, r.get([]byte("a.same-signature")))
		require.NotNil(t, r.get([]byte("b.same-signature")))
	})
	t.Run("UsesAllOfItsPlaces", func(t *testing.T) {
		var r recent
		places := map[any]bool{}
		for range 16 * recentTokens {
			places[r.place([]byte(randomID(32)))] = true
		}
		require.Len(t, places, recentTokens)
	})
}

func TestGetText_KeepsWhatIsUsed(t *testing.T) {
	c := newCache[string, int](10)
	c.put("used", 1)
	for i := range 1000 {
		c.put(randomID(8), i)
		v, ok := getText(c, []byte("used"))
		require.True(t, ok)
		require.Equal(t, 1, v)
	}
	_, ok := getText(c, []byte("unknown"))
	require.False(t, ok)
}
