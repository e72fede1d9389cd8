package substrate

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/longshore/longshore/limits"
)

// TestProofLostPower cuts the power under a log that works, and checks what the next process finds: only what was not
// answered is lost, of relaxed topics only what was not flushed, what was done stays done, and nothing is altered. The
// process runs under a tracer that sees each sync, Badger's included: what a folder may hold after the cut is put together
// from what was synced and what was not.
func TestProofLostPower(t *testing.T) {
	until, seed := proofUntil(t), proofSeed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	cuts := map[string]int{}
	total := newProofLedger()
	for round := 0; round < 2 || time.Now().Before(until); round++ {
		p := powerCut{
			random: random, moment: cutMoments[round%len(cutMoments)], folder: t.TempDir(),
			plan: proofPlan{Role: "work", Segment: testSegment, Seed: random.Uint64(), Trace: true},
		}
		p.run(t)
		wrong := p.check(t, total)
		require.Empty(t, wrong)
		cuts[p.reached] += int(cutWays)
		require.NoError(t, os.RemoveAll(p.folder))
	}
	t.Logf("power cuts, by moment: %v; %d messages compared", cuts, total.checked)
	n := 0
	for _, c := range cuts {
		n += c
	}
	figure("power_cuts", n)
	figure("acked_lost", total.lost)
	figure("acked_redelivered", total.redelivered)
	figure("corrupt_delivered", total.corrupt)
}

// cutMoments are when the power is cut: right after a segment of the journal was begun again, after the memtable was
// rotated, after a value log was rewritten and deleted, while space is given back, at some sync, at any time.
var cutMoments = [...]string{"segment", "sync", "reclaim", "time", "rotation", "values"}

// powerCut is one process that is cut off.
type powerCut struct {
	random  *rand.Rand
	plan    proofPlan
	moment  string
	reached string // the moment that it was, in the end
	folder  string
	deaf    string
	platter *platter
	ledger  *proofLedger

	skip    int // so many moments pass
	segment string
	files   map[string]struct{} // those seen before of the kind that the moment is about
}

func (p *powerCut) run(t *testing.T) {
	t.Helper()
	dir := filepath.Join(p.folder, "log")
	copies := filepath.Join(p.folder, "synced")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.Mkdir(copies, 0o700))
	p.plan.Dirs = []string{dir}
	p.platter = newPlatter(dir, copies)
	p.platter.deaf = p.deaf
	p.ledger = newProofLedger()
	p.files = map[string]struct{}{}
	limit := 2 * time.Second
	switch p.moment {
	case "rotation":
		p.plan.Profile, p.plan.Segment, limit = "bulk", 8*limits.MiB, 20*time.Second
		p.skip = 1 // the first memtable is made at open
	case "values":
		p.plan.Profile, p.plan.Segment, limit = "values", 8*limits.MiB, 20*time.Second
		p.plan.Reclaim = true
	case "reclaim":
		p.plan.Reclaim = true
		p.skip = p.random.IntN(12)
	case "segment":
		p.skip = limits.JournalSegments + p.random.IntN(8)
	case "sync":
		if p.skip == 0 {
			p.skip = p.random.IntN(400)
		}
	case "time":
		limit = time.Duration(p.random.IntN(1500)) * time.Millisecond
	}
	p.trace(t, limit)
	require.Empty(t, p.platter.faults)
}

// trace runs the child until it is killed: at the moment, or after so long.
func (p *powerCut) trace(t *testing.T, limit time.Duration) {
	t.Helper()
	args, env := proofCommand(t, p.plan)
	from, to, err := os.Pipe()
	require.NoError(t, err)
	output, err := os.Create(filepath.Join(p.folder, "output"))
	require.NoError(t, err)
	read := make(chan error, 1)
	go func() { read <- readProofLines(from, p.ledger.take) }()
	traced := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the tracer is a thread; it ends with the goroutine
		child, err := startTraced(args, env, []uintptr{0, output.Fd(), output.Fd(), to.Fd()}, p.watch)
		if err == nil {
			stop := time.AfterFunc(limit, func() { _ = syscall.Kill(child.pid, syscall.SIGKILL) })
			err = child.run()
			stop.Stop()
		}
		_ = to.Close()
		traced <- err
	}()
	require.NoError(t, <-traced)
	require.NoError(t, <-read)
	require.NoError(t, from.Close())
	require.NoError(t, output.Close())
	text, err := os.ReadFile(output.Name())
	require.NoError(t, err)
	require.Empty(t, p.ledger.faults, "%s", text)
	if p.reached == "" {
		p.reached = "time"
	}
}

