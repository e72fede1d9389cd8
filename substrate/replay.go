package substrate

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/store"
)

// PositionError says that a position was asked for that the log has not given yet.
type PositionError struct {
	Position uint64
	Next     uint64 // the next position that is given
}

// Error implements error.
func (e *PositionError) Error() string {
	return fmt.Sprintf("position %d is not given yet: the next is %d", e.Position, e.Next)
}

// Gap is a range of positions of which nothing is stored in a topic any more, or never was: positions are the log's, and
// what lies in the range may be other topics'.
type Gap struct {
	From uint64
	To   uint64 // not in the range: reading goes on there
}

// Stored is a message of a topic as it is stored.
type Stored struct {
	Position uint64
	Message  Message // its slices are the caller's
}

// Replay reads what is stored of a topic, as of when it was made. It is for one goroutine.
type Replay struct {
	log       *Log
	topic     *topic
	from, end uint64
	gap       Gap
	damaged   uint64
}

// Replay prepares to read the messages of a topic that are stored for whatever reason: those that wait, are in flight or
// dead, and those that are kept; also some that were settled just now. It reads from a start on, which can't be
// StartLatest, up to what is acknowledged now, and moves no cursor and takes no lease. Delayed messages are not among them
// until they become visible.
//
// It refuses with *NameError, ErrNotFound for a topic that does not exist, *PositionError for a start that is not given yet,
// and ErrClosed. A start below all that is stored is told by Gap.
func (l *Log) Replay(ctx context.Context, tenant, topic string, from Start) (*Replay, error) {
	if err := validName(tenant, topic); err != nil {
		return nil, err
	}
	if err := from.validate(); err != nil {
		return nil, err
	}
	if from.Kind == StartLatest {
		return nil, errors.New("replay: start is latest: want earliest, a position or a time")
	}
	t := l.find(TopicName{tenant, topic})
	if t == nil {
		return nil, ErrNotFound
	}
	if err := l.readable(ctx); err != nil {
		return nil, err
	}
	r := &Replay{log: l, topic: t, from: 1, end: l.tails.next()}
	if err := r.seek(from); err != nil {
		return nil, err
	}
	return r, nil
}

// seek finds where the replay begins.
func (r *Replay) seek(from Start) (err error) {
	switch from.Kind {
	case StartPosition:
		if r.from = max(from.Position, 1); r.from > r.end {
			return &PositionError{Position: from.Position, Next: r.end}
		}
		first, err := r.log.firstStored(r.topic, r.from, r.end)
		if err == nil && first > r.from {
			r.gap = Gap{From: r.from, To: first}
		}
		return err
	case StartTime:
		r.from, err = r.log.storedSince(r.topic, from)
		return err
	case StartEarliest, StartLatest:
	}
	return nil
}

// Gap returns the range that was asked for and lies below all that is stored, and whether there is one. If nothing is stored
// at all, it ends at End.
func (r *Replay) Gap() (Gap, bool) { return r.gap, r.gap.To > 0 }

// End returns the position below which the replay ends: the start of one that goes on.
func (r *Replay) End() uint64 { return r.end }

// Damaged returns how many messages were left out so far because their records do not check.
func (r *Replay) Damaged() uint64 { return r.damaged }

// Messages returns the messages, in the order of their positions. It holds no lock and nothing of the store while it
// yields, and a bounded number of messages in memory. An error is the last that it yields: ctx's, ErrClosed, or a fault of the
// disk.
func (r *Replay) Messages(ctx context.Context) iter.Seq2[Stored, error] {
	return func(yield func(Stored, error) bool) {
		r.damaged = 0
		for from := r.from; from < r.end; {
			p, err := r.log.page(ctx, r.topic, from, r.end)
			if err != nil {
				yield(Stored{}, err)
				return
			}
			for _, m := range p.messages {
				if !yield(m, nil) {
					return
				}
			}
			r.damaged += p.damaged
			from = p.next
		}
	}
}

// page is a piece of what is stored.
type page struct {
	topic    *topic
	messages []Stored
	damaged  uint64 // left out, because their records do not check
	next     uint64 // where the next page begins

	full          bool
	looked, bytes int
}

