package runtime_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	corpus "github.com/longshore/longshore/internal/hostile"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/wasi/messaging"
)

func TestInvoke_Pauses(t *testing.T) {
	engine, err := runtime.New(t.Context(), runtime.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, engine.Close(context.Background())) })
	// paused calls a module that pauses once for so long, and returns how that ended and how often it could have paused.
	paused := func(ctx context.Context, t *testing.T, name string, g limits.Guest, pause func()) (o runtime.Outcome, safePoints int) {
		t.Helper()
		m, found := corpus.Find(name)
		require.True(t, found)
		module, err := engine.Compile(t.Context(), name, m.Wasm(), g)
		require.NoError(t, err)
		call := messaging.NewCall(messaging.CallOptions{Message: messaging.Message{Data: []byte("hello")}, Limits: g, Pause: func(context.Context) time.Duration {
			if safePoints++; safePoints > 1 {
				return 0
			}
			began := time.Now()
			pause()
			return time.Since(began)
		}})
		return module.Invoke(ctx, call), safePoints
	}
	g := limits.DefaultGuest()
	g.CallDuration = 20 * time.Second // of a busy machine
	t.Run("TheTimeOfAPauseIsNotTheCalls", func(t *testing.T) {
		g := g
		g.Fuel = 3_000_000
		const pause = time.Second
		began := time.Now()
		o, n := paused(t.Context(), t, "counting", g, func() { time.Sleep(pause) })
		require.Equal(t, "out-of-fuel", o.Reason())
		require.Greater(t, n, 1)
		require.GreaterOrEqual(t, time.Since(began)-o.Wall, pause)
	})
	t.Run("HostCallsAreSafePointsToo", func(t *testing.T) {
		g := g
		g.HostCalls = 1_000
		o, n := paused(t.Context(), t, "asking for the topic", g, func() {})
		require.Equal(t, "host-call-limit", o.Reason())
		require.GreaterOrEqual(t, n, 1_000/32)
	})
	t.Run("ACallThatIsGivenUpMeanwhileEndsThere", func(t *testing.T) {
		for _, name := range []string{"counting", "asking for the topic"} {
			ctx, stop := context.WithCancel(t.Context())
			o, n := paused(ctx, t, name, g, stop)
			require.Equal(t, runtime.Interrupted, o.Class, name)
			require.Equal(t, 1, n, name)
		}
	})
}

func TestPause_MovesTheDeadline(t *testing.T) {
	call := messaging.NewCall(messaging.CallOptions{Limits: limits.DefaultGuest(), Pause: func(context.Context) time.Duration { return time.Hour }})
	ctx := call.Start(t.Context(), nil)
	before := call.Deadline()
	require.Equal(t, time.Hour, call.Pause(ctx))
	require.Equal(t, before.Add(time.Hour), call.Deadline())
	require.Equal(t, time.Hour, call.Paused())
}
