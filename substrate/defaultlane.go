package substrate

import (
	"context"
	"time"
)

// UseDefaultLane says that somebody takes messages from a topic's default lane, as a first claim does. It makes the topic
// if there is none. From then on a lane in the mode LaneAuto is owed messages whatever groups the topic gets, so that a
// consumer of both kinds misses nothing if this is called before CreateGroup. It returns ErrLaneOff if the lane is off.
//
// Like a claim it is written, and on disk with what is flushed next.
func (l *Log) UseDefaultLane(ctx context.Context, tenant, topic string) error {
	if err := validName(tenant, topic); err != nil {
		return err
	}
	name := TopicName{tenant, topic}
	if l.usesDefaultLane(name) {
		return nil
	}
	return l.submit(ctx, &request{bytes: groupBytes, need: needLittle, plan: func(now time.Time) (frame, error) {
		t := l.state.topics[name]
		switch {
		case t == nil:
			if err := l.roomForTopic(tenant); err != nil {
				return nil, err
			}
		case t.mode == LaneOff:
			return nil, ErrLaneOff
		}
		return &claimFrame{name: laneName{topic: name}, until: now.UnixNano(), died: now.UnixNano(), first: true}, nil
	}})
}

// usesDefaultLane reports whether UseDefaultLane has nothing to do.
func (l *Log) usesDefaultLane(name TopicName) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.state.topics[name]
	return t != nil && t.claimed && t.work.owes && t.mode != LaneOff
}
