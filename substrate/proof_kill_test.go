package substrate

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestProofKilled kills a process that works on a log, at random moments, some of them while it opens the log, and checks
// that the next one finds what was answered, nothing that was done, and of each call all or nothing.
func TestProofKilled(t *testing.T) {
	until, seed := proofUntil(t), proofSeed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	dir, ledger := t.TempDir(), newProofLedger()
	kills, busy, starting := 0, 0, 0
	for kills < 3 || time.Now().Before(until) {
		if killAtWork(t, random, dir, ledger) {
			busy++
		}
		kills++
		for random.IntN(3) == 0 {
			killAtStart(t, random, dir)
			kills++
			starting++
		}
		findings := auditFolders(t, proofPlan{Release: true}, dir)
		wrong := ledger.check(&findings[0], false)
		require.Empty(t, wrong, "kill %d", kills)
	}
	t.Logf("%d kills, %d of them with a publish, a claim and a settlement in flight, %d at start; %d messages compared", kills, busy, starting, ledger.checked)
	if atWork := kills - starting; atWork >= 8 { // fewer say little: a kill may come before the first work
		require.GreaterOrEqual(t, 2*busy, atWork, "kills with work of each kind in flight")
	}
	figure("kills", kills)
	figure("acked_lost", ledger.lost)
	figure("acked_redelivered", ledger.redelivered)
	figure("corrupt_delivered", ledger.corrupt)
}

// killAtWork reports whether work of each kind was in flight.
func killAtWork(t *testing.T, random *rand.Rand, dir string, ledger *proofLedger) bool {
	t.Helper()
	opened := make(chan struct{}, 1)
	c := startProofChild(t, proofPlan{Role: "work", Seed: random.Uint64(), Dirs: []string{dir}, Reclaim: random.IntN(2) == 0}, func(s proofStep) {
		ledger.take(s)
		if s.Kind == "opened" || s.Fault != "" {
			opened <- struct{}{}
		}
	})
	<-opened
	time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond)
	c.kill(t)
	require.Empty(t, ledger.faults, "%s", c.output)
	flight := ledger.inFlight()
	return flight["publish"] > 0 && flight["claim"] > 0 && flight["settle"] > 0
}

// killAtStart kills a process that opens the log.
func killAtStart(t *testing.T, random *rand.Rand, dir string) {
	t.Helper()
	opening := make(chan struct{}, 3)
	c := startProofChild(t, proofPlan{Role: "work", Dirs: []string{dir}, Hold: true}, func(s proofStep) {
		if s.Fault != "" {
			t.Errorf("the log does not open: %s", s.Fault)
		}
		opening <- struct{}{}
	})
	<-opening
	time.Sleep(time.Duration(5000+random.IntN(45_000)) * time.Microsecond)
	c.kill(t)
	require.False(t, t.Failed(), "%s", c.output)
}
