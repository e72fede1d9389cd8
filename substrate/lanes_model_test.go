package substrate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/longshore/longshore/substrate/internal/store"
)

// laneMessage is what the model knows of a message of a lane that is not done.
type laneMessage struct {
	position uint64
	key      string
	priority uint8
	state    string // "fresh", "waiting", "leased", "dead"
	lease    Lease
}

// laneModel is a lane as its users see it.
type laneModel struct {
	messages map[uint64]*laneMessage
	ordered  bool
	grouped  bool
}

func (m *laneModel) in(states ...string) []*laneMessage {
	var list []*laneMessage
	for _, msg := range m.messages {
		if slices.Contains(states, msg.state) {
			list = append(list, msg)
		}
	}
	slices.SortFunc(list, func(a, b *laneMessage) int { return cmp.Compare(a.position, b.position) })
	return list
}

// level is the priority that counts.
func (m *laneModel) level(msg *laneMessage) uint8 {
	if m.grouped || msg.key != "" {
		return 0
	}
	return msg.priority
}

// free returns the messages that may be claimed now: of each key that nobody holds only the first.
func (m *laneModel) free() []*laneMessage {
	held := map[string]bool{}
	for _, msg := range m.in("leased") {
		held[msg.key] = true
	}
	var free []*laneMessage
	for _, msg := range m.in("fresh", "waiting") {
		if m.ordered && msg.key != "" {
			if held[msg.key] {
				continue
			}
			held[msg.key] = true
		}
		free = append(free, msg)
	}
	return free
}

// lanesMachine runs the same calls on a model and on a log.
type lanesMachine struct {
	t      *testing.T
	dir    string
	l      *Log
	all    map[uint64]*laneMessage // ever published
	lanes  map[string]*laneModel
	mode   LaneMode
	used   bool // the default lane was claimed from
	owes   bool
	topic  bool // it exists
	wasOff bool // the mode was LaneOff
}

func (m *lanesMachine) pick(rt *rapid.T, groupsOnly bool) (string, *laneModel) {
	names := slices.Sorted(maps.Keys(m.lanes))
	if groupsOnly {
		names = names[1:] // "" sorts first
	}
	if len(names) == 0 {
		rt.Skip("no group")
	}
	name := rapid.SampledFrom(names).Draw(rt, "lane")
	return name, m.lanes[name]
}

func (m *lanesMachine) publish(rt *rapid.T) {
	var msgs []Message
	for range rapid.IntRange(1, 4).Draw(rt, "n") {
		msg := m.l.newMessage(testTopic, "x")
		msg.Options.OrderingKey = rapid.SampledFrom([]string{"", "", "a", "b"}).Draw(rt, "key")
		msg.Options.Priority = rapid.SampledFrom([]uint8{0, 0, 3, 9}).Draw(rt, "priority")
		msgs = append(msgs, msg)
	}
	m.topic = true
	receipts, err := m.l.Publish(m.t.Context(), msgs...)
	require.NoError(rt, err)
	for i, r := range receipts {
		msg := laneMessage{position: r.Position, key: msgs[i].Options.OrderingKey, priority: msgs[i].Options.Priority, state: "fresh"}
		m.all[r.Position] = &msg
		for name, lane := range m.lanes {
			if name != "" || m.owes {
				owed := msg
				lane.messages[r.Position] = &owed
			}
		}
	}
}

func (m *lanesMachine) stored() map[uint64]bool {
	positions := map[uint64]bool{}
	for _, lane := range m.lanes {
		for p := range lane.messages {
			positions[p] = true
		}
	}
	return positions
}

func (m *lanesMachine) create(rt *rapid.T) {
	name := rapid.SampledFrom([]string{"g", "h", "i"}).Draw(rt, "group")
	start := Start{Kind: rapid.SampledFrom([]StartKind{StartEarliest, StartLatest}).Draw(rt, "start")}
	o := GroupOptions{Start: start, Ordering: rapid.SampledFrom([]Ordering{OrderNone, OrderKey}).Draw(rt, "ordering")}
	m.settled()
	_, made, err := m.l.CreateGroup(m.t.Context(), testTenant, testTopic, name, o)
	require.NoError(rt, err)
	require.Equal(rt, m.lanes[name] == nil, made)
	m.topic = true
	if !made {
		return
	}
	lane := &laneModel{messages: map[uint64]*laneMessage{}, ordered: o.Ordering == OrderKey, grouped: true}
	if start.Kind == StartEarliest {
		for p := range m.stored() {
			msg := *m.all[p]
			lane.messages[p] = &msg
		}
	}
	m.lanes[name] = lane
	if m.mode == LaneAuto && !m.used {
		m.owes = false
	}
}

// settled waits until what nobody needs is gone.
func (m *lanesMachine) settled() { time.Sleep(3 * time.Second) }

func (m *lanesMachine) drop(rt *rapid.T) {
	name, _ := m.pick(rt, true)
	require.NoError(rt, m.l.DeleteGroup(m.t.Context(), testTenant, testTopic, name))
	delete(m.lanes, name)
	if m.mode == LaneAuto && len(m.lanes) == 1 {
		m.owes = true
	}
}

