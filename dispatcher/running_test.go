package dispatcher

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/runtime"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

func TestWhatRunsIsNoted(t *testing.T) {
	t.Run("WhileTheGuestRunsAndNoLonger", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var r *rig
			r = newRig(t, consumerOf("c", guestFunc(func(context.Context, *messaging.Call) runtime.Outcome {
				r.queue.look(func() { require.Len(t, r.queue.running, 1, "one of three that are claimed") })
				return ok()
			})))
			ids := r.publish(3)
			r.runFor(time.Second)
			require.ElementsMatch(t, ids, r.queue.acked)
			require.Empty(t, r.queue.hasty, "no longer running when they are settled")
			require.Equal(t, 3, r.queue.started)
		})
	})
	t.Run("NotIfNoGuestRuns", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, consumerOf("c", ends(ok())))
			m := r.message(topic, "changed")
			m.Payload = []byte("by somebody")
			r.queue.publish(m)
			r.runFor(time.Second)
			require.Len(t, r.queue.buried, 1)
			require.Zero(t, r.queue.started)
		})
	})
	t.Run("EvenIfTheHostPanics", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, consumerOf("c", guestFunc(func(context.Context, *messaging.Call) runtime.Outcome { panic("a defect") })))
			r.publish(1)
			r.runFor(time.Minute)
			require.Equal(t, 3, r.queue.started)
			require.Empty(t, r.queue.running)
		})
	})
	t.Run("OrItDoesNotRunAndIsNotCharged", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var calls atomic.Int64
			r := newRig(t, consumerOf("c", guestFunc(func(context.Context, *messaging.Call) runtime.Outcome {
				calls.Add(1)
				return ok()
			})))
			refusals := 3
			r.queue.start = func() error {
				if refusals--; refusals >= 0 {
					return errors.New("no slot")
				}
				return nil
			}
			ids := r.publish(1)
			r.runFor(time.Minute)
			require.Len(t, r.queue.released, 3)
			require.EqualValues(t, 1, calls.Load())
			require.Equal(t, ids, r.queue.acked)
		})
	})
	t.Run("ASuspectRunsWhenNothingElseDoes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			const suspect = 6 // position
			var r *rig
			most, beside := 0, -1
			r = newRig(t, consumerOf("c", guestFunc(func(context.Context, *messaging.Call) runtime.Outcome {
				time.Sleep(time.Second)
				r.queue.look(func() {
					most = max(most, len(r.queue.running))
					for lease := range r.queue.running {
						if lease.Position == suspect {
							beside = max(beside, len(r.queue.running)-1)
						}
					}
				})
				return ok()
			})))
			r.options.Workers = 4
			r.publish(11)
			r.queue.messages[suspect-1].suspect = true
			r.runFor(time.Minute)
			require.Len(t, r.queue.acked, 11)
			require.Zero(t, beside)
			require.Equal(t, 4, most)
		})
	})
}

// The host-killer: a guest can't bring a host down, so one in Go stands in for a defect of the runtime.
const (
	killerVariable = "LONGSHORE_TEST_KILLED_LOG"
	poisonPosition = 20
)

// killable is a log that knows whether poison runs, for a guest in Go doesn't see its message.
type killable struct {
	*substrate.Log
	poison uint64 // position
	runs   atomic.Bool
}

func (k *killable) Start(leases ...substrate.Lease) (func(), error) {
	ended, err := k.Log.Start(leases...)
	if leases[0].Position == k.poison {
		k.runs.Store(true)
	}
	return ended, err
}

// ackPrinter prints the deliveries that end: it may not keep them, for the process is killed.
type ackPrinter struct{}

func (ackPrinter) OnDelivery(r Receipt) {
	fmt.Printf("%s %s %d %s\n", r.Verdict, r.Message, r.Attempt, r.Reason)
}

func (ackPrinter) OnEvent(EventOutcome) {}

