package crashtest

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/cmd/host/internal/wire"
)

// How long a soak lasts, without starting, draining and counting.
const (
	soakVariable = "SOAK_SECONDS"
	soakDefault  = 4 * time.Second

	soakKilled = 0.5 // of the time, hosts are killed
	soakWarm   = 0.1 // of the time, the last host warms up
	soakIdle   = 2 * time.Minute
	soakDrain  = 5 * time.Minute
)

// Topics of a soak: messages go from the first to the last, through a consumer each.
const (
	soakIn   = "in"
	soakMid  = "mid"
	soakOut  = "out"
	soakTold = "told" // events of both consumers
)

// TestSoak publishes to hosts whose consumers chain, and does meanwhile what operators do: redeploy ten times a second, pause and
// resume, redrive, rotate keys. Half of the time the hosts are killed or stopped in between. In the end each message must have had its
// effect once, and the last host must be what it was before: no goroutine more, and no more memory.
func TestSoak(t *testing.T) {
	s := newSoak(t)
	began, all := time.Now(), soakFor(t)
	for time.Since(began) < time.Duration(soakKilled*float64(all)) {
		s.life(t)
	}
	s.start(t, s.plans[0])
	warm := time.Duration(soakWarm * float64(all))
	s.work(t, warm)
	s.calm(t)
	before := s.idle(t, nil)
	s.work(t, all-warm-min(all-warm, time.Since(began)))
	s.calm(t)
	effects, told := s.effects(t), s.told(t)
	s.idle(t, &before)
	s.host.kill(t)
	s.report(t, effects, told)
}

func soakFor(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv(soakVariable)
	if text == "" {
		return soakDefault
	}
	seconds, err := strconv.Atoi(text)
	require.NoError(t, err, soakVariable)
	return time.Duration(seconds) * time.Second
}

// soak is a folder whose hosts are driven hard, and what is known of it.
type soak struct {
	folder    folder
	random    *rand.Rand
	tenants   []string
	producers *soakProducers
	plans     []plan
	host      *host
	killed    *atomic.Bool // the host is about to be

	redeploys, kills, stops, redriven, rotated, paused int
}

func newSoak(t *testing.T) *soak {
	t.Helper()
	s := &soak{tenants: []string{"s0", "s1", "s2"}}
	var topics []string
	for _, tenant := range s.tenants {
		topics = append(topics, fmt.Sprintf("  - {tenant: %s, topic: %s, anonymous: true}", tenant, soakIn))
	}
	s.folder = newFolder(t, append(topics, "log: {level: error}")...)
	s.random = newRandom(t)
	s.producers = newSoakProducers(s.tenants)
	s.plans = soakPlans(s.tenants)
	for name, g := range soakGuests() {
		s.folder.write(t, name, g.assemble())
	}
	for _, p := range s.plans {
		s.folder.write(t, p.file, []byte(p.manifest))
	}
	return s
}

// start starts a host with a plan, and waits until it is ready.
func (s *soak) start(t *testing.T, p plan) {
	t.Helper()
	s.host, s.killed = s.folder.startReady(t, p.file), &atomic.Bool{}
	s.uploadModules(t)
}

// life runs a host for a while, and ends it whatever it does, most times by a kill.
func (s *soak) life(t *testing.T) {
	t.Helper()
	s.start(t, s.plans[s.random.IntN(len(s.plans))])
	ctx, end := context.WithCancel(t.Context())
	signal := os.Kill
	if s.random.IntN(4) == 0 {
		signal = os.Interrupt
	}
	kill := time.AfterFunc(between(s.random, time.Second, 4*time.Second), func() {
		s.killed.Store(true)
		_ = s.host.cmd.Process.Signal(signal) // below it is looked at how the host ended
		end()
	})
	defer kill.Stop()
	published := s.producers.storm(ctx, t, s.host.address, s.killed, s.random)
	s.chaos(ctx, t)
	<-ctx.Done()
	if signal == os.Kill {
		s.host.waitKilled(t)
		s.kills++
	} else {
		<-s.host.ended
		require.True(t, s.host.cmd.ProcessState.Success(), "the host didn't stop well: %s", s.folder.logTail(t))
		s.stops++
	}
	published()
}

