package dispatcher

import (
	goruntime "runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

// hostRoom returns how much of the host's room is taken.
func (r *rig) hostRoom() (messages int, bytes int64) {
	b := r.d.shared.hostSlots
	b.mu.Lock()
	defer b.mu.Unlock()
	return limits.HostInFlightMsgs - b.free.messages, limits.HostInFlightBytes - b.free.bytes
}

func TestSlots(t *testing.T) {
	t.Run("AConsumerWithoutMessagesHoldsNoneOfTheHosts", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, consumerOf("c", ends(ok())))
			r.run()
			synctest.Wait()
			messages, bytes := r.hostRoom()
			require.Zero(t, messages)
			require.Zero(t, bytes)
			r.halt()
		})
	})
	t.Run("WhatAClaimDoesNotNeedIsGivenBackAtOnceAndTheRestWhenItIsSettled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, consumerOf("c", works(time.Second)))
			r.options.Consumers[0].Limits.CallDuration = 2 * time.Second
			r.publish(2)
			r.run()
			time.Sleep(500 * time.Millisecond)
			synctest.Wait()
			messages, bytes := r.hostRoom()
			require.Equal(t, 2, messages)
			require.EqualValues(t, 2*len("payload"), bytes)
			time.Sleep(10 * time.Second)
			messages, bytes = r.hostRoom()
			require.Zero(t, messages)
			require.Zero(t, bytes)
			r.halt()
		})
	})
	t.Run("OneProcessorIsLeftToTheHost", func(t *testing.T) {
		for processors, want := range map[int]int{1: 1, 2: 1, 4: 3} {
			before := goruntime.GOMAXPROCS(processors)
			got := Options{}.withDefaults().Workers
			goruntime.GOMAXPROCS(before)
			require.Equal(t, want, got)
		}
	})
}
