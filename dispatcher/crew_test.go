package dispatcher

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

// newCrew returns a crew that ends with the test.
func newCrew(t *testing.T) *crew {
	t.Helper()
	c := &crew{}
	t.Cleanup(c.end)
	return c
}

func TestCrew(t *testing.T) {
	t.Run("RunsAllThatItIsGivenAtOnce", func(t *testing.T) {
		c := newCrew(t)
		const n = 2 * limits.IdleHands
		var together sync.WaitGroup
		together.Add(n)
		for range n {
			c.do(func() {
				together.Done()
				together.Wait() // each waits for all: none is behind another one
			})
		}
		c.end()
	})
	t.Run("KeepsNoMoreGoroutinesThanItsBound", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCrew(t)
			held := make(chan struct{})
			for range limits.IdleHands + 10 {
				c.do(func() { <-held })
			}
			close(held)
			synctest.Wait()
			require.Len(t, c.idle, limits.IdleHands)
		})
	})
	t.Run("UsesAGoroutineAgain", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCrew(t)
			for range 10 {
				c.do(func() {})
				synctest.Wait()
				require.Len(t, c.idle, 1)
			}
		})
	})
	t.Run("EndsOnceAllHasRun", func(t *testing.T) {
		c := &crew{}
		var ran atomic.Int64
		for range 100 {
			c.do(func() {
				c.do(func() { ran.Add(1) })
				ran.Add(1)
			})
		}
		c.end()
		require.EqualValues(t, 200, ran.Load())
		require.Empty(t, c.idle)
	})
}
