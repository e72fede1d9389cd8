package substrate

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// TestProofOfKills kills processes that work on a log, again and again, and looks at what the next one finds.
func TestProofOfKills(t *testing.T) {
	seed := proofSeed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	kills, acts := 0, 0
	for start := time.Now(); time.Since(start) < proofTime(t); {
		e := errand{Dir: proofDir(t), Seed: rng.Uint64(), Millis: 5_000, KillAt: 1 + rng.IntN(2_500)}
		ok := t.Run(fmt.Sprintf("Kill%dOfSeed%d", kills+1, seed), func(t *testing.T) {
			done, _, killed := e.send(t)
			if !killed {
				t.Fatal("it was to be killed")
			}
			newHistory(t, done, 1).check(e.Dir)
			acts += len(done)
		})
		if !ok {
			return
		}
		kills++
	}
	figure("kills", kills)
	figure("kill_acts", acts)
}
