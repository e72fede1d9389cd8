package substrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/store"
)

// movesPerFrame bounds how many dead letters one frame redrives or discards.
const movesPerFrame = 256

func (d *deadRecord) letter(ln *lane, position uint64) DeadLetter {
	id := d.origin.id.String()
	if d.origin.id == (messageID{}) {
		id = fmt.Sprintf("position-%d", position)
	}
	return DeadLetter{
		ID: id, Tenant: ln.topic.name.Tenant, Topic: ln.topic.name.Topic, Lane: ln.name, Position: position,
		Attempts: d.attempts, Reason: d.reason, Published: d.origin.id.time(), Died: time.Unix(0, d.died),
		Redriven: d.origin.redriven, Operator: d.origin.operator, Receipt: d.receipt, PayloadBytes: d.origin.payloadBytes,
	}
}

// matches reports whether all conditions of the filter that are set hold.
func (f *DeadLetterFilter) matches(d *DeadLetter, now time.Time) bool {
	switch {
	case f.ID != "" && f.ID != d.ID,
		f.LaneSet && f.Lane != d.Lane,
		f.OlderThan > 0 && now.Sub(d.Published) < f.OlderThan,
		f.ReasonContains != "" && !strings.Contains(d.Reason, f.ReasonContains),
		d.Position < f.After || d.Position == f.After && d.Lane <= f.AfterLane:
		return false
	}
	return true
}

// DeadLetters returns the dead letters of a topic that match, by position, at most f.Limit of them.
func (l *Log) DeadLetters(ctx context.Context, tenant, topic string, f DeadLetterFilter) ([]DeadLetter, error) {
	if f.Limit <= 0 || f.Limit > limits.DeadLetterPage {
		f.Limit = limits.DeadLetterPage
	}
	_, letters, err := l.deadLetters(ctx, tenant, topic, f)
	return letters, err
}

// deadLetters reads from the store, once that is up to date. A limit of 0 is none.
func (l *Log) deadLetters(ctx context.Context, tenant, topic string, f DeadLetterFilter) (*topic, []DeadLetter, error) {
	if err := validName(tenant, topic); err != nil {
		return nil, nil, err
	}
	if err := l.submit(ctx, &request{}); err != nil {
		return nil, nil, err
	}
	t := l.find(TopicName{tenant, topic})
	if t == nil {
		return nil, nil, ErrNotFound
	}
	var letters []DeadLetter
	for _, ln := range l.lanes(t) {
		if f.LaneSet && f.Lane != ln.name {
			continue
		}
		more, err := l.deadOf(ctx, ln, f)
		if err != nil {
			return nil, nil, err
		}
		letters = append(letters, more...)
	}
	slices.SortFunc(letters, func(a, b DeadLetter) int {
		return cmp.Or(cmp.Compare(a.Position, b.Position), cmp.Compare(a.Lane, b.Lane))
	})
	if f.Limit > 0 && len(letters) > f.Limit {
		letters = letters[:f.Limit]
	}
	return t, letters, nil
}

// deadOf returns the dead letters of a lane.
func (l *Log) deadOf(ctx context.Context, ln *lane, f DeadLetterFilter) ([]DeadLetter, error) {
	var letters []DeadLetter
	var err error
	now := l.now()
	key := ln.topic.key()
	scanned := l.store.Scan(key.DeadLetters(ln.name), key.Dead(ln.name, f.After), func(k, body []byte, recordErr error) bool {
		if err = ctx.Err(); err != nil {
			return false
		}
		d := &deadRecord{reason: ReasonCorrupt} // its own record doesn't check: it can still be seen and discarded
		if recordErr == nil {
			if read, decodeErr := decodeDead(body); decodeErr == nil {
				d = read
			}
		}
		letter := d.letter(ln, store.Position(k))
		if f.matches(&letter, now) {
			letters = append(letters, letter)
		}
		return f.Limit == 0 || len(letters) < f.Limit
	})
	return letters, errors.Join(err, closedOr(scanned))
}

// lanes returns the default lane and the groups of a topic.
func (l *Log) lanes(t *topic) []*lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	var lanes []*lane
	t.eachLane(func(ln *lane) bool {
		lanes = append(lanes, ln)
		return true
	})
	return lanes
}

