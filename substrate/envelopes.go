package substrate

import (
	"context"
	"math"
)

// EachEnvelope calls yield with the envelope of every message that is stored, of all topics: those that wait, are in flight,
// delayed or dead, and those that are kept. Of what is published or settled meanwhile it may leave out any. Records that do
// not check, which no consumer is given, are left out. It returns how many it looked at. It reads the whole log.
func (l *Log) EachEnvelope(ctx context.Context, yield func(envelope []byte) error) (int, error) {
	looked := 0
	for _, s := range l.Topics() {
		n, err := l.envelopesOf(ctx, TopicName{s.Tenant, s.Topic}, yield)
		looked += n
		if err != nil {
			return looked, err
		}
	}
	return looked, nil
}

// envelopesOf reads what is delayed first: what becomes visible meanwhile is met after that again.
func (l *Log) envelopesOf(ctx context.Context, name TopicName, yield func([]byte) error) (looked int, err error) {
	t := l.find(name)
	if t == nil {
		return 0, nil
	}
	hidden, err := l.peekHidden(ctx, t, math.MaxInt)
	if err != nil {
		return 0, err
	}
	for _, p := range hidden {
		if err := yield(p.Message.Envelope); err != nil {
			return looked, err
		}
		looked++
	}
	r, err := l.Replay(ctx, name.Tenant, name.Topic, Start{Kind: StartEarliest})
	if err != nil {
		return looked, err
	}
	for m, err := range r.Messages(ctx) {
		if err != nil {
			return looked, err
		}
		if err := yield(m.Message.Envelope); err != nil {
			return looked, err
		}
		looked++
	}
	return looked, nil
}
