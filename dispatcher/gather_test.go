package dispatcher

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

// commits is a Queue that notes what is settled together.
type commits struct {
	Queue
	mu     sync.Mutex
	all    [][]uint64 // positions
	outbox int
	refuse func(positions []uint64) error
}

func (q *commits) Settle(_ context.Context, s []substrate.Settlement, outbox []substrate.Message) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	var positions []uint64
	for _, one := range s {
		positions = append(positions, one.Lease.Position)
	}
	if q.refuse != nil {
		if err := q.refuse(positions); err != nil {
			return err
		}
	}
	q.all = append(q.all, positions)
	q.outbox += len(outbox)
	return nil
}

func toSettleAt(position uint64, payload int) *toSettle {
	return &toSettle{
		settlements: []substrate.Settlement{{Lease: substrate.Lease{Position: position}}},
		outbox:      []substrate.Message{{Payload: make([]byte, payload)}},
	}
}

func TestSettler(t *testing.T) {
	// settle settles so many messages at once, and returns how long each took and what each was answered.
	settle := func(s *settler, n, payload int, patient bool) (took []time.Duration, errs []error) {
		took, errs = make([]time.Duration, n), make([]error, n)
		began := time.Now()
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() {
				errs[i] = s.settle(context.Background(), toSettleAt(uint64(i), payload), 1, patient)
				took[i] = time.Since(began)
			})
		}
		all.Wait()
		return took, errs
	}
	t.Run("CommitsTogetherWhatComesTogether", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := &commits{}
			s := newSettler(q)
			s.claimed(5)
			took, _ := settle(s, 5, 1, true)
			require.Len(t, q.all, 1)
			require.ElementsMatch(t, []uint64{0, 1, 2, 3, 4}, q.all[0])
			require.Equal(t, 5, q.outbox)
			require.Zero(t, took[0], "nobody else is to come")
		})
	})
	t.Run("WaitsForOthersAtMostItsTime", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := &commits{}
			s := newSettler(q)
			s.claimed(6) // one never comes
			took, _ := settle(s, 5, 1, true)
			require.Equal(t, limits.SettleWait, took[0])
			require.Len(t, q.all, 1)
		})
	})
	t.Run("DoesNotWaitForOneThatWillNotCome", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newSettler(&commits{})
			s.claimed(2)
			began := time.Now()
			go func() {
				time.Sleep(limits.SettleWait / 2)
				s.claimed(-1)
			}()
			settle(s, 1, 1, true)
			require.Equal(t, limits.SettleWait/2, time.Since(began))
		})
	})
	t.Run("DoesNotWaitWhereCallsAreLong", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newSettler(&commits{})
			s.claimed(2)
			took, _ := settle(s, 1, 1, false)
			require.Zero(t, took[0])
		})
	})
	t.Run("ACommitOfItsMostMessagesOrBytesWaitsForNobody", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			for _, payload := range []int{1, limits.SettleTogetherBytes / 4} {
				s := newSettler(&commits{})
				s.claimed(2 * limits.SettleTogether)
				took, _ := settle(s, limits.SettleTogether, payload, true)
				require.Zero(t, took[0])
			}
		})
	})
	t.Run("WhatOneIsRefusedForMeetsTheOthersNot", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			lost := errors.New("the third is lost")
			q := &commits{refuse: func(positions []uint64) error {
				for _, p := range positions {
					if p == 3 {
						return lost
					}
				}
				return nil
			}}
			s := newSettler(q)
			s.claimed(5)
			_, errs := settle(s, 5, 1, true)
			for i, err := range errs {
				if i == 3 {
					require.ErrorIs(t, err, lost)
				} else {
					require.NoError(t, err)
				}
			}
			require.Len(t, q.all, 4)
		})
	})
}

func TestDeliver_SettlesShortCallsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 3 * limits.SettleTogether
		c := consumerOf("c", guestFunc(func(context.Context, *messaging.Call) runtime.Outcome { return ok() }))
		r := newRig(t, c)
		settled := 0
		r.queue.fail = func(call string, _ int) error {
			if call == "settle" {
				settled++
			}
			return nil
		}
		ids := r.publish(n)
		r.runFor(time.Second)
		require.ElementsMatch(t, ids, r.queue.acked)
		require.Less(t, settled, n/4)
	})
}
