package substrate

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/longshore/longshore/limits"
)

var modelNames = []TopicName{
	{testTenant, testTopic}, {testTenant, testTopic + "/lines"}, {testTenant, relaxedTopic}, {"other", testTopic},
}

// machine runs the same calls on a log and on its model, in virtual time.
type machine struct {
	t     *testing.T
	dir   string
	log   *Log
	model *modelLog
	steps int

	stale   []Lease
	held    []*Reservation
	heldFor []TopicName
	// after holds the model as of each frame that may not be on disk yet.
	after map[uint64]*modelLog
}

// TestProofOfTheModel compares a log with a model of all that it offers, through crashes of the process and of the machine.
func TestProofOfTheModel(t *testing.T) {
	lowerChecks(t, 4)
	stepsOfAHistory := flag.Lookup("rapid.steps")
	before := stepsOfAHistory.Value.String()
	require.NoError(t, stepsOfAHistory.Value.Set("60"))
	t.Cleanup(func() { require.NoError(t, stepsOfAHistory.Value.Set(before)) })
	steps := 0
	for start := time.Now(); time.Since(start) < proofTime(t) && !t.Failed(); {
		rapid.Check(t, func(rt *rapid.T) {
			inBubble(t, func(t *testing.T) { //nolint:thelper // it is the test
				m := &machine{t: t, dir: t.TempDir(), model: newModelLog(), after: map[uint64]*modelLog{}}
				m.open(rt)
				defer func() { require.NoError(rt, m.log.Close()) }()
				m.relax(rt)
				rt.Repeat(m.actions())
				for name := range m.model.topics {
					m.list(rt, name, DeadLetterFilter{})
				}
				steps += m.steps
			})
		})
	}
	figure("model_steps", steps)
}

func (m *machine) actions() map[string]func(*rapid.T) {
	actions := map[string]func(*rapid.T){"": m.check}
	for name, action := range map[string]func(*rapid.T){
		"publish": m.publish, "publish more": m.publish, "reserve": m.reserve, "release": m.release,
		"claim": m.claim, "claim more": m.claim, "settle": m.settle, "settle more": m.settle, "settle stale": m.settleStale,
		"extend": m.extend, "pause": m.pause, "policy": m.policy, "redrive": m.redrive, "discard": m.discard,
		"sleep": m.sleep, "store": m.store, "end": m.end,
	} {
		actions[name] = func(rt *rapid.T) {
			action(rt)
			m.steps++
			m.after[m.log.journal.Next()-1] = m.model.clone()
		}
	}
	return actions
}

func (m *machine) open(rt *rapid.T) {
	var err error
	m.log, err = Open(m.t.Context(), Options{Dir: m.dir, SegmentBytes: testSegment})
	require.NoError(rt, err)
}

// modelUnflushed is how many answers of the relaxed topic may not be on disk.
const modelUnflushed = 8

// relax makes a topic a relaxed one, and another a small one.
func (m *machine) relax(rt *rapid.T) {
	n := int64(modelUnflushed)
	require.NoError(rt, m.log.SetPolicy(m.t.Context(), testTenant, relaxedTopic, Policy{MaxUnflushed: &n}))
	m.model.topic(TopicName{testTenant, relaxedTopic})
	depth, small := int64(4), modelNames[1]
	require.NoError(rt, m.log.SetPolicy(m.t.Context(), small.Tenant, small.Topic, Policy{MaxDepth: &depth}))
	m.model.topic(small).depth = depth
}

// check lets what is due happen, and compares all that can be seen.
func (m *machine) check(rt *rapid.T) {
	time.Sleep(time.Microsecond) // less than a flush waits
	synctest.Wait()
	m.model.pass(time.Now())
	m.after[m.log.journal.Next()-1] = m.model.clone()
	var names []TopicName
	for _, s := range m.log.Topics() {
		name := TopicName{s.Tenant, s.Topic}
		names = append(names, name)
		s.Unflushed = 0
		require.Contains(rt, m.model.topics, name)
		require.Equal(rt, m.model.stats(name), s)
	}
	require.Len(rt, names, len(m.model.topics))
	require.True(rt, slices.IsSortedFunc(names, func(a, b TopicName) int {
		return strings.Compare(a.Tenant+" "+a.Topic, b.Tenant+" "+b.Topic)
	}))
	for _, name := range names {
		m.look(rt, name)
	}
	if i := rapid.IntRange(0, 30).Draw(rt, "list"); i < len(names) {
		m.list(rt, names[i], m.filter(rt, names[i]))
	}
}

