package dispatcher

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/wasi/messaging"
)

// ran is what became of a turn.
type ran struct {
	began, ended time.Duration // since the start of the test
	paused       time.Duration
}

// running lets turns run for a time, with a safe point each millisecond.
type running struct {
	w     *workers
	start time.Time
	all   sync.WaitGroup
}

func newRunning(t *testing.T, workers int) *running {
	t.Helper()
	return &running{w: newWorkers(workers, nil, nil, newCrew(t)), start: time.Now()}
}

func (r *running) run(ctx context.Context, tenant string, lasts time.Duration, alone bool) *ran {
	turn, out := r.w.enqueue(tenant, "c", alone), &ran{}
	r.all.Go(func() {
		defer turn.done()
		_ = turn.perform(context.Background(), context.Background(), func() {
			out.began = time.Since(r.start)
			for ; lasts > 0 && ctx.Err() == nil; lasts -= time.Millisecond {
				time.Sleep(time.Millisecond)
				out.paused += r.safePoint(ctx, turn)
			}
			out.ended = time.Since(r.start)
		})
	})
	synctest.Wait()
	return out
}

// safePoint does what asker.pause does with a turn.
func (r *running) safePoint(ctx context.Context, turn *turn) time.Duration {
	if !r.w.pauses(turn) {
		return 0
	}
	defer r.w.goesOn()
	began := time.Now()
	turn.leave()
	_ = turn.comeBack(ctx, ctx)
	return time.Since(began)
}

func TestPause(t *testing.T) {
	const long, short = 100 * time.Millisecond, 10 * time.Millisecond
	t.Run("ATenantThatIsOwedMoreDoesNotWaitForTheEndOfALongGuest", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRunning(t, 1)
			loud := r.run(t.Context(), "loud", long, false)
			time.Sleep(20 * time.Millisecond)
			quiet := r.run(t.Context(), "quiet", short, false)
			r.all.Wait()
			require.LessOrEqual(t, quiet.began, 22*time.Millisecond)
			require.Equal(t, short, quiet.ended-quiet.began)
			require.Equal(t, short, loud.paused)
			require.Equal(t, long+short, loud.ended)
			require.Zero(t, r.w.paused)
			require.Equal(t, 1, r.w.free)
		})
	})
	t.Run("NotForItsOwnTenant", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRunning(t, 1)
			first := r.run(t.Context(), "one", long, false)
			second := r.run(t.Context(), "one", short, false)
			r.all.Wait()
			require.Zero(t, first.paused)
			require.Equal(t, long, second.began)
		})
	})
	t.Run("NotBeforeItRanForAWhile", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRunning(t, 1)
			first := r.run(t.Context(), "loud", long, false)
			r.run(t.Context(), "quiet", short, false)
			r.all.Wait()
			require.Positive(t, first.paused)
			second := r.run(t.Context(), "loud", limits.PauseAfter-time.Millisecond, false)
			r.run(t.Context(), "quiet", short, false)
			r.all.Wait()
			require.Zero(t, second.paused)
		})
	})
	t.Run("NotForOneThatIsAlone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRunning(t, 1)
			alone := r.run(t.Context(), "loud", long, true)
			quiet := r.run(t.Context(), "quiet", long, false)
			r.all.Wait()
			require.Zero(t, alone.paused)
			require.Equal(t, long, quiet.began)
		})
	})
	t.Run("NoMoreThanItsBoundArePaused", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRunning(t, 1)
			for i := range limits.PausedGuests + 5 {
				r.run(t.Context(), strconv.Itoa(i), long, false)
				time.Sleep(3 * time.Millisecond)
				r.w.mu.Lock()
				require.LessOrEqual(t, r.w.paused, limits.PausedGuests)
				if i == limits.PausedGuests {
					require.Equal(t, limits.PausedGuests, r.w.paused)
				}
				r.w.mu.Unlock()
			}
			r.all.Wait()
			require.Zero(t, r.w.paused)
		})
	})
	t.Run("AGuestThatIsToEndDoesNotWaitForItsTurn", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRunning(t, 1)
			ctx, stop := context.WithCancel(t.Context())
			loud := r.run(ctx, "loud", long, false)
			time.Sleep(20 * time.Millisecond)
			quiet := r.run(t.Context(), "quiet", long, false)
			time.Sleep(5 * time.Millisecond)
			stop()
			synctest.Wait()
			require.Equal(t, 25*time.Millisecond, loud.ended)
			r.all.Wait()
			require.Zero(t, r.w.paused)
			require.Equal(t, 1, r.w.free)
			require.Zero(t, quiet.paused)
		})
	})
	t.Run("CountsOnlyWhatItRan", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRunning(t, 1)
			r.run(t.Context(), "loud", long, false)
			time.Sleep(20 * time.Millisecond)
			r.run(t.Context(), "quiet", short, false)
			r.all.Wait()
			now := time.Now()
			used := r.w.tenants["loud"].used.recent(now, r.w.seconds(now))
			require.InDelta(t, long.Seconds(), used, 0.01, "some of it is forgotten")
			require.Zero(t, r.w.used.running)
		})
	})
}

func TestAPausedGuest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loudFor, quietFor := 100*time.Millisecond, 10*time.Millisecond
		var r *rig
		var paused, ran time.Duration
		loud := consumerOf("loud", guestFunc(func(ctx context.Context, call *messaging.Call) runtime.Outcome {
			for ; ran < loudFor; ran += time.Millisecond {
				time.Sleep(time.Millisecond)
				paused += call.Pause(ctx)
			}
			return ok()
		}))
		quiet := consumerOf("quiet", guestFunc(func(context.Context, *messaging.Call) runtime.Outcome {
			r.queue.look(func() { require.Len(t, r.queue.running, 1, "the paused one isn't noted as running") })
			time.Sleep(quietFor)
			return ok()
		}))
		quiet.Tenant, quiet.Topic = "small", "other"
		r = newRig(t, loud, quiet)
		r.publish(1)
		r.run()
		time.Sleep(20 * time.Millisecond)
		m := r.message("other", "x")
		m.Tenant = "small"
		r.queue.publish(sealed(t, r.context, m))
		time.Sleep(time.Second)
		r.halt()
		require.Equal(t, quietFor, paused)
		require.Equal(t, m.ID, r.queue.acked[0], "it did not wait for the loud one")
		require.Len(t, r.queue.acked, 2)
		require.Empty(t, r.queue.running)
		require.Equal(t, 1, r.logs.FilterMessage("guest is paused").Len())
		require.Equal(t, 1, r.logs.FilterMessage("guest goes on").Len())
	})
}
