package substrate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/longshore/longshore/limits"
)

// modelAttempts is after how many attempts a claim of the model buries.
const modelAttempts = 3

// modelMsg is what the model knows of a message.
type modelMsg struct {
	id       string
	name     TopicName
	payload  string
	born     time.Time // by its id
	state    string    // "hidden", "fresh", "waiting", "leased", "dead"
	position uint64
	at       time.Time // hidden: when it is due; waiting: from when it may be claimed; leased: the end
	expires  time.Time // zero if never
	deadline bool
	attempts int
	reason   string
	redriven int
	lease    Lease
}

type modelKey struct{ principal, key string }

// modelUse is the first use of a key.
type modelUse struct {
	receipt Receipt
	until   time.Time
}

// modelTopic is what the model knows of a topic.
type modelTopic struct {
	paused   bool
	depth    int64 // 0 is no bound
	bytes    int64
	keys     map[modelKey]modelUse
	reserved int64

	published, acked, buried, redriven, discarded uint64
}

// modelLog is a log as its users see it.
type modelLog struct {
	next     uint64 // position
	topics   map[TopicName]*modelTopic
	messages map[string]*modelMsg
}

func newModelLog() *modelLog {
	return &modelLog{next: 1, topics: map[TopicName]*modelTopic{}, messages: map[string]*modelMsg{}}
}

func (m *modelLog) clone() *modelLog {
	c := newModelLog()
	c.next = m.next
	for name, t := range m.topics {
		copied := *t
		copied.keys = maps.Clone(t.keys)
		c.topics[name] = &copied
	}
	for id, msg := range m.messages {
		copied := *msg
		c.messages[id] = &copied
	}
	return c
}

func (m *modelLog) topic(name TopicName) *modelTopic {
	t := m.topics[name]
	if t == nil {
		t = &modelTopic{bytes: limits.MessageBytes, keys: map[modelKey]modelUse{}}
		m.topics[name] = t
	}
	return t
}

// of returns the messages of a topic in one of the states, by position.
func (m *modelLog) of(name TopicName, states ...string) (found []*modelMsg) {
	for _, msg := range m.messages {
		if msg.name == name && slices.Contains(states, msg.state) {
			found = append(found, msg)
		}
	}
	slices.SortFunc(found, func(a, b *modelMsg) int { return cmp.Or(cmp.Compare(a.position, b.position), cmp.Compare(a.id, b.id)) })
	return found
}

func (m *modelLog) backlog(name TopicName) int64 {
	return int64(len(m.of(name, "hidden", "fresh", "waiting", "leased")))
}

// pass lets time pass until now: what is due becomes visible, and what expired dies.
func (m *modelLog) pass(now time.Time) {
	var due []*modelMsg
	for _, msg := range m.messages {
		if msg.state == "hidden" && !msg.at.After(now) {
			due = append(due, msg)
		}
	}
	slices.SortFunc(due, func(a, b *modelMsg) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.id[14:], b.id[14:])) })
	for _, msg := range due {
		msg.state, msg.position = "fresh", m.next
		m.next++
	}
	for _, msg := range m.messages {
		running := msg.state == "leased" && msg.at.After(now)
		if msg.expires.IsZero() || msg.expires.After(now) || running || msg.state == "hidden" || msg.state == "dead" {
			continue
		}
		m.kill(msg, map[bool]string{true: ReasonDeadline, false: ReasonTTLExpired}[msg.deadline])
	}
}

func (m *modelLog) kill(msg *modelMsg, reason string) {
	msg.state, msg.reason, msg.expires = "dead", reason, time.Time{}
	m.topic(msg.name).buried++
}

// restart voids the leases, whose attempts don't count since no handler ran, and forgets the reservations.
func (m *modelLog) restart(now time.Time) {
	for _, t := range m.topics {
		t.reserved = 0
	}
	for _, msg := range m.messages {
		if msg.state == "leased" {
			msg.state, msg.at = "waiting", now
			msg.attempts--
		}
	}
}

// refuses returns the word that the error of a publish has to contain, or "".
func (m *modelLog) refuses(msgs []Message) string {
	type demand struct{ n, largest int64 }
	demands := map[TopicName]demand{}
	var names []TopicName
	for i := range msgs {
		name := TopicName{msgs[i].Tenant, msgs[i].Topic}
		if msgs[i].Reservation != nil {
			continue
		}
		d, seen := demands[name]
		if !seen {
			names = append(names, name)
		}
		demands[name] = demand{d.n + 1, max(d.largest, int64(len(msgs[i].Payload)))}
	}
	for _, name := range names {
		d, t := demands[name], m.topics[name]
		switch {
		case t == nil:
		case d.largest > t.bytes:
			return string(limits.NameMessageBytes)
		case t.depth > 0 && m.backlog(name)+t.reserved+d.n > t.depth:
			return "depth exceeded"
		}
	}
	return ""
}

// firsts returns the messages that are no duplicates, and the receipts of all.
func (m *modelLog) firsts(msgs []Message, now time.Time) (firsts []Message, receipts []Receipt) {
	position := m.next
	type use struct {
		name TopicName
		key  modelKey
	}
	seen := map[use]Receipt{}
	for i := range msgs {
		o := &msgs[i].Options
		u := use{TopicName{msgs[i].Tenant, msgs[i].Topic}, modelKey{o.Principal, o.IdempotencyKey}}
		if o.IdempotencyKey != "" {
			first, is := seen[u]
			if t := m.topics[u.name]; !is && t != nil && t.keys[u.key].until.After(now) {
				first, is = t.keys[u.key].receipt, true
			}
			if is {
				first.Duplicate = true
				receipts = append(receipts, first)
				continue
			}
		}
		r := Receipt{ID: msgs[i].ID}
		if o.Delay == 0 {
			r.Position = position
			position++
		}
		seen[u] = r
		firsts, receipts = append(firsts, msgs[i]), append(receipts, r)
	}
	return firsts, receipts
}

