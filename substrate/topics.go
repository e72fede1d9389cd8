package substrate

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/longshore/longshore/limits"
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
		} else if err := limits.Check(limits.NameTopics, int64(l.state.perTenant[tenant])+1, limits.TopicsPerTenant); err != nil {
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
	l.admission.config = config
	return nil
}

// Policy returns the policy in force for a topic, which need not exist.
func (l *Log) Policy(tenant, topic string) (PolicyView, error) {
	if err := validName(tenant, topic); err != nil {
		return PolicyView{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.admission.view(l.state, TopicName{tenant, topic}), nil
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
	fresh := l.oldestFresh(t)
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Stats{
		Tenant: t.name.Tenant, Topic: t.name.Topic,
		Ready: t.ready, Delayed: t.hidden + int64(len(t.flights)) - t.leased, Leased: t.leased,
		DeadLetters: t.dead, Unflushed: l.unflushed[t.name], Paused: t.paused, Oldest: fresh,
		Published: t.published, Acked: t.acked, Buried: t.buried, Redriven: t.redriven, Discarded: t.discarded,
	}
	for _, f := range t.flights {
		if f.origin.id == (messageID{}) {
			continue // its record doesn't check
		}
		if at := f.origin.id.time(); s.Oldest.IsZero() || at.Before(s.Oldest) {
			s.Oldest = at
		}
	}
	return s
}

// oldestCached is the publish time of the first message from a cursor on, as of when so many messages were dead.
type oldestCached struct {
	cursor, buried uint64
	at             time.Time
}

// oldestReads bounds how many messages are read to find one whose record checks.
const oldestReads = 8

// oldestOf returns the publish time of the first entry whose record checks, or zero.
func oldestOf(entries []*entry) time.Time {
	for _, e := range entries {
		if e.origin.id != (messageID{}) {
			return e.origin.id.time()
		}
	}
	return time.Time{}
}

// oldestFresh returns the publish time of the first message that was never claimed, or zero. It reads a few
// messages, once for each place of the cursor.
func (l *Log) oldestFresh(t *topic) time.Time {
	l.mu.Lock()
	if t.ready == 0 {
		l.mu.Unlock()
		return time.Time{}
	}
	if at := oldestOf(t.window); !at.IsZero() {
		l.mu.Unlock()
		return at
	}
	cached, now := t.oldest, oldestCached{cursor: t.cursor, buried: t.buried}
	l.mu.Unlock()
	if now.at = cached.at; cached == now && !now.at.IsZero() {
		return now.at
	}
	entries, err := l.fresh(context.Background(), t, now.cursor, oldestReads)
	at := oldestOf(entries)
	if err != nil || at.IsZero() {
		return time.Time{} // closed, claimed since, or no record checks
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now.at = at
	t.oldest = now
	return at
}

// Peek returns up to n messages of the topic's backlog with positions above after, by position, without leasing them.
func (l *Log) Peek(ctx context.Context, tenant, topic string, after uint64, n int) ([]Peeked, error) {
	if err := validName(tenant, topic); err != nil {
		return nil, err
	}
	t := l.find(TopicName{tenant, topic})
	if t == nil {
		return nil, ErrNotFound
	}
	n = min(max(n, 0), limits.DeadLetterPage)
	peeked := l.peekFlights(t, after)
	fresh, err := l.fresh(ctx, t, after+1, n-len(peeked))
	if err != nil {
		return nil, err
	}
	for _, e := range fresh {
		peeked = append(peeked, Peeked{Position: e.position, State: "ready"})
	}
	peeked = peeked[:min(n, len(peeked))]
	kept := peeked[:0]
	for _, p := range peeked {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
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

// fresh returns the first n or more of the messages from a position on that were never claimed, if there are so many.
// What is dead among them is read and left out.
func (l *Log) fresh(ctx context.Context, t *topic, from uint64, n int) (found []*entry, err error) {
	for all := false; !all && len(found) < n; {
		l.mu.Lock()
		from = max(from, t.cursor)
		view := l.lookAhead(t, from, n)
		l.mu.Unlock()
		var entries []*entry
		if entries, all, err = l.read(t, view, from, n); err != nil {
			return nil, err
		}
		for _, e := range entries {
			if !l.isAside(t, e.position) {
				found = append(found, e)
			}
			from = e.position + 1
		}
		if err = ctx.Err(); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// isAside reports whether the message at position is not fresh, although it is behind the cursor: of those that are read,
// the fresh ones are in the window.
func (l *Log) isAside(t *topic, position uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if position < t.unread {
		_, fresh := slices.BinarySearchFunc(t.window, position, func(e *entry, p uint64) int { return cmp.Compare(e.position, p) })
		return !fresh
	}
	_, aside := t.aside[position]
	return aside
}

func (l *Log) peekFlights(t *topic, after uint64) []Peeked {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now().UnixNano()
	var peeked []Peeked
	for _, f := range t.flights {
		if f.position <= after {
			continue
		}
		p := Peeked{Position: f.position, State: "ready"}
		if f.at > now {
			p.State = "delayed"
			if f.leased {
				p.State = "leased"
			}
		}
		peeked = append(peeked, p)
	}
	slices.SortFunc(peeked, func(a, b Peeked) int { return cmp.Compare(a.Position, b.Position) })
	return peeked
}
