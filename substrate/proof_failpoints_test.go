//go:build failpoint

package substrate

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// trial is a failpoint at which each kind of fault happens, in a phase of a log's life.
type trial struct {
	point, phase string
	most         int    // the fault comes at a hit up to this one
	noError      bool   // the point can't fail
	small, bulk  bool   // as in errand
	blocks       bool   // as in errand
	after        string // the point is hit only after an error at this one
}

var trials = []trial{
	{point: "commit.append", phase: "work", most: 300},
	{point: "commit.answer", phase: "work", most: 300, noError: true},
	{point: "journal.allocate", phase: "work", most: 2},
	{point: "journal.create", phase: "work", most: 2},
	{point: "journal.created", phase: "work", most: 2},
	{point: "journal.write", phase: "work", most: 300},
	{point: "journal.written", phase: "work", most: 300},
	{point: "journal.switch", phase: "work", most: 3},
	{point: "journal.sync", phase: "work", most: 300},
	{point: "journal.synced", phase: "work", most: 300},
	{point: "journal.zero", phase: "work", most: 1, after: "journal.synced"},
	{point: "behind.cut", phase: "work", most: 6},
	{point: "store.early", phase: "work", most: 6},
	{point: "store.erase", phase: "work", most: 6},
	{point: "store.last", phase: "work", most: 6},
	{point: "store.written", phase: "work", most: 6},
	{point: "store.sync", phase: "work", most: 4},
	{point: "store.sync-folder", phase: "work", most: 2, small: true},
	{point: "behind.sync", phase: "work", most: 2},
	{point: "behind.stored", phase: "work", most: 6},
	{point: "behind.release", phase: "work", most: 6, noError: true},
	{point: "keeper.tidy", phase: "work", most: 1, small: true},
	{point: "reclaim.drop", phase: "work", most: 1, small: true},
	{point: "reclaim.flatten", phase: "work", most: 1, small: true},
	{point: "reclaim.collect", phase: "work", most: 1, small: true},
	{point: "reclaim.rewritten", phase: "work", most: 1, small: true, bulk: true},
	{point: "reclaim.move", phase: "work", most: 1, small: true, blocks: true},
	{point: "reclaim.moved", phase: "work", most: 1, small: true, blocks: true},
	{point: "payload.create", phase: "work", most: 1, blocks: true},
	{point: "payload.write", phase: "work", most: 10, blocks: true},
	{point: "payload.written", phase: "work", most: 10, blocks: true},
	{point: "payload.sync", phase: "work", most: 10, blocks: true},
	{point: "payload.sync-folder", phase: "work", most: 1, blocks: true},
	{point: "payload.remove", phase: "work", most: 1, small: true, blocks: true},

	{point: "behind.cut", phase: "close", most: 1},
	{point: "store.early", phase: "close", most: 1},
	{point: "store.last", phase: "close", most: 1},
	{point: "store.sync", phase: "close", most: 2},
	{point: "behind.stored", phase: "close", most: 1},
	{point: "behind.release", phase: "close", most: 1, noError: true},
	{point: "close.stored", phase: "close", most: 1, noError: true},

	{point: "recover.loaded", phase: "open", most: 1},
	{point: "recover.replay", phase: "open", most: 8},
	{point: "recover.finish", phase: "open", most: 1},
	{point: "recover.flush", phase: "open", most: 1},
	{point: "store.early", phase: "open", most: 1},
	{point: "store.last", phase: "open", most: 1},
	{point: "store.written", phase: "open", most: 1},
	{point: "recover.flushed", phase: "open", most: 1},
	{point: "store.sync", phase: "open", most: 2},
	{point: "store.sync-folder", phase: "open", most: 1},
	{point: "journal.restart", phase: "open", most: 1},
	{point: "journal.write", phase: "open", most: 1},
	{point: "journal.written", phase: "open", most: 1},
	{point: "journal.sync", phase: "open", most: 1},
	{point: "journal.synced", phase: "open", most: 1},
	{point: "recover.restarted", phase: "open", most: 1},
}