// DeadLetter returns one dead letter with its message, or ErrNotFound. Of a message whose record does not check it returns
// the names alone.
func (l *Log) DeadLetter(ctx context.Context, tenant, topic, id string) (DeadLetter, Message, error) {
	t, letters, err := l.deadLetters(ctx, tenant, topic, DeadLetterFilter{ID: id, Limit: 1})
	if err != nil {
		return DeadLetter{}, Message{}, err
	}
	if len(letters) == 0 {
		return DeadLetter{}, Message{}, ErrNotFound
	}
	m, err := l.message(t, letters[0].Position)
	if err != nil && unreadable(err) {
		return letters[0], Message{ID: letters[0].ID, Tenant: tenant, Topic: topic}, nil
	}
	return letters[0], m, err
}

// DeadMessage returns the message of a dead letter that a claim or Options.Expired told of.
//
// Errors: ErrNotFound if it is no more, or its record does not check.
func (l *Log) DeadMessage(ctx context.Context, d DeadLetter) (Message, error) {
	if err := ctx.Err(); err != nil {
		return Message{}, err
	}
	t := l.find(TopicName{d.Tenant, d.Topic})
	if t == nil {
		return Message{}, ErrNotFound
	}
	m, err := l.message(t, d.Position)
	if err != nil && unreadable(err) || err == nil && m.ID != d.ID {
		return Message{}, ErrNotFound
	}
	return m, err
}

// Redrive says which dead letters go back to their lane, and on whose word.
type Redrive struct {
	Filter   DeadLetterFilter
	Operator string // kept with the message, opaque to the log; at most limits.OperatorBytes
	// Admit, if not nil, is asked about each message. Those it returns an error for stay dead, and are counted as refused.
	Admit func(Message) error
	// Note, if not nil, returns what is kept with each message in the place of Operator, under the same bound. An error ends the
	// redrive.
	Note func(Message) (string, error)
}

// RedriveResult counts what a Redrive did.
type RedriveResult struct{ Moved, Refused int }

// Redrive gives dead letters back to their lane: identity and envelope stay, attempts and reason begin anew. Those of a
// default lane that is off are refused. What was moved before an error stays moved.
func (l *Log) Redrive(ctx context.Context, tenant, name string, r Redrive) (RedriveResult, error) {
	var result RedriveResult
	if err := limits.Check(limits.NameKeyBytes, int64(len(r.Operator)), limits.OperatorBytes); err != nil {
		return result, err
	}
	err := l.eachPage(ctx, TopicName{tenant, name}, r.Filter, func(t *topic, letters []DeadLetter) (int, error) {
		admitted := letters[:0]
		notes := map[uint64]string{}
		for i := range letters {
			note, ok, err := l.admitRedrive(t, &letters[i], &r)
			if err != nil {
				return 0, err
			}
			if !ok {
				result.Refused++
				continue
			}
			notes[letters[i].Position] = note
			admitted = append(admitted, letters[i])
		}
		return l.moveDead(ctx, t, admitted, needLittle, func(ln *lane, now time.Time, items []redriven) frame {
			if ln.off() {
				return nil // since they were admitted
			}
			for i := range items {
				items[i].origin.operator = notes[items[i].position]
			}
			return &redriveFrame{name: ln.id(), at: now.UnixNano(), items: items}
		})
	}, &result.Moved)
	return result, err
}

// eachPage calls move for the dead letters of a topic that match, one page after the other, and adds up what it moved.
func (l *Log) eachPage(ctx context.Context, name TopicName, f DeadLetterFilter, move deadMove, moved *int) error {
	left := f.Limit
	if left <= 0 {
		left = math.MaxInt
	}
	for left > 0 {
		f.Limit = min(left, movesPerFrame)
		t, letters, err := l.deadLetters(ctx, name.Tenant, name.Topic, f)
		if err != nil || len(letters) == 0 {
			return err
		}
		last := letters[len(letters)-1]
		left -= len(letters)
		n, err := move(t, letters)
		*moved += n
		if err != nil {
			return err
		}
		f.After, f.AfterLane = last.Position, last.Lane
	}
	return nil
}

