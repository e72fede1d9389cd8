package substrate

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

func TestWouldReserve(t *testing.T) {
	rooms := func(topic string, n int) (all []Room) {
		for range n {
			all = append(all, Room{Topic: topic, PayloadBytes: 10})
		}
		return all
	}
	t.Run("SaysWhatReserveWouldAndTakesNothing", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		two, nine := int64(2), int64(9)
		for topic, p := range map[string]Policy{
			"deep": {MaxDepth: &two}, "fast": {MaxRatePerSec: &two}, "small": {MaxMessageBytes: &nine}, "free": {},
		} {
			require.NoError(t, l.SetPolicy(t.Context(), testTenant, topic, p))
		}
		for range 3 { // room and rate are as they were
			require.NoError(t, l.WouldReserve(testTenant, rooms("deep", 2)...))
			require.ErrorAs(t, l.WouldReserve(testTenant, rooms("deep", 3)...), new(*DepthError))
			require.NoError(t, l.WouldReserve(testTenant, rooms("fast", 2)...))
			require.ErrorAs(t, l.WouldReserve(testTenant, rooms("fast", 3)...), new(*RateError))
			require.ErrorIs(t, l.WouldReserve(testTenant, rooms("small", 1)...), &limits.Error{Name: limits.NameMessageBytes})
			require.NoError(t, l.WouldReserve(testTenant, append(rooms("deep", 2), rooms("free", 50)...)...))
			require.ErrorAs(t, l.WouldReserve(testTenant, rooms("a//b", 1)...), new(*NameError))
		}
		held, err := l.Reserve(testTenant, "deep", 10)
		require.NoError(t, err)
		require.ErrorAs(t, l.WouldReserve(testTenant, rooms("deep", 2)...), new(*DepthError), "what others hold counts")
		held.Release()
		for range 2 {
			r, err := l.Reserve(testTenant, "fast", 10)
			require.NoError(t, err)
			defer r.Release()
		}
	})
	t.Run("CountsAllTopicsOfATenantAndCountsNoRefusal", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		setCaps(t, l, TenantCaps{Messages: 1})
		fits := append(rooms("a", limits.OutboxMessages), rooms("b", 1)...) // more than the cap, as handlers may
		require.NoError(t, l.WouldReserve(testTenant, fits...))
		err := l.WouldReserve(testTenant, append(fits, rooms("b", 1)...)...)
		require.True(t, errors.As(err, new(*TenantError)), err)
		require.Empty(t, l.Tenants(), "nobody was refused anything")
	})
}

func TestFenceMark(t *testing.T) {
	l := openLog(t, t.TempDir())
	_, known, err := l.FenceMark(testTenant, "orders", "", "role")
	require.NoError(t, err)
	require.False(t, known, "there is no topic")
	publish(t, l, "orders", "x")
	raise(t, l, claimOne(t, l, "orders"), "role", 7)
	m, known, err := l.FenceMark(testTenant, "orders", "", "role")
	require.NoError(t, err)
	require.True(t, known)
	require.EqualValues(t, 7, m.Token)
	_, known, err = l.FenceMark(testTenant, "orders", "nogroup", "role")
	require.NoError(t, err)
	require.False(t, known)
	_, _, err = l.FenceMark(testTenant, "orders", "a b", "role")
	require.Error(t, err)
}