func (m *lanesMachine) reset(rt *rapid.T) {
	name, lane := m.pick(rt, true)
	start := Start{Kind: rapid.SampledFrom([]StartKind{StartEarliest, StartLatest, StartPosition}).Draw(rt, "start")}
	if start.Kind == StartPosition {
		start.Position = rapid.Uint64Range(0, uint64(len(m.all))).Draw(rt, "position")
	}
	m.settled()
	stored := m.stored()
	require.NoError(rt, m.l.ResetGroup(m.t.Context(), testTenant, testTopic, name, start))
	for p, msg := range lane.messages {
		if msg.state != "dead" {
			delete(lane.messages, p)
		}
	}
	if start.Kind == StartLatest {
		return
	}
	for p := range stored {
		if p >= start.Position && lane.messages[p] == nil {
			msg := *m.all[p]
			lane.messages[p] = &msg
		}
	}
}

func (m *lanesMachine) claim(rt *rapid.T) {
	name, lane := m.pick(rt, false)
	r := claimRequest(testTopic, rapid.IntRange(1, 5).Draw(rt, "n"))
	r.Lane, r.Lease, r.MaxAttempts = name, 1000*time.Hour, 1_000_000
	got, err := m.l.Claim(m.t.Context(), r)
	if name == "" && m.mode == LaneOff {
		require.ErrorIs(rt, err, ErrLaneOff)
		return
	}
	require.NoError(rt, err)
	if name == "" && m.topic {
		m.used = true
		m.owes = m.owes || m.mode == LaneAuto
	}
	free := lane.free()
	if !lane.ordered {
		require.Len(rt, got.Deliveries, min(len(free), r.MaxMessages))
	} else {
		require.GreaterOrEqual(rt, len(got.Deliveries), min(len(free), r.MaxMessages))
	}
	for _, d := range got.Deliveries {
		msg := lane.messages[d.Lease.Position]
		require.NotNil(rt, msg, "position %d is not owed to lane %q", d.Lease.Position, name)
		require.Contains(rt, []string{"fresh", "waiting"}, msg.state)
		m.checkOrder(rt, lane, msg, d.Lease.Token)
		msg.state, msg.lease = "leased", d.Lease
	}
	for _, d := range got.Deliveries {
		lane.messages[d.Lease.Position].state = "leased"
	}
}

// checkOrder checks that a message that is delivered comes after all that come before it.
func (m *lanesMachine) checkOrder(rt *rapid.T, lane *laneModel, msg *laneMessage, token uint64) {
	for _, other := range lane.in("fresh", "waiting", "leased") {
		if lane.ordered && msg.key != "" && other.key == msg.key && other.position < msg.position {
			require.Equal(rt, "leased", other.state, "position %d before %d", other.position, msg.position)
			require.Equal(rt, token, other.lease.Token)
		}
		if other.state == "fresh" && msg.state == "fresh" && other != msg && !lane.ordered {
			before := lane.level(other) > lane.level(msg) || lane.level(other) == lane.level(msg) && other.position < msg.position
			require.False(rt, before, "position %d before %d", other.position, msg.position)
		}
	}
}

func (m *lanesMachine) settle(rt *rapid.T) {
	name, lane := m.pick(rt, false)
	leased := lane.in("leased")
	if len(leased) == 0 {
		rt.Skip("nothing is leased")
	}
	msg := rapid.SampledFrom(leased).Draw(rt, "message")
	v := rapid.SampledFrom([]Verdict{Ack, Ack, Retry, Release, Bury}).Draw(rt, "verdict")
	require.Equal(rt, name, msg.lease.Lane)
	require.NoError(rt, m.l.Settle(m.t.Context(), []Settlement{{Lease: msg.lease, Verdict: v}}, nil))
	switch v {
	case Ack:
		delete(lane.messages, msg.position)
	case Bury:
		msg.state = "dead"
	case Retry, Release:
		msg.state = "waiting"
	}
}

func (m *lanesMachine) moveDead(rt *rapid.T) {
	name, lane := m.pick(rt, false)
	if !m.topic {
		rt.Skip("no topic")
	}
	f := DeadLetterFilter{Lane: name, LaneSet: true}
	dead := lane.in("dead")
	if rapid.Bool().Draw(rt, "redrive") && (name != "" || m.mode != LaneOff) {
		r, err := m.l.Redrive(m.t.Context(), testTenant, testTopic, Redrive{Filter: f})
		require.NoError(rt, err)
		require.Equal(rt, len(dead), r.Moved)
		for _, msg := range dead {
			msg.state = "waiting"
		}
		return
	}
	n, err := m.l.Discard(m.t.Context(), testTenant, testTopic, f)
	require.NoError(rt, err)
	require.Equal(rt, len(dead), n)
	for _, msg := range dead {
		delete(lane.messages, msg.position)
	}
}

