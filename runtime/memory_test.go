package runtime

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

func TestLinearMemory(t *testing.T) {
	t.Run("GrowingPageByPageLeavesLessThanOneCopyBehind", func(t *testing.T) {
		const limit = 4 * limits.MiB
		m := &linearMemory{limit: limit}
		left := 0
		for size := uint64(pageBytes); size <= limit; size += pageBytes {
			before := cap(m.buf)
			m.Reallocate(size)[size-1] = 1
			require.LessOrEqual(t, cap(m.buf), limit)
			if cap(m.buf) != before {
				left += before
			}
		}
		require.Less(t, left, limit)
		for at := pageBytes - 1; at < limit; at += pageBytes {
			require.EqualValues(t, 1, m.buf[at], "what was written is kept")
		}
	})
}

func TestCompileModuleRecovers(t *testing.T) {
	_, err := compileModule(t.Context(), nil, nil) // without a runtime it panics
	require.ErrorContains(t, err, "panic")
}