// TestChildThatIsKilled drains a log with a guest that kills its process on poison.
func TestChildThatIsKilled(t *testing.T) {
	dir := os.Getenv(killerVariable)
	if dir == "" {
		t.Skip("runs as a child of another test")
	}
	log, err := substrate.Open(t.Context(), substrate.Options{Dir: dir, SegmentBytes: limits.MiB, LockWait: 10 * time.Second})
	require.NoError(t, err)
	queue := &killable{Log: log, poison: poisonPosition}
	c := consumerOf("c", guestFunc(func(context.Context, *messaging.Call) runtime.Outcome {
		time.Sleep(5 * time.Millisecond) // so that others run too, if there are workers
		if queue.runs.Load() {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return ok()
	}))
	c.ContextOptional = true // the keys of the process before are gone
	workers := 1
	_, err = fmt.Sscan(os.Getenv(killerVariable+"_WORKERS"), &workers)
	require.NoError(t, err)
	d, err := New(Options{Queue: queue, Context: newContext(t), Consumers: []Consumer{c}, Observer: ackPrinter{}, Workers: workers, Grace: time.Second})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	require.Eventually(t, func() bool {
		s, _ := log.Stats(tenant, topic)
		return s.Backlog() == 0
	}, time.Minute, 5*time.Millisecond)
	cancel()
	require.NoError(t, <-ended)
	require.NoError(t, log.Close())
}

func TestAHostKillerIsBuriedAndItsNeighboursAreNotCharged(t *testing.T) {
	const messages, maxAttempts = 40, 3
	for _, workers := range []int{1, 4} {
		t.Run(fmt.Sprint(workers, "Workers"), func(t *testing.T) {
			dir := t.TempDir()
			log, err := substrate.Open(t.Context(), substrate.Options{Dir: dir, SegmentBytes: limits.MiB})
			require.NoError(t, err)
			for range messages {
				m := substrate.Message{ID: log.MintID(), Tenant: tenant, Topic: topic, Payload: []byte("payload")}
				_, err := log.Publish(t.Context(), m)
				require.NoError(t, err)
			}
			require.NoError(t, log.Close())

			kills, attempts := 0, map[int]int{} // acknowledgements by their attempt
			for killed := true; killed; {
				require.LessOrEqual(t, kills, maxAttempts)
				killed = runChild(t, dir, workers, attempts)
				if killed {
					kills++
				}
			}
			require.Equal(t, maxAttempts, kills)
			log, err = substrate.Open(t.Context(), substrate.Options{Dir: dir, SegmentBytes: limits.MiB})
			require.NoError(t, err)
			defer func() { require.NoError(t, log.Close()) }()
			letters, err := log.DeadLetters(t.Context(), tenant, topic, substrate.DeadLetterFilter{})
			require.NoError(t, err)
			require.Len(t, letters, 1)
			require.Equal(t, ReasonCrashed, letters[0].Reason)
			require.Equal(t, maxAttempts, letters[0].Attempts)
			require.EqualValues(t, poisonPosition, letters[0].Position)
			s, _ := log.Stats(tenant, topic)
			require.EqualValues(t, messages-1, s.Acked)
			require.Zero(t, s.Backlog())
			require.LessOrEqual(t, attempts[2], workers-1, "those that ran beside it, once")
			require.Equal(t, len(attempts), 1+min(1, attempts[2]), "%v", attempts)
		})
	}
}

// runChild runs a host until it ends, counts what it acknowledged, and reports whether it was killed.
func runChild(t *testing.T, dir string, workers int, attempts map[int]int) (killed bool) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestChildThatIsKilled$")
	cmd.Env = append(os.Environ(), killerVariable+"="+dir, fmt.Sprintf("%s_WORKERS=%d", killerVariable, workers))
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var other []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var id string
		var attempt int
		if n, _ := fmt.Sscanf(lines.Text(), "ack %s %d", &id, &attempt); n == 2 {
			attempts[attempt]++
		} else {
			other = append(other, lines.Text())
		}
	}
	if err := cmd.Wait(); err != nil {
		require.EqualError(t, err, "signal: killed", strings.Join(other, "\n"))
		return true
	}
	return false
}