// work drives the host for so long.
func (s *soak) work(t *testing.T, d time.Duration) {
	t.Helper()
	ctx, end := context.WithTimeout(t.Context(), d)
	defer end()
	published := s.producers.storm(ctx, t, s.host.address, s.killed, s.random)
	s.chaos(ctx, t)
	published()
}

// calm lets the host handle all that there is.
func (s *soak) calm(t *testing.T) {
	t.Helper()
	require.NoError(t, s.redeploy(t.Context(), s.plans[0]))
	for _, tenant := range s.tenants {
		for _, topic := range []string{soakIn, soakMid} {
			require.NoError(t, s.pause(t.Context(), tenant, topic, false))
		}
	}
	require.Eventually(t, func() bool { return s.left(t) == 0 }, soakDrain, 50*time.Millisecond, "it doesn't handle all")
}

// left redrives what is dead, and returns how many messages are neither there nor done.
func (s *soak) left(t *testing.T) (n int64) {
	t.Helper()
	topics, err := s.host.admin.Topics(t.Context(), "")
	require.NoError(t, err)
	for _, one := range topics {
		if one.Topic != soakIn && one.Topic != soakMid {
			continue
		}
		require.Zero(t, one.Quarantined+one.Skipped)
		n += one.Ready + one.Delayed + one.Leased + one.Parked + one.DeadLetters
		if one.DeadLetters > 0 {
			require.NoError(t, s.redrive(t.Context(), one.Tenant, one.Topic))
		}
	}
	return n
}

// effects returns how often each payload came out at the end.
func (s *soak) effects(t *testing.T) map[string]int {
	t.Helper()
	effects := map[string]int{}
	for _, tenant := range s.tenants {
		for _, m := range stored(t, s.host.admin, tenant, soakOut) {
			effects[string(m.DataBase64)]++
		}
	}
	return effects
}

// told returns how often it was told that a consumer handled a message, by both.
func (s *soak) told(t *testing.T) map[string]int {
	t.Helper()
	told := map[string]int{}
	for _, tenant := range s.tenants {
		for _, m := range stored(t, s.host.admin, tenant, soakTold) {
			var event struct {
				Data struct{ Consumer, Message string }
			}
			require.NoError(t, json.Unmarshal(m.DataBase64, &event))
			require.Equal(t, m.Parent, event.Data.Message)
			told[event.Data.Consumer+" "+event.Data.Message]++
		}
	}
	return told
}

// report prints the figures, and fails if one isn't what was promised.
func (s *soak) report(t *testing.T, effects, told map[string]int) {
	t.Helper()
	lost, duplicated, foreign := s.producers.compare(effects)
	twice := 0
	for _, n := range told {
		twice += n - 1
	}
	for _, f := range []struct {
		name  string
		value int
	}{
		{"soak_messages", len(effects)},
		{"soak_lost", lost},
		{"soak_duplicated_effects", duplicated + twice},
		{"soak_redeploys", s.redeploys},
		{"soak_kills", s.kills},
		{"soak_stops", s.stops},
		{"soak_redriven", s.redriven},
		{"soak_keys_rotated", s.rotated},
		{"soak_pauses", s.paused},
	} {
		fmt.Println("figure", f.name, f.value)
	}
	require.Zero(t, lost, "messages that were acknowledged had no effect")
	require.Zero(t, duplicated, "messages had an effect more than once")
	require.Zero(t, foreign, "effects of messages that nobody sent")
	require.Zero(t, twice, "a message was said to be handled twice by one consumer")
	require.Len(t, told, 2*len(effects), "not all that was handled was told of")
	require.NotEmpty(t, effects)
	require.Positive(t, s.redeploys)
}

func (s *soak) redrive(ctx context.Context, tenant, topic string) error {
	moved, err := s.host.admin.Redrive(ctx, tenant, topic, wire.Move{Filter: wire.Filter{Lane: "default"}, Why: "soak"})
	s.redriven += moved.Count
	return err
}
