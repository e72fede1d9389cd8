package substrate

import (
	"context"
	"slices"
	"strings"
	"time"
)

// Pause stops or resumes deliveries of a topic, durably. While it is paused, publishes and settlements go on. It makes the
// topic if there is none.
func (l *Log) Pause(ctx context.Context, tenant, topic string, paused bool) error {
	return l.setTopic(ctx, tenant, topic, func(f *topicFrame) { f.paused = paused })
}

// SetPolicy stores the fields of p that are set; they win over the host config until UnsetPolicy. It makes the topic if
// there is none, and holds from the next publish on.
func (l *Log) SetPolicy(ctx context.Context, tenant, topic string, p Policy) error {
	if err := p.validate(); err != nil {
		return err
	}
	return l.setTopic(ctx, tenant, topic, func(f *topicFrame) { f.policy = f.policy.merged(p) })
}

// UnsetPolicy forgets what SetPolicy stored for the topic.
func (l *Log) UnsetPolicy(ctx context.Context, tenant, topic string) error {
	return l.setTopic(ctx, tenant, topic, func(f *topicFrame) { f.policy = Policy{} })
}

// setTopic commits a change of what an operator sets.
func (l *Log) setTopic(ctx context.Context, tenant, topic string, change func(*topicFrame)) error {
	if err := validName(tenant, topic); err != nil {
		return err
	}
	name := TopicName{tenant, topic}
	return l.submit(ctx, &request{bytes: entryOverheadBytes, need: needLittle, plan: func(time.Time) (frame, error) {
		f := &topicFrame{name: name}
		if t := l.state.topics[name]; t != nil {
			f.paused, f.policy = t.paused, t.stored
		} else if err := l.roomForTopic(tenant); err != nil {
			return nil, err
		}
		change(f)
		return f, nil
	}})
}

// SetDefaults replaces the policies of the host config. They are not stored.
func (l *Log) SetDefaults(policies map[TopicName]Policy) error {
	config := make(map[TopicName]Policy, len(policies))
	for name, p := range policies {
		if err := validName(name.Tenant, name.Topic); err != nil {
			return err
		}
		if err := p.validate(); err != nil {
			return err
		}
		config[name] = p
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.admission.configure(config)
	return nil
}

// Policy returns the policy in force for a topic, which need not exist.
func (l *Log) Policy(tenant, topic string) (PolicyView, error) {
	if err := validName(tenant, topic); err != nil {
		return PolicyView{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return *l.admission.view(l.state, TopicName{tenant, topic}), nil
}

// Stats returns the counters of a topic, and whether it exists.
func (l *Log) Stats(tenant, topic string) (Stats, bool) {
	t := l.find(TopicName{tenant, topic})
	if t == nil {
		return Stats{}, false
	}
	return l.stats(t), true
}

// Topics returns the counters of all topics, by tenant and name.
func (l *Log) Topics() []Stats {
	l.mu.Lock()
	topics := make([]*topic, 0, len(l.state.topics))
	for _, t := range l.state.topics {
		topics = append(topics, t)
	}
	l.mu.Unlock()
	slices.SortFunc(topics, func(a, b *topic) int {
		if c := strings.Compare(a.name.Tenant, b.name.Tenant); c != 0 {
			return c
		}
		return strings.Compare(a.name.Topic, b.name.Topic)
	})
	stats := make([]Stats, len(topics))
	for i, t := range topics {
		stats[i] = l.stats(t)
	}
	return stats
}

func (l *Log) stats(t *topic) Stats {
	oldest := l.oldest(t.work)
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := t.work
	return Stats{
		Tenant: t.name.Tenant, Topic: t.name.Topic,
		Ready: ln.ready(), Parked: ln.parkedN, Delayed: t.hidden + int64(len(ln.flights)) - ln.leased, Leased: ln.leased,
		DeadLetters: t.deadLetters(), Unflushed: l.unflushed[t.name], Paused: t.paused, Oldest: oldest,
		LaneMode: t.mode, LanePaused: ln.paused, Ordering: ln.ordering,
		Groups: len(t.groups), PinnedBytes: t.pinned, Quarantined: t.entries, Skipped: t.skipped,
		Published: t.published, Acked: t.acked, Buried: t.buried, Redriven: t.redriven, Discarded: t.discarded,
	}
}

// deadLetters counts those of all lanes.
func (t *topic) deadLetters() (n int64) {
	t.eachLane(func(ln *lane) bool {
		n += ln.deadN
		return true
	})
	return n
}