// deadMove moves a page of dead letters and returns how many. It may use their slice.
type deadMove func(t *topic, letters []DeadLetter) (int, error)

// admitRedrive reports whether a dead letter may be delivered again, and what is kept with it then. One whose message does not
// check never may.
func (l *Log) admitRedrive(t *topic, d *DeadLetter, r *Redrive) (note string, ok bool, err error) {
	if d.Lane == "" && l.isOff(t.work) {
		return "", false, nil
	}
	m, err := l.message(t, d.Position)
	switch {
	case err != nil && unreadable(err):
		return "", false, nil
	case err != nil:
		return "", false, err
	case r.Admit != nil && r.Admit(m) != nil:
		return "", false, nil //nolint:nilerr // it stays where it is, and the others go on
	case r.Note == nil:
		return r.Operator, true, nil
	}
	if note, err = r.Note(m); err == nil {
		err = limits.Check(limits.NameKeyBytes, int64(len(note)), limits.OperatorBytes)
	}
	return note, err == nil, err
}

// discarded is what a frame says of a dead letter that goes for good.
func (r redriven) discarded() discarded {
	return discarded{r.position, r.origin.payloadBytes, r.origin.priority, r.origin.order}
}

// Discard deletes dead letters, and their messages unless another lane needs them, and returns how many.
func (l *Log) Discard(ctx context.Context, tenant, name string, f DeadLetterFilter) (int, error) {
	count := 0
	err := l.eachPage(ctx, TopicName{tenant, name}, f, func(t *topic, letters []DeadLetter) (int, error) {
		return l.moveDead(ctx, t, letters, needNothing, func(ln *lane, _ time.Time, items []redriven) frame {
			f := &discardFrame{name: ln.id(), keep: l.keeps(t)}
			for _, r := range items {
				f.items = append(f.items, r.discarded())
			}
			return f
		})
	}, &count)
	return count, err
}

// moveDead commits the move of a page of letters, but for those that are dead no more by then, and returns how many. Each
// lane's are one commit.
func (l *Log) moveDead(
	ctx context.Context, t *topic, letters []DeadLetter, n need, move func(*lane, time.Time, []redriven) frame,
) (int, error) {
	byLane := map[string][]DeadLetter{}
	for _, d := range letters {
		byLane[d.Lane] = append(byLane[d.Lane], d)
	}
	moved := 0
	for name, some := range byLane {
		here := 0
		err := l.submit(ctx, &request{bytes: movesPerFrame * movedBytes, need: n, plan: func(now time.Time) (frame, error) {
			ln := l.state.existing(laneName{t.name, name})
			if ln == nil || ln.closing {
				return nil, nil
			}
			items, err := l.stillDead(ln, some)
			if len(items) == 0 || err != nil {
				return nil, err
			}
			f := move(ln, now, items)
			if f != nil {
				here = len(items)
			}
			return f, nil
		}})
		if err != nil {
			return moved, err
		}
		moved += here
	}
	return moved, nil
}

// stillDead is called under Log.mu.
func (l *Log) stillDead(ln *lane, letters []DeadLetter) ([]redriven, error) {
	var items []redriven
	for i := range letters {
		if !ln.dead.has(letters[i].Position) {
			continue
		}
		d, err := l.deadRecord(laneRef{ln, letters[i].Position})
		if err != nil {
			return nil, err
		}
		if d != nil {
			items = append(items, redriven{letters[i].Position, d.origin})
		}
	}
	return items, nil
}

// deadRecord returns the dead letter as of now, or nil. Log.mu is held: what the store doesn't have yet is in the effects
// or in the batch that is being stored.
func (l *Log) deadRecord(r laneRef) (*deadRecord, error) {
	if d, ok := l.state.effects.dead[r]; ok {
		return d, nil
	}
	if l.flushing != nil {
		if d, ok := l.flushing.dead[r]; ok {
			return d, nil
		}
	}
	body, err := l.store.Get(r.deadKey())
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil && unreadable(err) {
		return &deadRecord{reason: ReasonCorrupt}, nil
	}
	if err != nil {
		return nil, err
	}
	return decodeDead(body)
}
