package substrate

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/longshore/longshore/limits"
)

// A lane keeps, for each fence key, the highest token that it accepted. A message that carries a lower one was published by
// somebody whose tenure is over, and must not have an effect after what the next holder did.

// FenceMark is the highest token that a lane accepted for a fence key.
type FenceMark struct {
	Key    string
	Token  uint64
	Raised time.Time // when it was raised, or found equal last; the latter to within a minute
}

// fenceRefresh is the share of limits.FenceIdle after which a mark that is found equal is noted as in use.
const fenceRefresh = 10

// Bounds of what fences take in frames.
const (
	fenceBytes     = entryOverheadBytes + limits.KeyBytes
	fencesPerFrame = 256 // forgotten by one frame
	unfenceBytes   = entryOverheadBytes + fencesPerFrame*(limits.KeyBytes+2)
)

// RaiseFence raises the mark of a lane for a fence key to a token, before a message that carries it is handled under lease.
// An equal token passes. A lower one is ErrStaleFence, and changes nothing.
//
// The mark is in the journal when the call returns, but not flushed, as for a claim: it outlives the process. What is
// committed later is never durable without it, so that no durable settlement of what it let pass can be without its mark; a
// power cut can only take the mark and all that came after it.
//
// A lane has at most limits.FenceMarks. At that bound a new key takes the place of those that were not used for
// limits.FenceIdle, which are looked for once in limits.FenceSweep; if there are none the error is a *limits.Error.
//
// Errors: ErrLeaseLost, ErrStaleFence, an *OptionError.
func (l *Log) RaiseFence(ctx context.Context, lease Lease, f Fence) error {
	if f.Key == "" {
		return &OptionError{"fence", "a key"}
	}
	o := MessageOptions{Fence: f}
	if err := o.validate(); err != nil {
		return err
	}
	err := l.raiseFence(ctx, lease, f)
	if full := (&limits.Error{Name: limits.NameFenceMarks}); errors.Is(err, full) {
		if err := l.dropIdleFences(ctx, lease); err != nil {
			return err
		}
		err = l.raiseFence(ctx, lease, f)
	}
	return err
}

func (l *Log) raiseFence(ctx context.Context, lease Lease, f Fence) error {
	written := func(uint64) bool { return true }
	return l.submit(ctx, &request{bytes: fenceBytes, need: needLittle, prompt: written, plan: func(now time.Time) (frame, error) {
		ln := l.holds(lease)
		if ln == nil || ln.closing {
			return nil, ErrLeaseLost
		}
		if err := ln.checkFence(lease, f); err != nil {
			return nil, err
		}
		m := ln.fences[f.Key]
		switch {
		case m == nil:
			if err := limits.Check(limits.NameFenceMarks, int64(len(ln.fences))+1, limits.FenceMarks); err != nil {
				return nil, err
			}
		case m.token == f.Token && now.UnixNano()-m.at < int64(limits.FenceIdle/fenceRefresh):
			return nil, nil
		}
		return &fenceFrame{name: ln.id(), fence: f, at: now.UnixNano()}, nil
	}})
}

// checkFence returns ErrStaleFence if the lane accepted a higher token than that of a fence.
func (ln *lane) checkFence(lease Lease, f Fence) error {
	if m := ln.fences[f.Key]; m != nil && m.token > f.Token {
		return &StaleFenceError{Lease: lease, Fence: f, Mark: m.token}
	}
	return nil
}

// dropIdleFences makes room for new marks in the lane of a lease, if it is time to look for idle ones.
func (l *Log) dropIdleFences(ctx context.Context, lease Lease) error {
	return l.submit(ctx, &request{bytes: unfenceBytes, need: needNothing, plan: func(now time.Time) (frame, error) {
		ln := l.holds(lease)
		switch {
		case ln == nil || ln.closing:
			return nil, ErrLeaseLost
		case len(ln.fences) < limits.FenceMarks || now.Sub(ln.fencesLooked) < limits.FenceSweep:
			return nil, nil
		}
		before := now.Add(-limits.FenceIdle).UnixNano()
		f := ln.planUnfence(func(m *fenceMark) bool { return m.at <= before })
		if f == nil || len(f.keys) < fencesPerFrame { // there are no more
			ln.fencesLooked = now
		}
		if f == nil {
			return nil, nil
		}
		return f, nil
	}})
}

