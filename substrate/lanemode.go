package substrate

import (
	"context"
	"fmt"
	"time"
)

// LaneMode says when a topic's default lane is owed the messages that become visible.
type LaneMode uint8

// The modes.
const (
	LaneAuto LaneMode = iota // while the topic has no groups, and ever after somebody claimed from it
	LaneOn                   // always
	LaneOff                  // never
)

// off reports whether the lane is a default lane that is off.
func (ln *lane) off() bool { return ln.name == "" && ln.topic.mode == LaneOff }

func (l *Log) isOff(ln *lane) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return ln.off()
}

// SetLaneMode says when the topic's default lane is owed messages, from now on. It makes the topic if there is none. What
// the lane has been owed stays, unless the mode is LaneOff: then it is dropped but for dead letters, and dropped says how many
// messages that were. Their leases are lost.
func (l *Log) SetLaneMode(ctx context.Context, tenant, topic string, mode LaneMode) (dropped int64, err error) {
	if err := validName(tenant, topic); err != nil {
		return 0, err
	}
	if mode > LaneOff {
		return 0, fmt.Errorf("default lane: mode %d: want auto, on or off", mode)
	}
	name := TopicName{tenant, topic}
	err = l.submit(ctx, &request{bytes: groupBytes, need: needLittle, plan: func(time.Time) (frame, error) {
		f := &modeFrame{name: name, mode: mode, owes: mode != LaneOff}
		t := l.state.topics[name]
		if t == nil {
			return f, l.roomForTopic(tenant)
		}
		if mode == LaneAuto {
			f.owes = t.claimed || len(t.groups) == 0
		}
		if t.work.owes && !f.owes {
			if err := t.roomForSpan(l.state.nextPosition); err != nil {
				return nil, err
			}
		}
		if mode == LaneOff {
			dropped = t.work.backlog()
		}
		if t.mode == mode && t.work.owes == f.owes && dropped == 0 {
			return nil, nil
		}
		return f, nil
	}})
	for gone := mode != LaneOff; err == nil && !gone; {
		gone, err = l.dismantle(ctx, laneName{topic: name})
	}
	return dropped, err
}