// look compares the messages of one topic.
func (m *machine) look(rt *rapid.T, name TopicName) {
	now := time.Now()
	after, n := uint64(rapid.IntRange(0, 30).Draw(rt, "after")), rapid.IntRange(1, 50).Draw(rt, "n")
	peeked, err := m.log.Peek(m.t.Context(), name.Tenant, name.Topic, "", after, n)
	require.NoError(rt, err)
	var lines []string
	for _, p := range peeked {
		lines = append(lines, fmt.Sprint(p.Position, " ", p.State, " ", p.Message.ID, " ", string(p.Message.Payload)))
	}
	require.Equal(rt, m.model.peek(name, after, n, now), lines)
	ended, cancel := context.WithCancel(m.t.Context())
	cancel()
	ready := m.log.WaitReady(ended, name.Tenant, name.Topic, "") == nil
	taken, buried := m.model.claimable(name, 1, limits.MiB, now)
	require.Equal(rt, len(taken)+len(buried) > 0, ready, "ready")
}

// list compares the dead letters of a topic. It brings the store up to date.
func (m *machine) list(rt *rapid.T, name TopicName, f DeadLetterFilter) {
	now := time.Now()
	letters, err := m.log.DeadLetters(m.t.Context(), name.Tenant, name.Topic, f)
	require.NoError(rt, err)
	want := m.model.matching(name, f, now)
	require.Len(rt, letters, len(want))
	for i, d := range letters {
		w := want[i]
		require.Equal(rt, fmt.Sprint(w.id, w.position, w.attempts, w.reason, w.redriven, len(w.payload)),
			fmt.Sprint(d.ID, d.Position, d.Attempts, d.Reason, d.Redriven, d.PayloadBytes))
	}
}

// filter draws a filter of dead letters.
func (m *machine) filter(rt *rapid.T, name TopicName) (f DeadLetterFilter) {
	if rapid.Bool().Draw(rt, "all") {
		return f
	}
	dead := m.model.of(name, "dead")
	if len(dead) > 0 && rapid.IntRange(0, 3).Draw(rt, "by id") == 0 {
		f.ID = rapid.SampledFrom(dead).Draw(rt, "dead").id
	}
	f.ReasonContains = rapid.SampledFrom([]string{"", "", "", "a", "ttl", "max"}).Draw(rt, "reason")
	f.OlderThan = rapid.SampledFrom([]time.Duration{0, 0, 10 * time.Second}).Draw(rt, "older")
	f.After = uint64(rapid.IntRange(-20, 20).Draw(rt, "after") & 31 % 21)
	f.Limit = rapid.IntRange(0, 3).Draw(rt, "limit")
	f.LaneSet = rapid.Bool().Draw(rt, "lane")
	return f
}

func (m *machine) name(rt *rapid.T) TopicName { return rapid.SampledFrom(modelNames).Draw(rt, "topic") }

// drawMessages draws messages over a mix of topics, some under a reservation.
func (m *machine) drawMessages(rt *rapid.T, most int) (msgs []Message) {
	for i := range rapid.IntRange(1, most).Draw(rt, "n") {
		name := m.name(rt)
		msg := Message{
			ID: m.log.MintID(), Tenant: name.Tenant, Topic: name.Topic,
			Payload: []byte(strings.Repeat(fmt.Sprint(i), rapid.IntRange(0, 12).Draw(rt, "bytes"))),
		}
		seconds := func(name string) time.Duration {
			return time.Duration(max(0, rapid.IntRange(-20, 20).Draw(rt, name))) * time.Second
		}
		msg.Options.Delay, msg.Options.TTL = seconds("delay"), seconds("ttl")
		if d := seconds("deadline"); d > 0 {
			msg.Options.Deadline = time.UnixMilli(time.Now().Add(d).UnixMilli())
		}
		if k := rapid.IntRange(-6, 3).Draw(rt, "key"); k >= 0 {
			msg.Options.IdempotencyKey, msg.Options.Principal = fmt.Sprint(k), fmt.Sprint(k%2)
		}
		msgs = append(msgs, msg)
	}
	return msgs
}

// useReservations puts what is reserved into the messages that are no duplicates.
func (m *machine) useReservations(msgs, firsts []Message) {
	for i := range msgs {
		name := TopicName{msgs[i].Tenant, msgs[i].Topic}
		at := slices.Index(m.heldFor, name)
		first := slices.IndexFunc(firsts, func(f Message) bool { return f.ID == msgs[i].ID })
		if at < 0 || first < 0 {
			continue
		}
		msgs[i].Reservation, firsts[first].Reservation = m.held[at], m.held[at]
		m.held, m.heldFor = slices.Delete(m.held, at, at+1), slices.Delete(m.heldFor, at, at+1)
	}
}