// planUnfence returns the frame that forgets some of the marks for which which holds, all if it is nil; or nil.
func (ln *lane) planUnfence(which func(*fenceMark) bool) *unfenceFrame {
	f := &unfenceFrame{name: ln.id()}
	for key, m := range ln.fences {
		if len(f.keys) == fencesPerFrame {
			break
		}
		if which == nil || which(m) {
			f.keys = append(f.keys, key)
		}
	}
	if len(f.keys) == 0 {
		return nil
	}
	return f
}

// Fences returns up to n of the fence marks of a lane, those whose keys come after a key, in the order of the keys. lane is
// the name of a group, or "" for the default lane. An n that is not positive, or above limits.FencePage, is that.
//
// Errors: ErrNotFound if there is no such topic, ErrNoGroup if it has no such group.
func (l *Log) Fences(tenant, topic, lane, after string, n int) ([]FenceMark, error) {
	ln, err := l.knownLane(tenant, topic, lane)
	if err != nil {
		return nil, err
	}
	if n <= 0 || n > limits.FencePage {
		n = limits.FencePage
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	keys := slices.Sorted(maps.Keys(ln.fences))
	from, found := slices.BinarySearch(keys, after)
	if found {
		from++
	}
	keys = keys[from:min(len(keys), from+n)]
	marks := make([]FenceMark, len(keys))
	for i, key := range keys {
		marks[i] = ln.fences[key].of(key)
	}
	return marks, nil
}

// of returns the mark of a fence key as others see it.
func (m *fenceMark) of(key string) FenceMark {
	return FenceMark{Key: key, Token: m.token, Raised: time.Unix(0, m.at)}
}

// knownLane returns the named lane of a topic that exists.
func (l *Log) knownLane(tenant, topic, lane string) (*lane, error) {
	if err := validName(tenant, topic); err != nil {
		return nil, err
	}
	if err := validLane(lane); err != nil {
		return nil, err
	}
	ln, err := l.findLane(laneName{TopicName{tenant, topic}, lane})
	if ln == nil && err == nil {
		err = ErrNotFound
	}
	return ln, err
}

// ResetFences forgets the mark of a lane for a fence key, or, if key is "", all that it has when the call begins: the next
// token is accepted whatever it is. It returns how many that were; what was forgotten before an error stays so.
//
// Errors: those of Fences.
func (l *Log) ResetFences(ctx context.Context, tenant, topic, lane, key string) (int, error) {
	ln, err := l.knownLane(tenant, topic, lane)
	if err != nil {
		return 0, err
	}
	keys := []string{key}
	if key == "" {
		l.mu.Lock()
		keys = slices.Collect(maps.Keys(ln.fences))
		l.mu.Unlock()
	}
	count := 0
	for some := range slices.Chunk(keys, fencesPerFrame) {
		n, err := l.resetFences(ctx, ln.id(), some)
		count += n
		if err != nil {
			return count, err
		}
	}
	return count, nil
}

func (l *Log) resetFences(ctx context.Context, name laneName, keys []string) (n int, err error) {
	err = l.submit(ctx, &request{bytes: unfenceBytes, need: needNothing, plan: func(time.Time) (frame, error) {
		ln := l.state.existing(name)
		if ln == nil || ln.closing {
			return nil, ErrNoGroup
		}
		f := &unfenceFrame{name: name}
		for _, key := range keys {
			if ln.fences[key] != nil {
				f.keys = append(f.keys, key)
			}
		}
		if n = len(f.keys); n == 0 {
			return nil, nil
		}
		return f, nil
	}})
	return n, err
}
