package substrate

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

// TestProofMutilated damages folders of logs whose content is known, one file each: bits flipped anywhere, tails cut or
// zeroed, files emptied or deleted. The log refuses such a folder and says that it is damaged, or it opens it: then all is
// there but what it has quarantined, or but the last steps that the journal had. Nothing is delivered altered, and no
// process dies of it.
func TestProofMutilated(t *testing.T) {
	until, seed := proofUntil(t), proofSeed(t)
	m := mutilator{random: rand.New(rand.NewPCG(seed, 0)), outcomes: map[string]int{}, blocks: newBlocks()}
	for m.n == 0 || time.Now().Before(until) {
		dir := t.TempDir()
		for i, b := range m.bases(t, dir, time.Until(until)) {
			for k := 0; k == 0 || k < batchesOfABase && time.Now().Before(until); k++ {
				m.batch(t, b, filepath.Join(dir, fmt.Sprint("batch", i)))
			}
		}
		require.NoError(t, os.RemoveAll(dir))
	}
	t.Logf("outcomes: %v", m.outcomes)
	figure("mutilations", m.n)
	figure("corrupt_delivered", m.corrupt)
	for _, w := range m.wrong {
		t.Error(w)
	}
}

// mutilator damages copies of folders.
type mutilator struct {
	random   *rand.Rand
	blocks   blocks
	n        int
	corrupt  int
	outcomes map[string]int
	wrong    []string
}

// mutilatedBase is the folder of a log with a known content.
type mutilatedBase struct {
	name   string
	dir    string
	ledger *proofLedger
	ids    map[string]string // of the messages in the folder, by topic and position
}

// bases makes the folders: of a young log that was killed, of one that was closed, of one with tables that was killed, and,
// if there is time, of one that was killed after its memtable was rotated.
func (m *mutilator) bases(t *testing.T, dir string, left time.Duration) (bases []mutilatedBase) {
	t.Helper()
	log, ledger := filepath.Join(dir, "log"), newProofLedger()
	m.work(t, ledger, proofPlan{Dirs: []string{log}}, "")
	bases = append(bases, m.base(t, "young", log, ledger))
	findings := auditFolders(t, proofPlan{Release: true}, log)
	require.Empty(t, ledger.check(&findings[0], false))
	bases = append(bases, m.base(t, "closed", log, ledger))
	m.work(t, ledger, proofPlan{Dirs: []string{log}, Reclaim: true}, "")
	bases = append(bases, m.base(t, "grown", log, ledger))
	if left < 15*time.Second {
		return bases
	}
	bulk := newProofLedger()
	log = filepath.Join(dir, "bulk")
	m.work(t, bulk, proofPlan{Dirs: []string{log}, Profile: "bulk"}, filepath.Join(log, "store", "*.mem"))
	return append(bases, m.base(t, "rotated", log, bulk))
}

// work lets a child work for a while, or until two files match, and kills it.
func (m *mutilator) work(t *testing.T, ledger *proofLedger, p proofPlan, two string) {
	t.Helper()
	p.Role, p.Seed = "work", m.random.Uint64()
	opened := make(chan struct{}, 1)
	c := startProofChild(t, p, func(s proofStep) {
		ledger.take(s)
		if s.Kind == "opened" || s.Fault != "" {
			opened <- struct{}{}
		}
	})
	<-opened
	enough := time.Now().Add(time.Duration(100+m.random.IntN(300)) * time.Millisecond)
	for {
		found, err := filepath.Glob(two)
		require.NoError(t, err)
		if two == "" && time.Now().After(enough) || len(found) == 2 || time.Since(enough) > 20*time.Second {
			break
		}
		time.Sleep(time.Millisecond)
	}
	c.kill(t)
	require.Empty(t, ledger.faults, "%s", c.output)
}

// base keeps a copy of a folder, and looks at what is in it.
func (m *mutilator) base(t *testing.T, name, dir string, ledger *proofLedger) mutilatedBase {
	t.Helper()
	l := *ledger
	b := mutilatedBase{name: name, dir: dir + "-" + name, ledger: &l, ids: map[string]string{}}
	m.copy(t, dir, b.dir)
	look := dir + "-look"
	m.copy(t, dir, look)
	findings := auditFolders(t, proofPlan{}, look)
	check := *ledger
	require.Empty(t, check.check(&findings[0], false))
	for _, f := range findings[0].Found {
		b.ids[fmt.Sprint(f.Topic, f.Position)] = f.ID
	}
	require.NoError(t, os.RemoveAll(look))
	return b
}

func (m *mutilator) copy(t *testing.T, from, to string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		if e.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		return m.blocks.copy(path, target)
	}))
}

const (
	mutilationsAtOnce = 8 // copies that one child opens
	batchesOfABase    = 4
)