// giveBack holds the reservations of messages that were refused again.
func (m *machine) giveBack(msgs []Message) {
	for i := range msgs {
		if msgs[i].Reservation != nil {
			m.held = append(m.held, msgs[i].Reservation)
			m.heldFor = append(m.heldFor, TopicName{msgs[i].Tenant, msgs[i].Topic})
		}
	}
}

func (m *machine) publish(rt *rapid.T) {
	msgs := m.drawMessages(rt, 4)
	firsts, receipts := m.model.firsts(msgs, time.Now())
	m.useReservations(msgs, firsts)
	refused := m.model.refuses(firsts)
	got, err := m.log.Publish(m.t.Context(), msgs...)
	if refused != "" {
		require.ErrorContains(rt, err, refused)
		m.giveBack(msgs)
		return
	}
	require.NoError(rt, err)
	require.Equal(rt, receipts, got)
	m.model.publish(firsts, time.Now())
	m.durable(rt, slices.ContainsFunc(firsts, func(f Message) bool { return f.Topic != relaxedTopic }))
}

func (m *machine) reserve(rt *rapid.T) {
	name := m.name(rt)
	msg := Message{Tenant: name.Tenant, Topic: name.Topic, Payload: make([]byte, rapid.IntRange(0, 12).Draw(rt, "bytes"))}
	r, err := m.log.Reserve(name.Tenant, name.Topic, len(msg.Payload))
	if refused := m.model.refuses([]Message{msg}); refused != "" {
		require.ErrorContains(rt, err, refused)
		return
	}
	require.NoError(rt, err)
	if m.model.topics[name] == nil {
		r.Release() // the model counts reservations by topic
		return
	}
	m.held, m.heldFor = append(m.held, r), append(m.heldFor, name)
	m.model.topics[name].reserved++
}

func (m *machine) release(rt *rapid.T) {
	if len(m.held) == 0 {
		rt.Skip("nothing is reserved")
	}
	m.held[0].Release()
	m.held[0].Release()
	m.model.topics[m.heldFor[0]].reserved--
	m.held, m.heldFor = m.held[1:], m.heldFor[1:]
}

func (m *machine) claim(rt *rapid.T) {
	name, now := m.name(rt), time.Now()
	r := ClaimRequest{
		Tenant: name.Tenant, Topic: name.Topic, MaxMessages: rapid.IntRange(1, 5).Draw(rt, "n"), MaxAttempts: modelAttempts,
		MaxBytes: int64(rapid.SampledFrom([]int{1, 15, 1_000}).Draw(rt, "bytes")),
		Lease:    time.Duration(rapid.IntRange(1, 30).Draw(rt, "lease")) * time.Second,
	}
	taken, buried := m.model.claimable(name, r.MaxMessages, r.MaxBytes, now)
	got, err := m.log.Claim(m.t.Context(), r)
	require.NoError(rt, err)
	require.Len(rt, got.Buried, len(buried))
	for i, d := range got.Buried {
		msg := buried[i]
		reason := msg.reason
		if reason == "" {
			reason = ReasonMaxAttempts
		}
		require.Equal(rt, []string{msg.id, reason}, []string{d.ID, d.Reason})
		m.model.kill(msg, reason)
	}
	require.Len(rt, got.Deliveries, len(taken))
	for i, d := range got.Deliveries {
		msg := taken[i]
		require.Equal(rt, fmt.Sprint(msg.id, msg.payload, msg.position, msg.attempts+1, msg.reason, now.Add(r.Lease).UnixNano()),
			fmt.Sprint(d.Message.ID, string(d.Message.Payload), d.Lease.Position, d.Attempt, d.PreviousReason, d.Expires.UnixNano()))
		if msg.state == "leased" {
			m.stale = append(m.stale, msg.lease)
		}
		msg.state, msg.at, msg.lease, msg.attempts = "leased", now.Add(r.Lease), d.Lease, d.Attempt
	}
}

// leased draws a message under a lease, which may have run out.
func (m *machine) leased(rt *rapid.T) *modelMsg {
	var leased []*modelMsg
	for _, name := range modelNames {
		leased = append(leased, m.model.of(name, "leased")...)
	}
	if len(leased) == 0 {
		rt.Skip("nothing is leased")
	}
	return rapid.SampledFrom(leased).Draw(rt, "leased")
}