// TestProofOfFailpoints lets each fault happen at each point with work in flight, and looks at what the next process finds.
func TestProofOfFailpoints(t *testing.T) {
	require.Empty(t, untried(t), "failpoints without a trial")
	type run struct {
		trial
		fault string
	}
	var runs []run
	for _, tr := range trials {
		for _, fault := range []string{"error", "crash", "delay"} {
			if fault != "error" || !tr.noError {
				runs = append(runs, run{tr, fault})
			}
		}
	}
	seed := proofSeed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	rng.Shuffle(len(runs), func(i, j int) { runs[i], runs[j] = runs[j], runs[i] })
	tried := map[string]bool{}
	for i, start := 0, time.Now(); time.Since(start) < proofTime(t); i++ {
		r := runs[i%len(runs)]
		name := fmt.Sprintf("%s/%s/%s", r.phase, r.point, r.fault)
		ok := t.Run(fmt.Sprintf("%s/Run%dOfSeed%d", name, i, seed), func(t *testing.T) {
			for tries := 0; !r.try(t, r.fault, rng); tries++ {
				require.Less(t, tries, 5, "the point is never hit")
			}
			tried[name] = true
		})
		if !ok {
			return
		}
	}
	figure("failpoints", len(tried))
	figure("failpoints_of", len(runs))
}

// try lets one fault happen in a process at work, and checks what is left. It reports whether the fault happened: a
// process may have too little to do to get there.
func (tr *trial) try(t *testing.T, fault string, rng *rand.Rand) bool {
	t.Helper()
	e := errand{
		Dir: proofDir(t), Seed: rng.Uint64(), Millis: 10_000,
		Point: tr.point, Phase: tr.phase, Fault: fault, Nth: 1 + rng.IntN(tr.most), Small: tr.small, Bulk: tr.bulk, Blocks: tr.blocks,
	}
	var acts []act
	if tr.phase == "open" {
		before := errand{Dir: e.Dir, Seed: rng.Uint64(), Millis: 10_000, KillAt: 100 + rng.IntN(1_000)}
		var killed bool
		acts, _, killed = before.send(t)
		require.True(t, killed)
	}
	if tr.phase != "work" {
		e.Millis = 1 + rng.IntN(150)
	}
	doubtful := false
	if tr.after != "" {
		e.Point, e.Fault, e.Nth = tr.after, "error", 1+rng.IntN(300)
		e.ThenPoint, e.ThenFault = tr.point, fault
		doubtful = fault == "error" // the group can't be taken back
	}
	more, o, killed := e.send(t)
	if !killed && !o.Fired {
		return false
	}
	require.Equal(t, fault == "crash", killed, "killed")
	if !killed {
		wantFailed := (fault == "error" || tr.after != "") && tr.phase != "open"
		require.Equal(t, wantFailed, o.Failed, "the log has failed")
		require.Equal(t, fault == "error" && tr.phase == "open", o.Opens == 1, "the first Open failed")
	}
	if doubtful {
		doubt(more)
	}
	processes := 1
	if len(acts) > 0 {
		processes = 2
	}
	newHistory(t, continued(acts, more), processes).check(e.Dir)
	return true
}

// doubt takes the refusals of a log that failed for what they are if the failed group can't be taken back: nobody knows
// what the disk has kept.
func doubt(acts []act) {
	for i := range acts {
		if a := &acts[i]; a.Step == "refused" && strings.Contains(a.Why, ErrClosed.Error()) {
			a.Step = "unknown"
		}
	}
}

// continued appends the acts of a second process to those of one that was killed: its leases are void.
func continued(first, second []act) []act {
	var calls uint64
	for _, a := range first {
		calls = max(calls, a.Call)
	}
	for i := range second {
		second[i].Call += calls
	}
	return append(slices.Clone(first), second...)
}

var hitPattern = regexp.MustCompile(`failpoint\.Hit\("([^"]+)"\)`)

// untried returns the points in the sources for which there is no trial.
func untried(t *testing.T) (names []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range hitPattern.FindAllStringSubmatch(string(source), -1) {
			if !slices.ContainsFunc(trials, func(tr trial) bool { return tr.point == m[1] }) {
				names = append(names, m[1])
			}
		}
		return err
	}))
	return names
}