func (m *lanesMachine) setMode(rt *rapid.T) {
	mode := rapid.SampledFrom([]LaneMode{LaneAuto, LaneOn, LaneOff}).Draw(rt, "mode")
	work := m.lanes[""]
	want := int64(0)
	if mode == LaneOff {
		want = int64(len(work.messages) - len(work.in("dead")))
		for _, msg := range work.in("fresh", "waiting", "leased") {
			delete(work.messages, msg.position)
		}
	}
	dropped, err := m.l.SetLaneMode(m.t.Context(), testTenant, testTopic, mode)
	require.NoError(rt, err)
	require.Equal(rt, want, dropped)
	m.mode, m.topic, m.wasOff = mode, true, m.wasOff || mode == LaneOff
	m.owes = mode == LaneOn || mode == LaneAuto && (m.used || len(m.lanes) == 1)
}

func (m *lanesMachine) reopen(rt *rapid.T) {
	to := m.dir
	if rapid.Bool().Draw(rt, "crash") {
		to = crash(m.t, m.dir)
	}
	require.NoError(rt, m.l.Close())
	l, err := Open(m.t.Context(), Options{Dir: to, SegmentBytes: testSegment})
	require.NoError(rt, err)
	m.l, m.dir = l, to
	for _, lane := range m.lanes {
		for _, msg := range lane.in("leased") {
			msg.state = "waiting"
		}
	}
}

func (m *lanesMachine) check(rt *rapid.T) {
	s, _ := m.l.Stats(testTenant, testTopic)
	work := m.lanes[""]
	require.Equal(rt, int64(len(work.in("fresh"))), s.Ready+s.Parked, "ready")
	require.Equal(rt, int64(len(work.in("waiting"))), s.Delayed, "delayed")
	require.Equal(rt, int64(len(work.in("leased"))), s.Leased, "leased")
	groups, err := m.l.Groups(testTenant, testTopic)
	if err == nil {
		require.Len(rt, groups, len(m.lanes)-1)
	}
	for _, g := range groups {
		lane := m.lanes[g.Name]
		require.Equal(rt, int64(len(lane.in("fresh"))), g.Lag, "lag of %s", g.Name)
		require.Equal(rt, int64(len(lane.in("waiting", "leased"))), g.InFlight, "in flight of %s", g.Name)
		require.Equal(rt, int64(len(lane.in("dead"))), g.DeadLetters, "dead letters of %s", g.Name)
	}
}

func (m *lanesMachine) checkStored(rt *rapid.T) {
	m.settled()
	require.NoError(rt, m.l.submit(m.t.Context(), &request{}))
	requireCounted(rt, m.l)
	tp := m.l.find(TopicName{testTenant, testTopic})
	if tp == nil {
		return
	}
	var got []uint64
	require.NoError(rt, m.l.store.Keys(tp.key().Messages(), tp.key().Messages(), func(key []byte) bool {
		got = append(got, store.Position(key))
		return true
	}))
	require.Equal(rt, slices.Sorted(maps.Keys(m.stored())), got, "stored")
	pointers := map[string]bool{}
	for level := range 256 {
		prefix := tp.key().Priorities(uint8(level))
		require.NoError(rt, m.l.store.Keys(prefix, prefix, func(key []byte) bool {
			pointers[fmt.Sprint(level, store.Position(key))] = true
			return true
		}))
	}
	for _, msg := range m.lanes[""].in("fresh") {
		if level := m.lanes[""].level(msg); level > 0 {
			require.Contains(rt, pointers, fmt.Sprint(level, msg.position))
			delete(pointers, fmt.Sprint(level, msg.position))
		}
	}
	if !m.wasOff { // else pointers stay for messages that groups still need
		require.Empty(rt, pointers)
	}
}

func TestLanesAgreeWithAModelThroughCrashes(t *testing.T) {
	lowerChecks(t, 30)
	rapid.Check(t, func(rt *rapid.T) {
		inBubble(t, func(t *testing.T) { //nolint:thelper // it is the test
			dir := t.TempDir()
			l, err := Open(t.Context(), Options{Dir: dir, SegmentBytes: testSegment})
			require.NoError(rt, err)
			m := &lanesMachine{
				t: t, dir: dir, l: l, all: map[uint64]*laneMessage{}, owes: true,
				lanes: map[string]*laneModel{"": {messages: map[uint64]*laneMessage{}}},
			}
			defer func() { require.NoError(rt, m.l.Close()) }()
			if rapid.Bool().Draw(rt, "ordered") {
				require.NoError(rt, l.SetOrdering(t.Context(), testTenant, testTopic, "", OrderKey))
				m.lanes[""].ordered, m.topic = true, true
			}
			rt.Repeat(map[string]func(*rapid.T){
				"publish": m.publish, "publish2": m.publish, "create": m.create, "delete": m.drop, "reset": m.reset,
				"claim": m.claim, "claim2": m.claim, "claim3": m.claim, "settle": m.settle, "settle2": m.settle,
				"settle3": m.settle, "dead": m.moveDead, "mode": m.setMode, "reopen": m.reopen,
				"store":  func(rt *rapid.T) { require.NoError(rt, m.l.submit(t.Context(), &request{})) },
				"stored": m.checkStored,
				"":       m.check,
			})
			m.checkStored(rt)
		})
	})
}