// page reads messages from one position up to another, as many as a page holds.
func (l *Log) page(ctx context.Context, t *topic, from, to uint64) (*page, error) {
	if err := l.readable(ctx); err != nil {
		return nil, err
	}
	p := &page{topic: t, next: to}
	stored, young := l.youngFrom(t, from, to)
	if from < stored {
		if err := l.addStored(p, from, stored); err != nil {
			return nil, err
		}
	}
	if err := l.addYoung(p, young); err != nil {
		return nil, err
	}
	if !p.full && len(young) == limits.ReplayPageMessages { // there may be more
		p.next = young[len(young)-1].position + 1
	}
	return p, nil
}

// addStored adds messages of the store.
func (l *Log) addStored(p *page, from, to uint64) error {
	var fault error
	key := p.topic.key()
	scanned := l.store.Scan(key.Messages(), key.Message(from), func(k, body []byte, err error) bool {
		position := store.Position(k)
		switch {
		case position >= to:
			return false
		case err != nil && !unreadable(err):
			fault = err
			return false
		}
		return p.add(position, body, err)
	})
	return errors.Join(fault, closedOr(scanned))
}

// addYoung adds messages that are in memory, or were when they were looked up.
func (l *Log) addYoung(p *page, young []*entry) error {
	for _, e := range young {
		if p.full {
			return nil
		}
		body, err := l.recordOf(p.topic, e)
		switch {
		case errors.Is(err, store.ErrNotFound): // done since
			continue
		case err != nil && !unreadable(err):
			return err
		}
		p.add(e.position, body, err)
	}
	return nil
}

// add adds a message whose record is the caller's, and reports whether there was room for it.
func (p *page) add(position uint64, body []byte, bad error) bool {
	if p.looked == limits.ReplayPageMessages || p.bytes > 0 && p.bytes+len(body) > limits.ReplayPageBytes {
		p.full, p.next = true, position
		return false
	}
	p.looked++
	p.bytes += len(body)
	var m Message
	if bad == nil {
		m, bad = decodeMessage(p.topic.name, body)
	}
	if bad != nil {
		p.damaged++
		return true
	}
	p.messages = append(p.messages, Stored{Position: position, Message: m})
	return true
}

// youngFrom returns the next messages from a position up to another that are in memory, at most a page of them, and the
// position below which all others are in the store.
func (l *Log) youngFrom(t *topic, from, to uint64) (stored uint64, young []*entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	stored = to
	if len(t.tail) > 0 {
		stored = min(stored, t.tail[0].position)
	}
	for _, e := range t.tail[t.tailFrom(from):] {
		if e.position >= to || len(young) == limits.ReplayPageMessages {
			break
		}
		if !e.gone {
			young = append(young, e)
		}
	}
	return stored, young
}

// recordOf returns a copy of the record of a message that is or was in memory.
func (l *Log) recordOf(t *topic, e *entry) ([]byte, error) {
	body := e.body
	if body == nil {
		var err error
		if body, err = l.body(t, e.position); err != nil {
			return nil, err
		}
	}
	return append([]byte(nil), body...), nil
}

// readable returns why nothing can be read any more.
func (l *Log) readable(ctx context.Context) error {
	select {
	case <-l.stop:
		return ErrClosed
	case <-l.failed:
		return ErrClosed
	default:
		return ctx.Err()
	}
}

// firstStored returns the first position from one up to another that is stored in a topic, or the latter.
func (l *Log) firstStored(t *topic, from, end uint64) (uint64, error) {
	_, young := l.youngFrom(t, from, end) // before the store is read: meanwhile they may get there
	first := end
	if len(young) > 0 {
		first = young[0].position
	}
	err := l.store.Keys(t.key().Messages(), t.key().Message(from), func(key []byte) bool {
		first = min(first, store.Position(key))
		return false
	})
	return first, closedOr(err)
}

// storedSince returns the position of the first message that is stored and was published at a time or later, as near as
// positionAt, or one above all of them.
func (l *Log) storedSince(t *topic, from Start) (uint64, error) {
	first := uint64(math.MaxUint64)
	l.mu.Lock()
	for _, e := range t.tail {
		if !e.gone && !e.origin.id.time().Before(from.Time) {
			first = e.position
			break
		}
	}
	l.mu.Unlock()
	position, err := l.positionAt(t, from.Time)
	return min(first, position), err
}