// settle ends one to three deliveries in one commit, perhaps with an outbox.
func (m *machine) settle(rt *rapid.T) {
	var msgs []*modelMsg
	var settlements []Settlement
	ends := false
	for range rapid.IntRange(1, 3).Draw(rt, "settlements") {
		msg := m.leased(rt)
		if slices.Contains(msgs, msg) {
			continue
		}
		s := Settlement{
			Lease: msg.lease, Verdict: rapid.SampledFrom([]Verdict{Ack, Ack, Retry, Release, Bury}).Draw(rt, "verdict"),
			Reason: rapid.SampledFrom([]string{"", "a", "b"}).Draw(rt, "reason"),
			Delay:  time.Duration(rapid.IntRange(0, 5).Draw(rt, "delay")) * time.Second,
		}
		ends = ends || s.Verdict == Ack || s.Verdict == Bury
		msgs, settlements = append(msgs, msg), append(settlements, s)
	}
	var outbox, firsts []Message
	if ends && rapid.Bool().Draw(rt, "outbox") {
		outbox = m.drawMessages(rt, 2)
		firsts, _ = m.model.firsts(outbox, time.Now())
		m.useReservations(outbox, firsts)
	}
	refused := m.model.refuses(firsts)
	err := m.log.Settle(m.t.Context(), settlements, outbox)
	if refused != "" {
		require.ErrorContains(rt, err, refused)
		m.giveBack(outbox)
		return
	}
	require.NoError(rt, err)
	for i, msg := range msgs {
		m.settled(msg, &settlements[i])
	}
	m.model.publish(firsts, time.Now())
	m.durable(rt, slices.ContainsFunc(msgs, func(msg *modelMsg) bool { return msg.name.Topic != relaxedTopic }))
}

// durable checks that what was answered last is on disk if it was strict, or if there is too much that is not.
func (m *machine) durable(rt *rapid.T, strict bool) {
	if strict {
		require.Equal(rt, m.log.journal.Next()-1, m.log.journal.Synced(), "a strict answer is on disk")
	}
	for _, s := range m.log.Topics() {
		require.LessOrEqual(rt, s.Unflushed, int64(modelUnflushed))
	}
}

func (m *machine) settled(msg *modelMsg, s *Settlement) {
	m.stale = append(m.stale, msg.lease)
	switch s.Verdict {
	case Ack:
		delete(m.model.messages, msg.id)
		m.model.topic(msg.name).acked++
		return
	case Bury:
		m.model.kill(msg, s.Reason)
		return
	case Release:
		msg.attempts--
	case Retry:
	}
	if s.Reason != "" {
		msg.reason = s.Reason
	}
	msg.state, msg.at = "waiting", time.Now().Add(s.Delay)
}

// settleStale settles under a lease that counts no more, together with one that does: nothing changes.
func (m *machine) settleStale(rt *rapid.T) {
	if len(m.stale) == 0 {
		rt.Skip("no lease is stale")
	}
	msg, stale := m.leased(rt), rapid.SampledFrom(m.stale).Draw(rt, "stale")
	settlements := []Settlement{{Lease: msg.lease, Verdict: Ack}, {Lease: stale, Verdict: Ack}}
	require.ErrorIs(rt, m.log.Settle(m.t.Context(), settlements, m.drawMessages(rt, 1)), ErrLeaseLost)
	_, err := m.log.Extend(m.t.Context(), stale, time.Second)
	require.ErrorIs(rt, err, ErrLeaseLost)
}

func (m *machine) extend(rt *rapid.T) {
	msg, d := m.leased(rt), time.Duration(rapid.IntRange(1, 30).Draw(rt, "by"))*time.Second
	until, err := m.log.Extend(m.t.Context(), msg.lease, d)
	require.NoError(rt, err)
	require.Equal(rt, time.Now().Add(d).UnixNano(), until.UnixNano())
	msg.at = time.Now().Add(d)
}

func (m *machine) pause(rt *rapid.T) {
	name, paused := m.name(rt), rapid.Bool().Draw(rt, "paused")
	require.NoError(rt, m.log.Pause(m.t.Context(), name.Tenant, name.Topic, paused))
	m.durable(rt, true)
	m.model.topic(name).paused = paused
}

