package dispatcher

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/substrate"
)

// extends is a Queue that notes which leases are extended, by their positions, and when.
type extends struct {
	Queue
	began time.Time
	mu    sync.Mutex
	all   map[uint64][]time.Duration
	fail  func(position uint64) error
}

func (q *extends) Extend(_ context.Context, l substrate.Lease, d time.Duration) (time.Time, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all[l.Position] = append(q.all[l.Position], time.Since(q.began))
	return time.Now().Add(d), q.fail(l.Position)
}

// tries returns how often a lease was to be extended.
func (q *extends) tries(position uint64) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.all[position])
}

func TestLeases(t *testing.T) {
	const d = 10 * time.Second
	hold := func(t *testing.T, fail func(position uint64) error) (q *extends, held [2]*lease) {
		t.Helper()
		q = &extends{began: time.Now(), all: map[uint64][]time.Duration{}, fail: fail}
		k := newLeases(t.Context(), q, d)
		for i := range held {
			held[i] = &lease{}
			k.add(held[i], substrate.Lease{Position: uint64(i)}, time.Now(), func(error) {})
		}
		return q, held
	}
	fine := func(uint64) error { return nil }
	t.Run("EachIsExtendedAtHalfOfItsTime", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q, held := hold(t, fine)
			time.Sleep(12 * time.Second)
			held[0].letGo()
			time.Sleep(5 * time.Second)
			held[1].letGo()
			require.Equal(t, map[uint64][]time.Duration{
				0: {5 * time.Second, 10 * time.Second}, 1: {5 * time.Second, 10 * time.Second, 15 * time.Second},
			}, q.all)
			require.False(t, held[0].lost() || held[1].lost())
		})
	})
	t.Run("OneThatIsLostDoesNotMeetTheOthers", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, held := hold(t, func(position uint64) error {
				if position == 0 {
					return substrate.ErrLeaseLost
				}
				return nil
			})
			time.Sleep(3 * d)
			require.True(t, held[0].lost())
			require.False(t, held[1].lost())
			held[0].letGo()
			held[1].letGo()
		})
	})
	t.Run("OneThatCannotBeExtendedIsLostAtItsEnd", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q, held := hold(t, func(position uint64) error {
				if position == 0 {
					return errors.New("the disk is slow")
				}
				return nil
			})
			time.Sleep(d - time.Millisecond)
			synctest.Wait()
			require.False(t, held[0].lost())
			require.Greater(t, q.tries(0), 3, "it is tried again and again")
			time.Sleep(time.Millisecond)
			synctest.Wait()
			require.True(t, held[0].lost())
			require.False(t, held[1].lost())
			held[0].letGo()
			held[1].letGo()
		})
	})
	t.Run("WhatWasLetGoIsNeverLost", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, held := hold(t, func(uint64) error { return substrate.ErrLeaseLost })
			held[0].letGo()
			time.Sleep(d)
			require.False(t, held[0].lost(), "it was settled")
			require.True(t, held[1].lost())
			held[1].letGo()
		})
	})
}
