package substrate

import (
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

// toldOf is what a history tells about one message.
type toldOf struct {
	note
	call     uint64 // that published it
	stored   string // "yes", "no", "maybe"
	seen     bool   // in a delivery or among the dead
	position uint64 // 0 if it isn't known

	claims, releases, openReleases int
	acks, openAcks                 int
	gone                           bool // acknowledged or discarded for certain
	discards                       bool // a discard was asked and not refused
	openEnd                        bool // an acknowledgement or a discard was asked and not answered
	mayDie                         bool
	killed                         int // index of the act that buried it for certain, 0 if none
}

// history sums up the acts of a workload on a log that then stopped, in whatever way.
type history struct {
	t        *testing.T
	acts     []act
	answers  map[uint64]act
	messages map[string]*toldOf
	// processes is how many worked on the log one after the other. Each end takes back the attempt of what was under a lease.
	processes int
	outboxes  map[uint64][]string // ids, by call
	redrives  map[string][]uint64 // calls, by topic
	paused    map[string]bool     // as answered last
	unsure    map[string]bool     // a pause was not answered
	token     uint64              // highest seen
	position  uint64
}

func newHistory(t *testing.T, acts []act, processes int) *history {
	t.Helper()
	h := &history{
		t: t, acts: acts, processes: processes, answers: map[uint64]act{}, messages: map[string]*toldOf{}, outboxes: map[uint64][]string{},
		redrives: map[string][]uint64{}, paused: map[string]bool{}, unsure: map[string]bool{},
	}
	for _, a := range acts {
		if a.Step != "ask" {
			h.answers[a.Call] = a
		}
	}
	for i, a := range acts {
		h.add(i, a)
	}
	return h
}

func (h *history) add(i int, a act) {
	answer, answered := h.answers[a.Call]
	outcome := map[string]string{"done": "yes", "refused": "no", "unknown": "maybe"}[answer.Step]
	if !answered {
		outcome = "maybe"
	}
	switch {
	case a.Kind == "publish" && a.Step == "ask", a.Kind == "settle" && a.Step == "ask":
		for j, n := range a.Messages {
			k := &toldOf{note: n, call: a.Call, stored: outcome}
			if len(answer.Receipts) > 0 {
				if k.position = answer.Receipts[j].Position; answer.Receipts[j].Duplicate {
					k.stored = "no"
				}
			}
			h.messages[n.ID] = k
			if a.Kind == "settle" {
				h.outboxes[a.Call] = append(h.outboxes[a.Call], n.ID)
			}
		}
		for _, t := range a.Taken {
			h.settled(i, t, outcome)
		}
	case a.Kind == "claim" && a.Step != "ask":
		h.claimed(i, a)
	case a.Kind == "redrive" && a.Step == "ask":
		h.redrives[a.Topic] = append(h.redrives[a.Topic], a.Call)
	case a.Kind == "discard" && a.Step == "ask":
		m := h.messages[a.IDs[0]]
		m.gone = m.gone || answered && answer.Count > 0
		m.discards = m.discards || outcome != "no"
		m.openEnd = m.openEnd || outcome == "maybe"
	case a.Kind == "pause" && a.Step == "ask" && outcome == "maybe":
		h.unsure[a.Topic] = true
	case a.Kind == "pause" && a.Step == "done":
		h.paused[a.Topic] = a.Paused
	}
}

func (h *history) settled(i int, t taking, outcome string) {
	m := h.messages[t.ID]
	if outcome == "no" {
		return
	}
	switch t.Verdict {
	case Ack:
		m.acks++
		m.gone = m.gone || outcome == "yes"
		if outcome == "maybe" {
			m.openAcks++
			m.openEnd = true
		}
	case Bury:
		m.mayDie = true
		if outcome == "yes" {
			m.killed = i
		}
	case Release:
		if m.releases++; outcome == "maybe" {
			m.openReleases++
		}
	case Retry:
	}
}

// claimed checks the answer of a claim against what was known when it was asked.
func (h *history) claimed(i int, a act) {
	for _, d := range a.Taken {
		m := h.messages[d.ID]
		require.NotNil(h.t, m, "message %s was delivered and never published", d.ID)
		require.NotEqual(h.t, "no", m.stored, "message %s was delivered, and its publish refused", d.ID)
		require.Equal(h.t, m.Topic, d.Lease.Topic)
		if m.position != 0 {
			require.Equal(h.t, m.position, d.Lease.Position, "message %s moved", d.ID)
		}
		m.seen, m.position = true, d.Lease.Position
		m.claims++
		h.token, h.position = max(h.token, d.Lease.Token), max(h.position, d.Lease.Position)
	}
	for _, id := range a.IDs {
		m := h.messages[id]
		require.NotNil(h.t, m, "message %s was buried and never published", id)
		m.seen, m.mayDie = true, true
		m.killed = i
	}
	h.noneTwice(i, a)
}

// noneTwice checks that a claim got nothing whose acknowledgement had been answered before the claim was asked.
func (h *history) noneTwice(i int, claim act) {
	asked := slices.IndexFunc(h.acts, func(b act) bool { return b.Call == claim.Call })
	for _, b := range h.acts[:asked] {
		if b.Kind != "settle" || b.Step != "ask" || h.answers[b.Call].Step != "done" {
			continue
		}
		for _, t := range b.Taken {
			if t.Verdict != Ack || !slices.ContainsFunc(claim.Taken, func(d taking) bool { return d.ID == t.ID }) {
				continue
			}
			answered := slices.IndexFunc(h.acts, func(c act) bool { return c.Call == b.Call && c.Step != "ask" })
			require.Greater(h.t, answered, asked, "message %s was delivered (act %d) after its acknowledgement", t.ID, i)
		}
	}
}

// leftovers is what a log holds that was opened again.
type leftovers struct {
	alive map[string]Delivery
	order []string // in which they were delivered
	dead  map[string]DeadLetter
}

// provedTopics returns the topics of the one tenant that stays: others come and go.
func provedTopics(l *Log) []Stats {
	return slices.DeleteFunc(l.Topics(), func(s Stats) bool { return s.Tenant != testTenant })
}

// drain claims all that l holds, and lists what is dead.
func drain(t *testing.T, l *Log) leftovers {
	t.Helper()
	left := leftovers{alive: map[string]Delivery{}, dead: map[string]DeadLetter{}}
	until := time.Now().Add(20 * time.Second)
	topics := provedTopics(l)
	for _, s := range topics {
		require.NoError(t, l.Pause(t.Context(), s.Tenant, s.Topic, false))
		for {
			r := claimRequest(s.Topic, 200)
			r.Lease, r.MaxBytes, r.MaxAttempts = time.Hour, limits.GiB, 1_000
			got, err := l.Claim(t.Context(), r)
			require.NoError(t, err)
			for _, d := range got.Buried {
				require.Contains(t, []string{ReasonTTLExpired, ReasonDeadline}, d.Reason)
			}
			for _, d := range got.Deliveries {
				_, twice := left.alive[d.Message.ID]
				require.False(t, twice, "message %s was delivered twice", d.Message.ID)
				left.alive[d.Message.ID] = d
				left.order = append(left.order, d.Message.ID)
			}
			now := stats(t, l, s.Topic)
			if now.Ready+now.Delayed == 0 {
				break
			}
			require.True(t, time.Now().Before(until), "%s never drains: %+v", s.Topic, now)
			if len(got.Deliveries) == 0 {
				time.Sleep(time.Millisecond)
			}
		}
	}
	for _, s := range topics {
		letters, err := l.DeadLetters(t.Context(), s.Tenant, s.Topic, DeadLetterFilter{})
		require.NoError(t, err)
		for _, d := range letters {
			require.False(t, left.has(d.ID), "message %s is alive and dead", d.ID)
			left.dead[d.ID] = d
		}
	}
	return left
}

// check compares what a log in dir holds that is opened again with what was promised before, and then with what it holds
// after one more crash.
func (h *history) check(dir string) {
	h.t.Helper()
	l := reopenProved(h.t, dir)
	for topic, paused := range h.paused {
		if !h.unsure[topic] {
			require.Equal(h.t, paused, stats(h.t, l, topic).Paused, "%s is paused", topic)
		}
	}
	left := drain(h.t, l)
	for id := range left.alive {
		require.NotNil(h.t, h.messages[id], "nobody published message %s", id)
	}
	for id := range left.dead {
		require.NotNil(h.t, h.messages[id], "nobody published dead letter %s", id)
	}
	for id, m := range h.messages {
		h.checkMessage(id, m, left)
		h.checkValue(l, id, m, left)
	}
	h.checkOrder(left)
	h.checkAtomic(left)
	h.checkCounters(l, left)
	more := h.checkNumbers(l, left)
	again := drain(h.t, reopenProved(h.t, crash(h.t, dir)))
	require.Equal(h.t, len(left.alive)+len(left.dead)+more, len(again.alive)+len(again.dead), "after one more crash")
	for id := range again.alive {
		_, dead := left.dead[id]
		require.False(h.t, dead, "message %s, which was dead, lives after one more crash", id)
	}
	for id := range again.dead {
		_, dead := left.dead[id]
		require.True(h.t, dead || h.messages[id].Expires, "message %s, which lived, is dead after one more crash", id)
	}
}

func (h *history) checkMessage(id string, m *toldOf, left leftovers) {
	delivery, alive := left.alive[id]
	letter, dead := left.dead[id]
	switch {
	case m.stored == "no":
		require.False(h.t, alive || dead || m.seen, "message %s is there, and its publish was refused", id)
	case m.gone:
		require.False(h.t, alive || dead, "message %s is there again (%+v)", id, m)
	case (m.stored == "yes" || m.seen) && !m.openEnd:
		require.True(h.t, alive || dead, "message %s is lost: %+v", id, m)
	}
	if alive {
		require.Equal(h.t, m.Sum, crc32.ChecksumIEEE(delivery.Message.Payload), "payload of %s", id)
		if m.position != 0 {
			require.Equal(h.t, m.position, delivery.Lease.Position, "message %s moved", id)
		}
		if !m.mayDie && !m.Expires && m.claims < proofAttempts { // else it may have been redriven
			done := m.claims - m.releases
			require.GreaterOrEqual(h.t, delivery.Attempt, max(1, done+1-h.processes), "attempts of %s: %+v", id, m)
			require.LessOrEqual(h.t, delivery.Attempt, done+m.openReleases+h.openClaims(m.Topic)+1, "attempts of %s: %+v", id, m)
		}
	}
	if dead {
		require.True(h.t, m.mayDie || m.Expires || m.claims+h.openClaims(m.Topic) >= proofAttempts, "message %s died of nothing: %+v", id, letter)
		if strings.HasPrefix(letter.Reason, "bury ") {
			require.Equal(h.t, "bury "+id, letter.Reason)
		}
	}
	if m.killed > 0 && !m.openEnd && !m.gone && !h.redrivenSince(m.Topic, m.killed) {
		require.True(h.t, dead, "message %s was buried (act %d) and lives", id, m.killed)
	}
}

// checkValue checks that the value of a message is there if it was acknowledged, and only then.
func (h *history) checkValue(l *Log, id string, m *toldOf, left leftovers) {
	value, read, err := l.GetValue(testTenant, ackedBucket, id)
	require.NoError(h.t, err)
	there := read.Version != 0
	require.False(h.t, there && left.has(id), "message %s lives, or is dead, and its acknowledgement wrote a value", id)
	require.False(h.t, there && m.acks == 0, "nobody acknowledged message %s, and its value is there", id)
	require.True(h.t, there || m.acks == m.openAcks, "message %s was acknowledged, and its value is lost", id)
	require.True(h.t, !there || string(value) == id, "value of message %s", id)
}

// openClaims returns how many claims of a topic were not answered, at least.
func (h *history) openClaims(topic string) (n int) {
	for _, a := range h.acts {
		if a.Kind == "claim" && a.Step == "ask" && a.Topic == topic && h.answers[a.Call].Step != "done" {
			n++
		}
	}
	return n
}

// redrivenSince reports whether a redrive may have come after act i was asked.
func (h *history) redrivenSince(topic string, i int) bool {
	for _, call := range h.redrives[topic] {
		answered := slices.IndexFunc(h.acts, func(a act) bool { return a.Call == call && a.Step != "ask" })
		if answered < 0 || answered > i {
			return true
		}
	}
	return false
}

// checkAtomic checks that a commit which nobody answered is there as a whole or not at all.
func (h *history) checkAtomic(left leftovers) {
	exists := func(id string) bool {
		m := h.messages[id]
		return left.has(id) || m.seen || m.gone || m.acks > 0
	}
	for _, a := range h.acts {
		if a.Step != "ask" || len(a.Messages) == 0 || h.answers[a.Call].Step == "done" {
			continue
		}
		var there, missing []string
		for _, n := range a.Messages {
			switch {
			case n.Key != "": // may have been a duplicate
			case h.messages[n.ID].openEnd: // may have been there, and gone
			case exists(n.ID):
				there = append(there, n.ID)
			default:
				missing = append(missing, n.ID)
			}
		}
		require.False(h.t, len(there) > 0 && len(missing) > 0, "call %d was torn: %v is there, %v is not", a.Call, there, missing)
		if a.Kind != "settle" || len(there)+len(missing) == 0 {
			continue
		}
		for _, d := range a.Taken {
			if m := h.messages[d.ID]; d.Verdict == Ack && m.acks == 1 && m.openAcks == 1 && !m.discards {
				require.Equal(h.t, len(missing) > 0, left.has(d.ID), "call %d was torn between %s and its outbox %v %v:%s", a.Call, d.ID, there, missing, h.about(append(missing, d.ID)...))
			}
		}
	}
}

// about tells what happened to messages, a line an act.
func (h *history) about(ids ...string) string {
	is := func(id string) bool { return slices.Contains(ids, id) }
	var b strings.Builder
	for i, a := range h.acts {
		if slices.ContainsFunc(a.IDs, is) || slices.ContainsFunc(a.Messages, func(n note) bool { return is(n.ID) }) ||
			slices.ContainsFunc(a.Taken, func(t taking) bool { return is(t.ID) }) {
			fmt.Fprintf(&b, "\nact %d, answered %q: %+v", i, h.answers[a.Call].Step, a)
		}
	}
	return b.String()
}

// checkOrder checks that messages which were never claimed before came in the order of their positions.
func (h *history) checkOrder(left leftovers) {
	last := map[string]uint64{}
	for _, id := range left.order {
		m, d := h.messages[id], left.alive[id]
		if d.Attempt > 1 || m.seen || m.Expires || m.Delayed {
			continue
		}
		require.Greater(h.t, d.Lease.Position, last[m.Topic], "order of first attempts")
		last[m.Topic] = d.Lease.Position
	}
}

func (l leftovers) has(id string) bool {
	_, alive := l.alive[id]
	_, dead := l.dead[id]
	return alive || dead
}

func (h *history) checkCounters(l *Log, left leftovers) {
	for _, s := range provedTopics(l) {
		var alive, dead int64
		for _, d := range left.alive {
			if d.Message.Topic == s.Topic {
				alive++
			}
		}
		for _, d := range left.dead {
			if d.Topic == s.Topic {
				dead++
			}
		}
		require.Equal(h.t, alive, s.Leased, s.Topic)
		require.Equal(h.t, dead, s.DeadLetters, s.Topic)
		require.Equal(h.t, s.Published, s.Acked+s.Discarded+uint64(alive+dead), "%s: what came in is what is there and what went out: %+v", s.Topic, s)
	}
}

// checkNumbers checks that nothing that names something is given a second time, and that old leases count no more. It
// returns how many messages it published.
func (h *history) checkNumbers(l *Log, left leftovers) int {
	for id, d := range left.alive {
		require.Greater(h.t, d.Lease.Token, h.token, "token of %s", id)
	}
	r, err := l.Publish(h.t.Context(), l.newMessage(testTopic, "a new one"))
	require.NoError(h.t, err)
	require.Greater(h.t, r[0].Position, h.position)
	require.Nil(h.t, h.messages[r[0].ID], "an id is used twice")
	for _, a := range h.acts {
		for _, d := range a.Taken {
			if a.Kind == "claim" && d.Lease.Token == h.token {
				err := l.Settle(h.t.Context(), []Settlement{{Lease: d.Lease, Verdict: Ack}}, nil)
				require.ErrorIs(h.t, err, ErrLeaseLost)
			}
		}
	}
	h.checkKeys(l)
	return 1
}

// checkKeys checks that a key that was used is used still.
func (h *history) checkKeys(l *Log) {
	type key struct{ topic, key string }
	first := map[key]string{}
	for id, m := range h.messages {
		k := key{m.Topic, m.Key}
		if m.Key == "" || m.stored != "yes" {
			continue
		}
		require.Empty(h.t, first[k], "two messages under the key %s", m.Key)
		first[k] = id
	}
	for k, id := range first {
		m := l.newMessage(k.topic, "again")
		m.Options.IdempotencyKey, m.Options.Principal = k.key, "p"
		r, err := l.Publish(h.t.Context(), m)
		require.NoError(h.t, err)
		require.Equal(h.t, Receipt{ID: id, Position: r[0].Position, Duplicate: true}, r[0])
	}
}