func (m *machine) policy(rt *rapid.T) {
	name, ctx := m.name(rt), m.t.Context()
	if name.Topic == relaxedTopic {
		rt.Skip("it stays relaxed")
	}
	if rapid.Bool().Draw(rt, "unset") {
		require.NoError(rt, m.log.UnsetPolicy(ctx, name.Tenant, name.Topic))
		m.durable(rt, true)
		t := m.model.topic(name)
		t.depth, t.bytes = 0, limits.MessageBytes
		return
	}
	depth, bytes := int64(rapid.IntRange(1, 6).Draw(rt, "depth")), int64(rapid.IntRange(5, 20).Draw(rt, "bytes"))
	require.NoError(rt, m.log.SetPolicy(ctx, name.Tenant, name.Topic, Policy{MaxDepth: &depth, MaxMessageBytes: &bytes}))
	m.durable(rt, true)
	m.model.topic(name).depth, m.model.topic(name).bytes = depth, bytes
	view, err := m.log.Policy(name.Tenant, name.Topic)
	require.NoError(rt, err)
	require.Equal(rt, PolicyValue{Value: depth, Set: true, Source: "stored"}, view.MaxDepth)
}

func (m *machine) redrive(rt *rapid.T) {
	name := m.name(rt)
	f := m.filter(rt, name)
	forged := errors.New("forged")
	r, err := m.log.Redrive(m.t.Context(), name.Tenant, name.Topic, Redrive{Filter: f, Operator: "op", Admit: func(msg Message) error {
		if len(msg.Payload) == 3 {
			return forged
		}
		return nil
	}})
	if m.model.topics[name] == nil {
		require.ErrorIs(rt, err, ErrNotFound)
		return
	}
	require.NoError(rt, err)
	var want RedriveResult
	for _, msg := range m.model.matching(name, f, time.Now()) {
		if len(msg.payload) == 3 {
			want.Refused++
			continue
		}
		want.Moved++
		msg.state, msg.at, msg.attempts, msg.reason = "waiting", time.Now(), 0, ""
		msg.redriven++
		m.model.topics[name].redriven++
	}
	require.Equal(rt, want, r)
	m.durable(rt, r.Moved > 0)
}

func (m *machine) discard(rt *rapid.T) {
	name := m.name(rt)
	f := m.filter(rt, name)
	want := m.model.matching(name, f, time.Now())
	n, err := m.log.Discard(m.t.Context(), name.Tenant, name.Topic, f)
	if m.model.topics[name] == nil {
		require.ErrorIs(rt, err, ErrNotFound)
		return
	}
	require.NoError(rt, err)
	require.Equal(rt, len(want), n)
	m.durable(rt, n > 0)
	for _, msg := range want {
		delete(m.model.messages, msg.id)
		m.model.topics[name].discarded++
	}
}

func (m *machine) sleep(rt *rapid.T) {
	time.Sleep(rapid.SampledFrom([]time.Duration{
		time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second, 30 * time.Second, limits.IdempotencyWindow / 2,
	}).Draw(rt, "for"))
	synctest.Wait()
	m.model.pass(time.Now())
}

func (m *machine) store(rt *rapid.T) { require.NoError(rt, m.log.submit(m.t.Context(), &request{})) }

// end ends the log in one way or the other, and goes on with what that leaves.
func (m *machine) end(rt *rapid.T) {
	switch rapid.IntRange(0, 2).Draw(rt, "how") {
	case 0:
		m.shut(rt)
	case 1:
		m.crash(rt)
	default:
		m.powerCut(rt)
	}
}

func (m *machine) shut(rt *rapid.T) {
	require.NoError(rt, m.log.Close())
	m.reopen(rt)
}

// crash goes on with what a kill of the process leaves.
func (m *machine) crash(rt *rapid.T) {
	dir := crash(m.t, m.dir)
	require.NoError(rt, m.log.Close())
	m.dir = dir
	m.reopen(rt)
}

// powerCut goes on with what a power cut leaves: of the frames that were not flushed, those up to some number.
func (m *machine) powerCut(rt *rapid.T) {
	synctest.Wait()
	last := m.log.journal.Next() - 1
	var kept []uint64
	for number := m.log.journal.Synced(); number <= last; number++ {
		if m.after[number] != nil {
			kept = append(kept, number)
		}
	}
	require.NotEmpty(rt, kept)
	number := rapid.SampledFrom(kept).Draw(rt, "kept")
	dir := crash(m.t, m.dir)
	require.NoError(rt, m.log.Close())
	m.dir, m.model = dir, m.after[number].clone()
	cutJournal(m.t, dir, number, rapid.Bool().Draw(rt, "hole"))
	m.stale = slices.DeleteFunc(m.stale, func(l Lease) bool { return l.Token > number })
	m.reopen(rt)
}

func (m *machine) reopen(rt *rapid.T) {
	m.open(rt)
	for _, name := range modelNames {
		for _, msg := range m.model.of(name, "leased") {
			m.stale = append(m.stale, msg.lease)
		}
	}
	m.model.restart(time.Now())
	m.model.pass(time.Now())
	m.held, m.heldFor = nil, nil
	clear(m.after)
}