func (m *mutilator) batch(t *testing.T, b mutilatedBase, dir string) {
	t.Helper()
	var dirs, stories []string
	for i := range mutilationsAtOnce {
		to := filepath.Join(dir, fmt.Sprint(i))
		m.copy(t, b.dir, to)
		story := m.mutilate(t, to)
		dirs, stories = append(dirs, to), append(stories, b.name+": "+story)
	}
	for i, f := range auditFolders(t, proofPlan{}, dirs...) {
		m.n++
		outcome, wrong := m.judge(b, f)
		kind := strings.Fields(stories[i])
		m.outcomes[strings.Join(kind[1:2], "")+" "+outcome]++
		if len(wrong) > 0 {
			m.wrong = append(m.wrong, fmt.Sprintf("%s: %d faults: %.1200s", stories[i], len(wrong), wrong[0]))
		}
	}
	require.NoError(t, os.RemoveAll(dir))
}

// mutilate damages one file of a log, and says how.
func (m *mutilator) mutilate(t *testing.T, dir string) string {
	t.Helper()
	var files []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error { // in the order of names
		if err == nil && !e.IsDir() {
			files = append(files, path)
		}
		return err
	}))
	path := files[m.random.IntN(len(files))]
	name := strings.TrimPrefix(path, dir+"/")
	switch n := m.random.IntN(20); {
	case n == 0:
		require.NoError(t, os.Remove(path))
		return "deleted " + name
	case n == 1:
		require.NoError(t, os.Truncate(path, 0))
		return "emptied " + name
	case n < 5:
		off := m.offset(t, path)
		require.NoError(t, os.Truncate(path, off))
		return fmt.Sprintf("cut %s at %d", name, off)
	case n < 8:
		off := m.offset(t, path)
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.NoError(t, os.Truncate(path, off))
		require.NoError(t, os.Truncate(path, info.Size()))
		return fmt.Sprintf("zeroed %s from %d", name, off)
	default:
		off, bit := m.offset(t, path), m.random.IntN(8)
		change(t, path, off, func(b byte) byte { return b ^ 1<<bit })
		return fmt.Sprintf("flipped %s byte %d bit %d", name, off, bit)
	}
}

// offset returns a random offset of what a file holds; now and then, of where it has holes.
func (m *mutilator) offset(t *testing.T, path string) int64 {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	var pages []int64
	var last int64
	require.NoError(t, m.blocks.each(f, func(block []byte, off int64) error {
		for i := 0; i < len(block); i += 4 * limits.KiB {
			page := block[i:min(i+4*limits.KiB, len(block))]
			if slices.ContainsFunc(page, func(b byte) bool { return b != 0 }) || m.random.IntN(50) == 0 {
				pages = append(pages, off+int64(i))
			}
		}
		last = off + int64(len(block)) - 1
		return nil
	}))
	if len(pages) == 0 {
		return 0
	}
	if m.random.IntN(4) == 0 { // the ends hold what the rest hangs on
		return max(0, last-int64(m.random.IntN(200)))
	}
	return min(last, pages[m.random.IntN(len(pages))]+int64(m.random.IntN(4*limits.KiB)))
}

// change changes a byte of a file, if it has one there.
func change(t *testing.T, path string, off int64, to func(byte) byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	b := make([]byte, 1)
	if n, _ := f.ReadAt(b, off); n == 0 {
		return
	}
	b[0] = to(b[0])
	_, err = f.WriteAt(b, off)
	require.NoError(t, err)
}

// judge says what came of a mutilation, and what is wrong with that.
func (m *mutilator) judge(b mutilatedBase, f proofFindings) (outcome string, wrong []string) {
	switch {
	case f.Refused != "" && f.Named:
		return "refused", nil
	case f.Refused != "":
		return "refused", []string{"refused without naming the damage: " + f.Refused}
	case f.Fault != "":
		return "died", []string{"it opened, and then: " + f.Fault}
	}
	excused, noticed := map[string]struct{}{}, 0
	found := f.Found[:0]
	for _, d := range f.Found {
		if d.Digest != "" {
			found = append(found, d)
			continue
		}
		noticed++
		excused[d.ID] = struct{}{}
		excused[b.ids[fmt.Sprint(d.Topic, d.Position)]] = struct{}{}
	}
	f.Found = found
	ledger := *b.ledger
	if wrong = ledger.compare(&f, ledger.floors(false), excused); len(wrong) == 0 {
		if noticed > 0 {
			return "quarantined", nil
		}
		return "whole", nil
	}
	m.corrupt += ledger.corrupt
	ledger = *b.ledger
	if wrong = ledger.compare(&f, [proofWorkers]int{}, excused); len(wrong) == 0 {
		return "shortened", nil
	}
	return "silent", wrong
}
