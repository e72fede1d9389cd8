package substrate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/longshore/longshore/substrate/internal/failpoint"
	"github.com/longshore/longshore/substrate/internal/journal"
	"github.com/longshore/longshore/substrate/internal/store"
)

// recoverLog returns a log whose store holds all that its journal does, and whose journal begins anew.
func recoverLog(o Options, st *store.Store) (*Log, error) {
	r, err := load(st)
	if err != nil {
		return nil, err
	}
	if err := failpoint.Hit("recover.loaded"); err != nil {
		return nil, err
	}
	k, err := readMarks(o.Dir)
	if err != nil {
		return nil, err
	}
	if r.ran, err = readRunning(o.Dir); err != nil {
		return nil, err
	}
	j, err := r.openJournal(o, &k)
	if err != nil {
		return nil, err
	}
	m, err := k.open(mark{
		epoch: j.Epoch(), durable: j.Synced(), written: j.Synced(), position: r.state.nextPosition, opening: r.checkpoint.opening,
	})
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	running, err := openRunning(o.Dir)
	if err != nil {
		return nil, errors.Join(err, m.file.Close(), j.Close())
	}
	r.state.effects = newEffects()
	return &Log{
		store:     st,
		journal:   j,
		mark:      m,
		running:   running,
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

	stored  uint64      // the checkpoint's next position, as it was loaded
	ahead   lastMessage // the last message of the store at that position or after it
	dropped bool        // those are deleted

	ran     map[runningNote]struct{} // what ran when the process before ended
	crashed int                      // flights among that
	deleted []string                 // tenants whose erasure is finished here

	damaged []*delayed // whose records do not check, so that only the due time and the number are known
}

// recovered sums up what was found.
func (r *recovery) recovered() Recovered {
	sum := Recovered{Topics: len(r.state.topics), Frames: r.frames, Crashed: r.crashed, Deleted: r.deleted}
	for _, t := range r.state.topics {
		sum.Backlog += t.work.backlog() + t.hidden
		t.eachLane(func(ln *lane) bool {
			sum.DeadLetters += ln.deadN
			return true
		})
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
	r.stored = r.checkpoint.nextPosition
	if err := r.eraseLeft(); err != nil {
		return nil, err
	}
	if r.ahead.tenant, r.ahead.topic, r.ahead.position, err = st.LastFrom(r.stored); err != nil {
		return nil, err
	}
	return r, errors.Join(st.Topics(r.loadTopic), st.Buckets(r.loadBucket))
}

func (r *recovery) loadTopic(tenant, name string, body []byte, err error) error {
	if err != nil {
		return fmt.Errorf("topic %s of tenant %s: %w", name, tenant, err)
	}
	t, err := decodeTopic(TopicName{tenant, name}, body)
	if err != nil {
		return fmt.Errorf("topic %s of tenant %s: %w", name, tenant, err)
	}
	r.state.policies = r.state.policies || t.stored != (Policy{})
	r.state.insert(t)
	r.state.watched[t] = struct{}{}
	if err := r.loadGroups(t); err != nil {
		return err
	}
	t.eachLane(func(ln *lane) bool {
		err = errors.Join(r.loadFlights(ln), r.loadDead(ln), r.loadFences(ln))
		return err == nil
	})
	return errors.Join(err, r.loadQuarantine(t), r.loadDelayed(t), r.loadExpiries(t), r.loadKeys(t), r.count(t))
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

func (r *recovery) loadGroups(t *topic) error {
	return r.each(t, t.key().Groups(), func(key, body []byte) error {
		ln, err := decodeGroup(t, t.key().GroupName(key), body)
		if err != nil {
			return err
		}
		if t.groups == nil {
			t.groups = map[string]*lane{}
		}
		t.groups[ln.name] = ln
		return nil
	})
}

// loadFlights reads what is in flight and what is parked.
func (r *recovery) loadFlights(ln *lane) error {
	return r.each(ln.topic, ln.topic.key().Lanes(ln.name), func(key, body []byte) error {
		position := store.Position(key)
		f, hash, err := decodeFlight(position, body)
		if err != nil {
			return err
		}
		if f == nil {
			ln.park(position, hash)
			return nil
		}
		f.stored = true
		ln.addFlight(f)
		ln.setAside(position, &f.origin)
		return nil
	})
}

// loadDead counts the dead letters, some of which died before their turn came.
func (r *recovery) loadDead(ln *lane) error {
	key := ln.topic.key()
	return r.store.Scan(key.DeadLetters(ln.name), key.DeadLetters(ln.name), func(key, body []byte, err error) bool {
		var o origin
		if err == nil {
			if d, err := decodeDead(body); err == nil {
				o = d.origin
			}
		}
		position := store.Position(key)
		ln.dead.add(position)
		ln.deadN++
		ln.setAside(position, &o)
		return true
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
	if err := failpoint.Hit("recover.replay"); err != nil {
		return err
	}
	if e, is := decoded.(*eraseFrame); is {
		return r.replayErase(e, f.Number)
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
	if err := failpoint.Hit("recover.flush"); err != nil {
		return err
	}
	if err := r.dropAhead(); err != nil {
		return err
	}
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
	if err := failpoint.Hit("recover.finish"); err != nil {
		return err
	}
	r.quarantineDamaged()
	r.endErasures()
	if err := r.voidLeases(time.Now().UnixNano()); err != nil {
		return err
	}
	r.checkpoint.opening++
	if r.checkpoint.opening >= 1<<(64-idCounterBits) {
		return errors.New("the log was opened too often: its message ids are used up")
	}
	if err := r.flush(); err != nil {
		return err
	}
	if err := failpoint.Hit("recover.flushed"); err != nil {
		return err
	}
	if err := r.store.Sync(); err != nil {
		return err
	}
	if err := r.countValues(); err != nil {
		return err
	}
	clear(r.state.touched)
	if err := j.Restart(); err != nil {
		return err
	}
	return failpoint.Hit("recover.restarted")
}

func (r *recovery) voidLeases(now int64) (err error) {
	for _, t := range r.state.topics {
		t.eachLane(func(ln *lane) bool {
			for _, f := range ln.flights {
				if !f.leased {
					continue
				}
				if r.state.effects.full() { // a crash here voids the rest of them at the next Open
					if err = r.flush(); err != nil {
						return false
					}
				}
				r.void(ln, f, now)
			}
			return true
		})
		if err != nil {
			return err
		}
	}
	return nil
}
