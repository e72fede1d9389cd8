package substrate

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/journal"
	"github.com/longshore/longshore/substrate/internal/store"
)

// recoverLog returns a log whose store holds all that its journal does, and whose journal begins anew.
func recoverLog(o Options, st *store.Store) (*Log, error) {
	r, err := load(st)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(o.Dir, "journal")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	j, err := journal.Open(journal.Options{
		Dir: dir, SegmentBytes: o.SegmentBytes, Segments: limits.JournalSegments,
	}, r.checkpoint.frame, r.replay)
	if err != nil {
		return nil, err
	}
	if j.Fresh() && r.checkpoint.frame > 0 { // a log that was killed before its first frame may have no journal yet
		return nil, errors.Join(fmt.Errorf("%w: the store has the frames up to %d, and there is no journal to tell of later ones",
			ErrJournalMissing, r.checkpoint.frame), j.Close())
	}
	if err := r.finish(j); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	r.state.effects = newEffects()
	return &Log{
		store:     st,
		journal:   j,
		opened:    time.Now(),
		recovered: r.recovered(),
		expired:   o.Expired,
		space: space{
			low: o.StorageLowBytes, reserve: o.StorageReserveBytes,
			free: func() (uint64, error) { return freeBytes(o.Dir) },
		},
		mint:           newMint(r.checkpoint.opening),
		maxCommitBytes: j.MaxFrameBytes(),
		state:          r.state,
		admission:      newAdmission(),
	}, nil
}

// recovery brings state and store to the end of the journal.
type recovery struct {
	store      *store.Store
	state      *state
	checkpoint checkpoint
	frames     int // replayed
}

// recovered sums up what was found.
func (r *recovery) recovered() Recovered {
	sum := Recovered{Topics: len(r.state.topics), Frames: r.frames}
	for _, t := range r.state.topics {
		sum.Backlog += t.backlog()
		sum.DeadLetters += t.dead
	}
	return sum
}

// load reads the state as of the last checkpoint.
func load(st *store.Store) (*recovery, error) {
	r := &recovery{store: st, state: newState()}
	r.state.effects.recovering = true
	body, err := st.Checkpoint()
	switch {
	case errors.Is(err, store.ErrNotFound):
		r.checkpoint.nextPosition = 1
	case err != nil:
		return nil, err
	default:
		if r.checkpoint, err = decodeCheckpoint(body); err != nil {
			return nil, err
		}
	}
	r.state.nextPosition = r.checkpoint.nextPosition
	if err := st.DropFrom(r.checkpoint.nextPosition); err != nil {
		return nil, err
	}
	return r, st.Topics(r.loadTopic)
}

func (r *recovery) loadTopic(tenant, name string, body []byte, err error) error {
	if err != nil {
		return fmt.Errorf("topic %s of tenant %s: %w", name, tenant, err)
	}
	t, err := decodeTopic(TopicName{tenant, name}, body)
	if err != nil {
		return fmt.Errorf("topic %s of tenant %s: %w", name, tenant, err)
	}
	t.whole = t.ready == 0
	t.unread = t.cursor
	r.state.policies = r.state.policies || t.stored != (Policy{})
	r.state.insert(t)
	return errors.Join(r.loadFlights(t), r.loadAside(t), r.loadDelayed(t), r.loadExpiries(t), r.loadKeys(t))
}

// each decodes the records under prefix, and stops at the first fault.
func (r *recovery) each(t *topic, prefix []byte, decode func(key, body []byte) error) error {
	var fault error
	err := r.store.Scan(prefix, prefix, func(key, body []byte, err error) bool {
		if err == nil {
			err = decode(key, body)
		}
		if err != nil {
			fault = fmt.Errorf("topic %s of tenant %s: %w", t.name.Topic, t.name.Tenant, err)
		}
		return err == nil
	})
	return errors.Join(fault, err)
}

func (r *recovery) loadFlights(t *topic) error {
	return r.each(t, t.key().Lanes(""), func(key, body []byte) error {
		f, err := decodeFlight(store.Position(key), body)
		if err != nil {
			return err
		}
		f.stored = true
		t.addFlight(f)
		if f.position >= t.cursor {
			t.aside[f.position] = struct{}{}
		}
		return nil
	})
}

// loadAside finds the dead letters that died before their turn came.
func (r *recovery) loadAside(t *topic) error {
	key := t.key()
	return r.store.Scan(key.DeadLetters(""), key.Dead("", t.cursor), func(key, _ []byte, _ error) bool {
		t.aside[store.Position(key)] = struct{}{}
		return true
	})
}

func (r *recovery) loadDelayed(t *topic) error {
	return r.each(t, t.key().AllDelayed(), func(key, body []byte) error {
		d, err := decodeDelayed(t, int64(store.Due(key)), body)
		if err != nil {
			return err
		}
		r.state.addDelayed(d)
		return nil
	})
}

func (r *recovery) loadExpiries(t *topic) error {
	return r.each(t, t.key().Expiries(), func(key, body []byte) error {
		e, err := decodeExpiry(t, store.Position(key), body)
		if err != nil {
			return err
		}
		t.expiring[e.position] = e
		r.state.expiries.push(e)
		return nil
	})
}

func (r *recovery) loadKeys(t *topic) error {
	err := r.each(t, t.key().Idempotencies(), func(key, body []byte) error {
		f, err := decodeFirstUse(keyHash(key[len(key)-len(keyHash{}):]), body)
		if err != nil {
			return err
		}
		t.keys.add(f)
		return nil
	})
	slices.SortFunc(t.keys.order, func(a, b *firstUse) int { return cmp.Compare(a.until, b.until) })
	return err
}

// replay applies one frame. It is called in the order of the journal.
func (r *recovery) replay(f journal.Frame) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("frame %d does not fit the state before it: %v", f.Number, p)
		}
	}()
	decoded, err := decodeFrame(f.Kind, f.Body)
	if err != nil {
		return fmt.Errorf("frame %d: %w", f.Number, err)
	}
	decoded.apply(r.state, f.Number)
	r.checkpoint.frame = f.Number
	r.frames++
	if r.state.effects.full() {
		return r.flush()
	}
	return nil
}

// flush stores the effects so far. Between two frames the state is exactly that of the frames up to the checkpoint.
func (r *recovery) flush() error {
	r.checkpoint.nextPosition = r.state.nextPosition
	b := r.state.effects.cut(r.checkpoint)
	if _, err := r.store.Write(b.early, b.last, b.record); err != nil {
		return err
	}
	b.stored()
	r.state.effects = newEffects()
	r.state.effects.recovering = true
	return nil
}

// finish voids the leases of the process before, stores everything, durably, and begins the journal anew.
func (r *recovery) finish(j *journal.Journal) error {
	now := time.Now().UnixNano()
	for _, t := range r.state.topics {
		for _, f := range t.flights {
			if !f.leased {
				continue
			}
			if r.state.effects.full() { // a crash here voids the rest of them at the next Open
				if err := r.flush(); err != nil {
					return err
				}
			}
			t.moveFlight(f, false, now)
			r.state.effects.putFlight(t, f)
		}
	}
	r.checkpoint.opening++
	if r.checkpoint.opening >= 1<<(64-idCounterBits) {
		return errors.New("the log was opened too often: its message ids are used up")
	}
	if err := r.flush(); err != nil {
		return err
	}
	if err := r.store.Sync(); err != nil {
		return err
	}
	clear(r.state.touched)
	return j.Restart()
}
