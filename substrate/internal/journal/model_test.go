package journal

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// model drives a journal beside the truth: what was appended, what was confirmed, and what a store holds.
type model struct {
	t       *rapid.T
	disk    *crashDisk
	options Options
	journal *Journal
	bodies  map[uint64]string // of every frame that may come back
	durable uint64            // confirmed
	applied uint64            // what the store would say after a power cut: durable there, at least what was released
	token   int               // makes every body ever written different
}

// group makes frames with bodies that never occurred before.
func (m *model) group() []Frame {
	lengths := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 60), rapid.IntRange(0, 4000)), 1, 6).Draw(m.t, "lengths")
	var frames []Frame
	var total int64
	for i, n := range lengths {
		m.token++
		body := fmt.Appendf(nil, "%d:%*d", m.token, n, 0)
		if total += FrameBytes(int64(len(body))); total > m.journal.options.SegmentBytes-pageBytes {
			break
		}
		frames = append(frames, Frame{Number: m.journal.Next() + uint64(i), Kind: uint8(m.token), Body: body})
	}
	return frames
}

// reserve makes room for frames, as a committer does that waits for its applier.
func (m *model) reserve(frames []Frame) {
	if err := m.journal.Reserve(groupBytes(frames)); err != nil {
		require.ErrorIs(m.t, err, ErrFull)
		m.apply(m.journal.Next() - 1)
		require.NoError(m.t, m.journal.Reserve(groupBytes(frames)), "all is released: the ring moves on")
	}
}

// apply brings the store up to a frame and releases it.
func (m *model) apply(upTo uint64) {
	m.applied = max(m.applied, upTo)
	m.journal.Release(m.applied)
}

func (m *model) append(durable bool) {
	frames := m.group()
	m.reserve(frames)
	require.NoError(m.t, m.journal.Append(frames, durable, nil))
	for _, f := range frames {
		m.bodies[f.Number] = string(f.Body)
	}
	if durable {
		m.durable = m.journal.Next() - 1
	}
	require.GreaterOrEqual(m.t, m.journal.Synced(), m.durable)
}

// failedAppend appends a group that meets a fault. None of its frames may ever come back.
func (m *model) failedAppend() {
	frames := m.group()
	m.reserve(frames)
	n := rapid.IntRange(0, 1).Draw(m.t, "fault after")
	if rapid.Bool().Draw(m.t, "sync fails") {
		m.disk.failSync = n
	} else {
		m.disk.failWrite = n
	}
	err := m.journal.Append(frames, true, nil)
	fired := m.disk.failSync < 0 && m.disk.failWrite < 0
	m.disk.failSync, m.disk.failWrite = -1, -1
	if !fired {
		require.NoError(m.t, err)
		for _, f := range frames {
			m.bodies[f.Number] = string(f.Body)
		}
		m.durable = m.journal.Next() - 1
		return
	}
	require.ErrorIs(m.t, err, errInjected)
}

func (m *model) powerCut() {
	keep := rapid.SampledFrom([]int{0, 50, 90, 100}).Draw(m.t, "percent kept")
	seed := rapid.Uint64().Draw(m.t, "seed")
	random := rand.New(rand.NewPCG(seed, 0))
	m.disk.powerCut(func() bool { return random.IntN(100) < keep })
}

// reopen opens the journal, possibly several times and through more crashes, until a Restart succeeds.
func (m *model) reopen(whole bool) {
	for {
		last := m.open(whole)
		step := rapid.IntRange(0, 7).Draw(m.t, "step")
		if step == 0 { // the process is killed before its store is durable
			continue
		}
		if step == 1 { // or the power is cut then
			m.powerCut()
			whole = false
			continue
		}
		m.applied = max(m.applied, last)
		m.forget(m.applied)
		switch step {
		case 2: // the process is killed before Restart
			whole = false
			continue
		case 3: // Restart fails, and the power with it
			m.disk.failSync = 0
		case 4: // the power is cut within Restart
			m.disk.failWrite = 0
		default:
			require.NoError(m.t, m.journal.Restart())
			m.durable = max(m.durable, m.applied)
			return
		}
		require.ErrorIs(m.t, m.journal.Restart(), errInjected)
		m.powerCut()
		whole = false
	}
}

// open opens the journal and returns the last number that is then known. The frames replayed must be those appended last
// under their numbers, without a gap, to the last confirmed one at least, and to the last of all if whole.
func (m *model) open(whole bool) (last uint64) {
	last = m.applied
	j, err := openOn(m.disk, m.options, m.applied, func(f Frame) error {
		require.Equal(m.t, last+1, f.Number)
		require.Contains(m.t, m.bodies, f.Number, "a ghost")
		require.Equal(m.t, m.bodies[f.Number], string(f.Body))
		last = f.Number
		return nil
	})
	require.NoError(m.t, err)
	require.GreaterOrEqual(m.t, last, m.durable, "confirmed frames are lost")
	if whole {
		require.NotContains(m.t, m.bodies, last+1, "a kill loses nothing that was written")
	}
	require.Equal(m.t, last+1, j.Next())
	m.journal = j
	return last
}

// forget drops the frames above last: they were lost, so their numbers are free.
func (m *model) forget(last uint64) {
	for n := range m.bodies {
		if n > last {
			delete(m.bodies, n)
		}
	}
}

// TestCrashes runs random histories of appends, releases, faults, kills and power cuts against the model.
func TestCrashes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{t: t, disk: newCrashDisk(), bodies: map[uint64]string{}}
		m.options = Options{
			SegmentBytes: pageBytes * rapid.Int64Range(3, 5).Draw(t, "pages"),
			Segments:     rapid.IntRange(2, 4).Draw(t, "segments"),
		}
		m.reopen(true)
		t.Repeat(map[string]func(*rapid.T){
			"append":  func(*rapid.T) { m.append(true) },
			"write":   func(*rapid.T) { m.append(false) },
			"release": func(t *rapid.T) { m.apply(rapid.Uint64Range(0, m.journal.Next()-1).Draw(t, "up to")) },
			"sync": func(*rapid.T) {
				require.NoError(t, m.journal.Sync())
				m.durable = m.journal.Next() - 1
			},
			"storeAhead": func(*rapid.T) { m.applied = m.journal.Next() - 1 },
			"kill":       func(*rapid.T) { m.reopen(true) },
			"close": func(*rapid.T) {
				require.NoError(t, m.journal.Close())
				m.durable = m.journal.Next() - 1
				m.powerCut()
				m.reopen(true)
			},
			"powerCut": func(*rapid.T) {
				m.powerCut()
				m.reopen(false)
			},
			"failure": func(t *rapid.T) {
				m.failedAppend()
				if cut := rapid.Bool().Draw(t, "power cut"); cut {
					m.powerCut()
					m.reopen(false)
				} else {
					m.reopen(true)
				}
			},
		})
	})
}
