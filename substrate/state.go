package substrate

import (
	"container/heap"
	"sync"

	"github.com/longshore/longshore/limits"
)

// state is all that the log knows beside the messages themselves. It is a function of the frames: apply changes it, in
// the order of the journal, and nothing else does, but for the caches of topic, which can be made again from the store.
type state struct {
	topics       map[TopicName]*topic
	perTenant    map[string]int // number of topics
	nextPosition uint64
	effects      *effects            // what the store is owed since the last cut
	touched      map[*topic]struct{} // topics whose waiting claimers should look again
}

func newState() *state {
	return &state{
		topics:       map[TopicName]*topic{},
		perTenant:    map[string]int{},
		nextPosition: 1,
		effects:      newEffects(),
		touched:      map[*topic]struct{}{},
	}
}

// topic is the state of one topic and of its default lane. Lanes of consumer groups will stand beside it.
type topic struct {
	name   TopicName
	paused bool
	stored Policy

	cursor  uint64 // positions below it were claimed at least once, or are done
	ready   int64  // messages from the cursor on
	leased  int64  // flights under a lease
	dead    int64
	flights map[uint64]*flight // claimed and not done: under a lease, or waiting for a retry
	timers  timerHeap          // the flights, by when they may be claimed again

	published, acked, buried, redriven, discarded uint64

	tail   []*entry // messages that are not in the store yet, by position; settled ones are marked gone
	window []*entry // the next messages from the cursor on, by position
	whole  bool     // the window holds all of them
	wbytes int64    // bytes of the window

	evictions uint64       // how often the tail was cut from the front
	filling   sync.Mutex   // held by whoever fills the window; taken before Log.mu
	oldest    oldestCached // of the messages from the cursor on
}

// entry is a message that is held in memory. body is its record, nil if it has to be read again (it does not check).
type entry struct {
	position uint64
	origin   origin
	body     []byte
	gone     bool // done before it reached the store
}

// flight is a message that was claimed at least once, or redriven.
type flight struct {
	position uint64
	leased   bool
	at       int64 // unix ns: end of the lease, or when it may be claimed again
	attempt  int
	token    uint64 // the number of the claim's frame
	reason   string // of the last failure
	origin   origin

	index  int  // in the topic's timers
	stored bool // the store has a record of it
}

// origin is what stays the same about a message while it is tried, dies and is redriven.
type origin struct {
	id           messageID
	payloadBytes int
	redriven     int
	operator     string // who redrove it last
}

// deadRecord is a dead letter of the default lane.
type deadRecord struct {
	attempts int
	reason   string
	died     int64 // unix ns
	receipt  []byte
	origin   origin
}

func newTopic(name TopicName) *topic {
	return &topic{name: name, flights: map[uint64]*flight{}, whole: true}
}

// topic returns the named topic, which it makes if there is none.
func (s *state) topic(name TopicName) *topic {
	t := s.topics[name]
	if t == nil {
		t = newTopic(name)
		s.insert(t)
	}
	return t
}

func (s *state) insert(t *topic) {
	s.topics[t.name] = t
	s.perTenant[t.name.Tenant]++
}

// backlog is what max_depth counts.
func (t *topic) backlog() int64 { return t.ready + int64(len(t.flights)) }

func (t *topic) addFlight(f *flight) {
	t.flights[f.position] = f
	heap.Push(&t.timers, f)
	if f.leased {
		t.leased++
	}
}

func (t *topic) removeFlight(f *flight) {
	t.setLeased(f, false)
	heap.Remove(&t.timers, f.index)
	delete(t.flights, f.position)
}

// moveFlight changes when a flight may be claimed again.
func (t *topic) moveFlight(f *flight, leased bool, at int64) {
	t.setLeased(f, leased)
	f.at = at
	heap.Fix(&t.timers, f.index)
}

func (t *topic) setLeased(f *flight, leased bool) {
	if f.leased == leased {
		return
	}
	f.leased = leased
	if leased {
		t.leased++
	} else {
		t.leased--
	}
}

// enqueue takes a new message into the tail, and into the window if that reaches so far.
func (t *topic) enqueue(e *entry) {
	t.tail = append(t.tail, e)
	if t.whole {
		t.whole = t.extendWindow(e)
	}
}

// extendWindow appends an entry, unless the window is full.
func (t *topic) extendWindow(e *entry) bool {
	if len(t.window) >= limits.WindowMessages || t.wbytes+int64(len(e.body)) > limits.WindowBytes && len(t.window) > 0 {
		return false
	}
	t.window = append(t.window, e)
	t.wbytes += int64(len(e.body))
	return true
}

// advance moves the cursor past position and drops what lies behind it from the window.
func (t *topic) advance(position uint64) {
	t.cursor = position + 1
	n := 0
	for n < len(t.window) && t.window[n].position < t.cursor {
		t.wbytes -= int64(len(t.window[n].body))
		t.window[n] = nil
		n++
	}
	t.window = t.window[n:]
}

// inTail returns the entry at position, if the message is not in the store yet.
func (t *topic) inTail(position uint64) *entry {
	lo, hi := 0, len(t.tail)
	for lo < hi {
		if mid := (lo + hi) / 2; t.tail[mid].position < position {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(t.tail) && t.tail[lo].position == position && !t.tail[lo].gone {
		return t.tail[lo]
	}
	return nil
}

// timerHeap orders flights by when they may be claimed again, then by position. See container/heap.
type timerHeap []*flight

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].before(h[j]) }

func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *timerHeap) Push(x any) {
	f := x.(*flight) //nolint:forcetypeassert // container/heap gives back what addFlight gave it
	f.index = len(*h)
	*h = append(*h, f)
}

// Pop implements heap.Interface.
func (h *timerHeap) Pop() any {
	old := *h
	f := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return f
}

func (f *flight) before(g *flight) bool {
	if f.at != g.at {
		return f.at < g.at
	}
	return f.position < g.position
}

// due calls yield for the flights that may be claimed at now, in order, until it returns false. It costs what it yields:
// the frontier holds the heap's nodes whose parents were yielded.
func (h timerHeap) due(now int64, yield func(*flight) bool) {
	var frontier timerFrontier
	push := func(i int) {
		if i < len(h) && h[i].at <= now {
			heap.Push(&frontier, frontierNode{h[i], i})
		}
	}
	for push(0); len(frontier) > 0; {
		n := heap.Pop(&frontier).(frontierNode) //nolint:forcetypeassert // as pushed above
		if !yield(n.flight) {
			return
		}
		push(2*n.index + 1)
		push(2*n.index + 2)
	}
}

type frontierNode struct {
	flight *flight
	index  int
}

type timerFrontier []frontierNode

func (h timerFrontier) Len() int           { return len(h) }
func (h timerFrontier) Less(i, j int) bool { return h[i].flight.before(h[j].flight) }
func (h timerFrontier) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *timerFrontier) Push(x any) {
	*h = append(*h, x.(frontierNode)) //nolint:forcetypeassert // as pushed by due
}

// Pop implements heap.Interface.
func (h *timerFrontier) Pop() any {
	old := *h
	n := old[len(old)-1]
	*h = old[:len(old)-1]
	return n
}
