package substrate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/longshore/longshore/limits"
)

// GroupOptions say how a consumer group begins.
type GroupOptions struct {
	Start    Start // counts when the group is made
	Ordering Ordering
}

// Group describes a consumer group.
type Group struct {
	Name        string
	Start       Start  // as it was made
	Cursor      uint64 // the group has met all messages at positions below it
	Lag         int64  // messages that are owed to it and not in flight: fresh or parked
	InFlight    int64  // under a lease, or waiting for a retry
	Leased      int64
	DeadLetters int64
	Skipped     uint64    // messages that retention took from it before it claimed them
	Oldest      time.Time // publish time of the oldest message that it is not done with; zero if none
	Ordering    Ordering
	Paused      bool
}

// CreateGroup makes a consumer group, which makes the topic if there is none, and returns it. A group that exists stays as
// it is: then made is false, and its Start says how it was made.
//
// From then on the group is owed every message of the topic from its start on, whatever others do with it. The first group
// of a topic whose default lane nobody ever claimed from ends what the default lane is owed, unless its mode says
// otherwise: see SetLaneMode.
//
// It counts what is stored, during which the log commits nothing: some 0.3 s for a million messages.
func (l *Log) CreateGroup(ctx context.Context, tenant, topic, group string, o GroupOptions) (g Group, made bool, err error) {
	if err := validGroup(tenant, topic, group); err != nil {
		return Group{}, false, err
	}
	if err := o.Start.validate(); err != nil {
		return Group{}, false, err
	}
	if err := o.Ordering.validate(); err != nil {
		return Group{}, false, err
	}
	name := laneName{TopicName{tenant, topic}, group}
	if _, err := l.findLane(name); err == nil {
		return l.describe(name, false)
	}
	var from counted
	err = l.submit(ctx, &request{
		bytes: groupBytes, need: needLittle,
		before: func(checkpoint) (err error) {
			from, err = l.count(name.topic, o.Start, nil)
			return err
		},
		plan: func(time.Time) (frame, error) {
			f, err := l.planGroup(name, o, from)
			made = f != nil
			return f, err
		},
	})
	if err != nil {
		return Group{}, false, err
	}
	return l.describe(name, made)
}

// groupBytes bounds the frames of groups.
const groupBytes = entryOverheadBytes + limits.GroupBytes + 64

func validGroup(tenant, topic, group string) error {
	if err := validName(tenant, topic); err != nil {
		return err
	}
	return ValidGroup(group)
}

func (o Ordering) validate() error {
	if o > OrderTopic {
		return fmt.Errorf("ordering %d: want none, by key or by topic", o)
	}
	return nil
}

func (l *Log) planGroup(name laneName, o GroupOptions, from counted) (frame, error) {
	t := l.state.topics[name.topic]
	if t == nil {
		if err := l.roomForTopic(name.topic.Tenant); err != nil {
			return nil, err
		}
	} else if ln := t.groups[name.lane]; ln != nil {
		if ln.closing {
			return nil, ErrGroupEnding
		}
		return nil, nil
	} else if err := limits.Check(limits.NameGroups, int64(len(t.groups))+1, limits.GroupsPerTopic); err != nil {
		return nil, err
	}
	if t != nil && t.mode == LaneAuto && !t.claimed && t.work.owes {
		if err := t.roomForSpan(l.state.nextPosition); err != nil {
			return nil, err
		}
	}
	return &groupFrame{name: name, what: groupMade, start: o.Start, ordering: o.Ordering, cursor: from.first, ready: from.n}, nil
}

func (l *Log) roomForTopic(tenant string) error { return l.roomForTopics(tenant, 1) }

// roomForSpan refuses to end what the default lane is owed if that was done too often ahead of its cursor.
func (t *topic) roomForSpan(next uint64) error {
	return limits.Check(limits.NameSkippedSpans, int64(len(t.work.skippedAhead(next)))+1, limits.SkippedSpans)
}