// publish stores messages that are no duplicates.
func (m *modelLog) publish(msgs []Message, now time.Time) {
	for i := range msgs {
		in := &msgs[i]
		t := m.topic(TopicName{in.Tenant, in.Topic})
		t.published++
		id, err := parseID(in.ID)
		if err != nil {
			panic(err)
		}
		msg := &modelMsg{
			id: in.ID, name: TopicName{in.Tenant, in.Topic}, payload: string(in.Payload), born: id.time(),
			state: "fresh", at: now.Add(in.Options.Delay),
		}
		if in.Options.TTL > 0 {
			msg.expires = msg.at.Add(in.Options.TTL)
		}
		if d := in.Options.Deadline; !d.IsZero() && (msg.expires.IsZero() || d.Before(msg.expires)) {
			msg.expires, msg.deadline = d, true
		}
		if in.Options.Delay > 0 {
			msg.state = "hidden"
		} else {
			msg.position = m.next
			m.next++
		}
		if in.Options.IdempotencyKey != "" {
			t.keys[modelKey{in.Options.Principal, in.Options.IdempotencyKey}] = modelUse{
				Receipt{ID: in.ID, Position: msg.position}, now.Add(limits.IdempotencyWindow),
			}
		}
		if in.Reservation != nil {
			t.reserved--
		}
		m.messages[in.ID] = msg
	}
}

// claimable returns what a claim takes and buries, in order.
func (m *modelLog) claimable(name TopicName, n int, maxBytes int64, now time.Time) (taken, buried []*modelMsg) {
	t := m.topics[name]
	if t == nil || t.paused {
		return nil, nil
	}
	flights := slices.DeleteFunc(m.of(name, "waiting", "leased"), func(msg *modelMsg) bool { return msg.at.After(now) })
	slices.SortStableFunc(flights, func(a, b *modelMsg) int { return a.at.Compare(b.at) })
	bytes := int64(0)
	for _, msg := range append(flights, m.of(name, "fresh")...) {
		if msg.state != "fresh" && msg.attempts >= modelAttempts {
			buried = append(buried, msg)
			continue
		}
		bytes += int64(len(msg.payload))
		if len(taken) == n || bytes > maxBytes && len(taken) > 0 {
			break
		}
		taken = append(taken, msg)
	}
	return taken, buried
}

// matching returns the dead letters of a topic that a filter selects.
func (m *modelLog) matching(name TopicName, f DeadLetterFilter, now time.Time) (found []*modelMsg) {
	for _, msg := range m.of(name, "dead") {
		switch {
		case f.ID != "" && f.ID != msg.id,
			f.LaneSet && f.Lane != "",
			f.OlderThan > 0 && now.Sub(msg.born) < f.OlderThan,
			!strings.Contains(msg.reason, f.ReasonContains),
			msg.position <= f.After,
			f.Limit > 0 && len(found) == f.Limit:
		default:
			found = append(found, msg)
		}
	}
	return found
}

// peek returns what Peek shows, a line for each message.
func (m *modelLog) peek(name TopicName, after uint64, n int, now time.Time) (lines []string) {
	for _, msg := range append(m.of(name, "waiting", "leased"), m.of(name, "fresh")...) {
		if msg.position <= after || len(lines) == n {
			continue
		}
		state := "ready"
		if msg.state != "fresh" && msg.at.After(now) {
			state = map[string]string{"waiting": "delayed", "leased": "leased"}[msg.state]
		}
		lines = append(lines, fmt.Sprint(msg.position, " ", state, " ", msg.id, " ", msg.payload))
	}
	hidden := m.of(name, "hidden")
	slices.SortFunc(hidden, func(a, b *modelMsg) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.id[14:], b.id[14:])) })
	for _, msg := range hidden[:min(len(hidden), n-len(lines))] {
		lines = append(lines, fmt.Sprint("0 delayed ", msg.id, " ", msg.payload))
	}
	return lines
}

// stats returns the counters of a topic.
func (m *modelLog) stats(name TopicName) Stats {
	t := m.topics[name]
	s := Stats{
		Tenant: name.Tenant, Topic: name.Topic, Paused: t.paused,
		Ready: int64(len(m.of(name, "fresh"))), Delayed: int64(len(m.of(name, "hidden", "waiting"))),
		Leased: int64(len(m.of(name, "leased"))), DeadLetters: int64(len(m.of(name, "dead"))),
		Published: t.published, Acked: t.acked, Buried: t.buried, Redriven: t.redriven, Discarded: t.discarded,
	}
	oldest := m.of(name, "waiting", "leased")
	if fresh := m.of(name, "fresh"); len(fresh) > 0 { // by position: one that was delayed may be older
		oldest = append(oldest, fresh[0])
	}
	for _, msg := range oldest {
		if s.Oldest.IsZero() || msg.born.Before(s.Oldest) {
			s.Oldest = msg.born
		}
	}
	return s
}
