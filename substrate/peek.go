package substrate

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/store"
)

// Peek returns up to n messages of a lane's backlog, without leasing them: those that are due again or parked by position,
// then the fresh ones by priority and position, then the delayed ones by when they become visible. after leaves out
// positions up to it, and then delayed messages are shown only beside a page that is not full.
func (l *Log) Peek(ctx context.Context, tenant, topic, lane string, after uint64, n int) ([]Peeked, error) {
	if err := validName(tenant, topic); err != nil {
		return nil, err
	}
	if err := validLane(lane); err != nil {
		return nil, err
	}
	ln, err := l.findLane(laneName{TopicName{tenant, topic}, lane})
	if err != nil {
		return nil, err
	}
	if ln == nil {
		return nil, ErrNotFound
	}
	n = min(max(n, 0), limits.DeadLetterPage)
	peeked := l.peekMet(ln, after, n)
	for _, st := range l.streamsOf(ln) {
		if len(peeked) >= n {
			break
		}
		fresh, err := l.freshFrom(st, after+1, n-len(peeked))
		if err != nil {
			return nil, err
		}
		for _, e := range fresh {
			peeked = append(peeked, Peeked{Position: e.position, State: "ready"})
		}
	}
	peeked, err = l.withMessages(ctx, ln.topic, peeked[:min(n, len(peeked))])
	if err != nil || lane != "" {
		return peeked, err
	}
	hidden, err := l.peekHidden(ctx, ln.topic, n-len(peeked))
	return append(peeked, hidden...), err
}

// peekMet returns what is in flight or parked.
func (l *Log) peekMet(ln *lane, after uint64, n int) []Peeked {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now().UnixNano()
	var peeked []Peeked
	for _, f := range ln.flights {
		if f.position > after {
			peeked = append(peeked, f.peek(now))
		}
	}
	for _, p := range ln.parked.some(n) {
		if p > after {
			peeked = append(peeked, Peeked{Position: p, State: "parked"})
		}
	}
	slices.SortFunc(peeked, func(a, b Peeked) int { return cmp.Compare(a.Position, b.Position) })
	return peeked
}

func (f *flight) peek(now int64) Peeked {
	p := Peeked{Position: f.position, State: "ready", Attempts: f.attempt}
	switch {
	case f.at > now && f.leased:
		p.State, p.At = "leased", time.Unix(0, f.at)
	case f.at > now:
		p.State, p.At = "delayed", time.Unix(0, f.at)
	case f.index == notTimed:
		p.State = "parked"
	}
	return p
}

// withMessages reads the messages, and leaves out those that are gone or do not check.
func (l *Log) withMessages(ctx context.Context, t *topic, peeked []Peeked) ([]Peeked, error) {
	kept := peeked[:0]
	for _, p := range peeked {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var err error
		p.Message, err = l.message(t, p.Position)
		switch {
		case errors.Is(err, ErrClosed):
			return nil, err
		case err != nil:
			continue // done since, or it does not check
		}
		kept = append(kept, p)
	}
	return kept, nil
}

// peekHidden returns messages of a topic that are not visible yet, the next that are first.
func (l *Log) peekHidden(ctx context.Context, t *topic, n int) ([]Peeked, error) {
	l.mu.Lock()
	hidden := t.hidden
	l.mu.Unlock()
	if hidden == 0 || n <= 0 {
		return nil, nil
	}
	if err := l.submit(ctx, &request{}); err != nil { // brings the store up to date
		return nil, err
	}
	var next []*delayed
	err := l.store.Scan(t.key().AllDelayed(), t.key().AllDelayed(), func(key, body []byte, err error) bool {
		if err == nil {
			if d, err := decodeDelayed(t, int64(store.Due(key)), body); err == nil {
				next = append(next, d)
			}
		}
		return len(next) < n
	})
	if err != nil {
		return nil, closedOr(err)
	}
	var peeked []Peeked
	for _, d := range next {
		body, err := l.store.Get(d.bodyKey())
		if errors.Is(err, store.ErrClosed) {
			return nil, ErrClosed
		}
		m, err := decodeMessage(t.name, body)
		if err != nil {
			continue // visible since, or it does not check
		}
		peeked = append(peeked, Peeked{State: "delayed", At: time.Unix(0, d.due), Message: m})
	}
	return peeked, nil
}