func (l *Log) describe(name laneName, made bool) (Group, bool, error) {
	ln, err := l.findLane(name)
	if err != nil {
		return Group{}, false, err
	}
	return l.group(ln), made, nil
}

func (l *Log) group(ln *lane) Group {
	oldest := l.oldest(ln)
	l.mu.Lock()
	defer l.mu.Unlock()
	return Group{
		Name: ln.name, Start: ln.start, Cursor: ln.base().cursor, Lag: ln.ready() + ln.parkedN,
		InFlight: int64(len(ln.flights)), Leased: ln.leased, DeadLetters: ln.deadN, Skipped: ln.gap, Oldest: oldest,
		Ordering: ln.ordering, Paused: ln.paused,
	}
}

// Groups returns the consumer groups of a topic by name, or ErrNotFound.
func (l *Log) Groups(tenant, topic string) ([]Group, error) {
	if err := validName(tenant, topic); err != nil {
		return nil, err
	}
	t := l.find(TopicName{tenant, topic})
	if t == nil {
		return nil, ErrNotFound
	}
	var groups []Group
	for _, ln := range l.lanes(t) {
		if ln.name != "" && !l.isClosing(ln) {
			groups = append(groups, l.group(ln))
		}
	}
	slices.SortFunc(groups, func(a, b Group) int { return strings.Compare(a.Name, b.Name) })
	return groups, nil
}

func (l *Log) isClosing(ln *lane) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return ln.closing
}

// ResetGroup moves a group's cursor to a start. Its leases are lost, and what it has in flight is owed to it again only if
// it lies behind the cursor. Dead letters stay as they are, and are not delivered again but by Redrive.
func (l *Log) ResetGroup(ctx context.Context, tenant, topic, group string, to Start) error {
	if err := validGroup(tenant, topic, group); err != nil {
		return err
	}
	if err := to.validate(); err != nil {
		return err
	}
	name := laneName{TopicName{tenant, topic}, group}
	for {
		again := false
		var from counted
		err := l.submit(ctx, &request{
			bytes: groupBytes + limits.SweepPositions*parkedBytes + 10*limits.DeadAside, need: needLittle,
			before: func(checkpoint) (err error) {
				ln := l.state.existing(name)
				if ln == nil || len(ln.flights)+int(ln.parkedN) > 0 {
					return nil
				}
				from, err = l.count(name.topic, to, ln.dead)
				return err
			},
			plan: func(time.Time) (frame, error) {
				ln := l.state.existing(name)
				if ln == nil || ln.closing {
					return nil, ErrNoGroup
				}
				if again = len(ln.flights)+int(ln.parkedN) > 0; again {
					return ln.planVoid(), nil
				}
				if err := limits.Check("dead letters of a group that is reset", int64(len(from.aside)), limits.DeadAside); err != nil {
					return nil, err
				}
				return &groupFrame{name: name, what: groupReset, cursor: from.first, ready: from.n, aside: from.aside}, nil
			},
		})
		if err != nil || !again {
			return err
		}
	}
}

// planVoid returns the frame that ends some of what is in flight or parked.
func (ln *lane) planVoid() *groupFrame {
	f := &groupFrame{name: ln.id(), what: groupVoided}
	for p := range ln.flights {
		if len(f.voided) == limits.SweepPositions {
			return f
		}
		f.voided = append(f.voided, parked{position: p})
	}
	for _, q := range ln.keys {
		for _, p := range q.pending {
			if len(f.voided) == limits.SweepPositions {
				return f
			}
			if ln.parked.has(p) {
				f.voided = append(f.voided, parked{position: p, key: q.hash})
			}
		}
	}
	return f
}