// watch reports whether the moment has come.
func (p *powerCut) watch(c tracedCall) bool {
	path := p.platter.observe(c)
	if moment := p.momentOf(c, path); moment != p.moment {
		return false
	}
	p.skip--
	if p.skip >= 0 {
		return false
	}
	p.reached = p.moment
	return true
}

func (p *powerCut) momentOf(c tracedCall, path string) string {
	if p.moment == "rotation" && p.changed("*.mem", true) {
		return "rotation"
	}
	if p.moment == "values" && p.changed("*.vlog", false) {
		return "values"
	}
	switch {
	case c.number == unix.SYS_UNLINKAT:
		return "reclaim"
	case strings.HasPrefix(filepath.Base(path), "seg-") && !strings.HasSuffix(path, ".new") && path != p.segment:
		p.segment = path
		return "segment"
	}
	return "sync"
}

// changed reports whether there is a new file of the store that matches, or, if not made, one less.
func (p *powerCut) changed(pattern string, made bool) bool {
	found, _ := filepath.Glob(filepath.Join(p.platter.root, "store", pattern))
	now := map[string]struct{}{}
	more := false
	for _, f := range found {
		now[f] = struct{}{}
		more = more || !has(p.files, f)
	}
	less := false
	for f := range p.files {
		less = less || !has(now, f)
	}
	p.files = now
	return made && more || !made && less
}

// check opens what each way of the cut leaves, and returns what is wrong.
func (p *powerCut) check(t *testing.T, total *proofLedger) (wrong []string) {
	t.Helper()
	var dirs, stories []string
	for way := range cutWays {
		to := filepath.Join(p.folder, way.String(), "log")
		story, err := p.platter.cut(p.random, way, to)
		require.NoError(t, err)
		dirs, stories = append(dirs, to), append(stories, story)
	}
	for i, f := range auditFolders(t, proofPlan{Segment: p.plan.Segment}, dirs...) {
		ledger := *p.ledger
		for _, w := range ledger.check(&f, true) {
			wrong = append(wrong, fmt.Sprintf("cut at %s: %s: %s", p.reached, stories[i], w))
		}
		total.lost += ledger.lost
		total.redelivered += ledger.redelivered
		total.corrupt += ledger.corrupt
		total.checked += ledger.checked
	}
	return wrong
}

// A segment of the journal may be used again only once the store is synced. If it is not, or the journal itself isn't, a
// power cut loses what was in it. So the proof has to find a disk that does not hear those syncs.
func TestProofLostPowerFindsSyncsThatAreMissing(t *testing.T) {
	for name, p := range map[string]powerCut{
		"OfTheStoreBeforeASegmentIsReleased": {deaf: ".mem", moment: "segment"},
		"OfTheJournal":                       {deaf: "/seg-0", moment: "sync", skip: 120}, // while that is the only one
		"OfPayloadsBeforeTheirCheckpoint":    {deaf: ".pay", moment: "time", plan: proofPlan{Profile: "bulk"}},
	} {
		t.Run(name, func(t *testing.T) {
			until, seed := proofUntil(t), proofSeed(t)
			random := rand.New(rand.NewPCG(seed, 0))
			for round := 0; round < 40 || time.Now().Before(until); round++ {
				p := p
				p.random, p.folder = random, t.TempDir()
				p.plan = proofPlan{Role: "work", Segment: testSegment, Seed: random.Uint64(), Trace: true, Profile: p.plan.Profile}
				p.run(t)
				if wrong := p.check(t, newProofLedger()); len(wrong) > 0 {
					t.Logf("found in round %d: %.300s", round+1, wrong[0])
					return
				}
				require.NoError(t, os.RemoveAll(p.folder))
			}
			require.Fail(t, "not found")
		})
	}
}