// DeleteGroup ends a group, with its dead letters and its fence marks. It does nothing if there is none. Messages that nobody else needs go
// a little later.
func (l *Log) DeleteGroup(ctx context.Context, tenant, topic, group string) error {
	if err := validGroup(tenant, topic, group); err != nil {
		return err
	}
	name := laneName{TopicName{tenant, topic}, group}
	err := l.submit(ctx, &request{bytes: groupBytes, need: needNothing, plan: func(time.Time) (frame, error) {
		ln := l.state.existing(name)
		if ln == nil || ln.closing {
			return nil, nil
		}
		return &laneFrame{name: name, paused: ln.paused, closing: true, ordering: ln.ordering}, nil
	}})
	for gone := false; err == nil && !gone; {
		gone, err = l.dismantle(ctx, name)
	}
	return err
}

// dismantle takes away a part of what a lane that ended still has, and reports whether there was nothing left.
func (l *Log) dismantle(ctx context.Context, name laneName) (gone bool, err error) {
	err = l.submit(ctx, &request{bytes: dismantleBytes, need: needNothing, plan: func(time.Time) (frame, error) {
		f, err := l.planDismantle(l.state.existing(name))
		gone = f == nil && err == nil
		return f, err
	}})
	return gone, err
}

const dismantleBytes = groupBytes + limits.SweepPositions*parkedBytes + unfenceBytes

// ended reports whether the lane is to be taken apart: a group that is being deleted, or a default lane that is off.
func (ln *lane) ended() bool {
	return ln.closing || ln.off() && len(ln.flights)+int(ln.parkedN) > 0
}

// planDismantle returns the next frame that takes a lane apart, or nil. Log.mu is held.
func (l *Log) planDismantle(ln *lane) (frame, error) {
	if ln == nil || !ln.ended() {
		return nil, nil
	}
	if f := ln.planVoid(); len(f.voided) > 0 {
		return f, nil
	}
	if f := ln.planUnfence(nil); f != nil {
		return f, nil
	}
	if ln.deadN == 0 {
		return &groupFrame{name: ln.id(), what: groupEnded}, nil
	}
	f := &discardFrame{name: ln.id(), keep: true} // the sweep drops the messages
	for _, p := range ln.dead.some(movesPerFrame) {
		d, err := l.deadRecord(laneRef{ln, p})
		if err != nil {
			return nil, err
		}
		if d == nil {
			d = &deadRecord{} // not reached: what is dead has a record
		}
		f.items = append(f.items, redriven{p, d.origin}.discarded())
	}
	return f, nil
}

// SetOrdering says how a lane is ordered, from the messages on that it meets next. lane is the name of a group, or "" for
// the default lane.
func (l *Log) SetOrdering(ctx context.Context, tenant, topic, lane string, o Ordering) error {
	if err := o.validate(); err != nil {
		return err
	}
	return l.setLane(ctx, tenant, topic, lane, func(f *laneFrame) { f.ordering = o })
}

// PauseLane stops or resumes deliveries of one lane, durably. lane is the name of a group, or "" for the default lane.
func (l *Log) PauseLane(ctx context.Context, tenant, topic, lane string, paused bool) error {
	return l.setLane(ctx, tenant, topic, lane, func(f *laneFrame) { f.paused = paused })
}

func (l *Log) setLane(ctx context.Context, tenant, topic, lane string, change func(*laneFrame)) error {
	if err := validName(tenant, topic); err != nil {
		return err
	}
	if err := validLane(lane); err != nil {
		return err
	}
	name := laneName{TopicName{tenant, topic}, lane}
	return l.submit(ctx, &request{bytes: groupBytes, need: needLittle, plan: func(time.Time) (frame, error) {
		f := &laneFrame{name: name}
		ln := l.state.existing(name)
		switch {
		case ln != nil && !ln.closing:
			f.paused, f.ordering = ln.paused, ln.ordering
		case lane != "":
			return nil, ErrNoGroup
		default:
			if err := l.roomForTopic(tenant); err != nil {
				return nil, err
			}
		}
		before := *f
		if change(f); ln != nil && *f == before {
			return nil, nil
		}
		return f, nil
	}})
}
