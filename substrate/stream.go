package substrate

import (
	"cmp"
	"slices"
	"sync"

	"github.com/longshore/longshore/limits"
)

// stream is the fresh messages of a lane of one priority, in order of their positions: those that nobody claimed yet.
// Only the next few are in memory.
type stream struct {
	lane   *lane
	level  uint8  // the priority of its messages in the default lane; a group has one stream for all
	ready  int64  // messages from the cursor on
	cursor uint64 // positions below it were claimed, parked or done

	window []*entry // the next messages from the cursor on, by position
	whole  bool     // the window holds all of them
	wbytes int64    // bytes of the window
	unread uint64   // the store and the tail are to be read from this position on, when the window is empty

	// aside are positions from unread on that are not fresh any more, although nobody claimed them in their turn: they
	// expired, and may have been redriven since.
	aside positions

	jumps   int          // how often the stream was made to begin elsewhere
	filling sync.Mutex   // held by whoever fills the window; taken before Log.mu
	oldest  oldestCached // of the messages from the cursor on
}

// offer takes a new message, into the window if that reaches so far.
func (st *stream) offer(e *entry) {
	if st.ready == 0 { // nothing before it is fresh
		st.jump(e.position, 0, positions{})
	}
	st.ready++
	if st.whole {
		st.whole = st.extendWindow(e)
	}
}

// extendWindow appends an entry, unless the window is full.
func (st *stream) extendWindow(e *entry) bool {
	if len(st.window) >= limits.WindowMessages || st.wbytes+int64(len(e.body)) > limits.WindowBytes && len(st.window) > 0 {
		return false
	}
	st.window = append(st.window, e)
	st.wbytes += int64(len(e.body))
	st.unread = e.position + 1
	return true
}

// leaveOut takes a position out of the fresh messages.
func (st *stream) leaveOut(position uint64) {
	i := slices.IndexFunc(st.window, func(e *entry) bool { return e.position == position })
	switch {
	case i >= 0:
		st.wbytes -= int64(len(st.window[i].body))
		st.window = slices.Delete(st.window, i, i+1)
	case position >= st.unread:
		st.aside.add(position)
	}
}

// advance moves the cursor past position and drops what lies behind it from the window.
func (st *stream) advance(position uint64) {
	st.cursor = max(st.cursor, position+1)
	st.unread = max(st.unread, st.cursor)
	n := 0
	for n < len(st.window) && st.window[n].position < st.cursor {
		st.wbytes -= int64(len(st.window[n].body))
		st.window[n] = nil
		n++
	}
	st.window = st.window[n:]
}

// jump makes the stream begin at a position, with so many messages from there on.
func (st *stream) jump(position uint64, ready int64, aside positions) {
	st.cursor, st.unread, st.ready, st.aside = position, position, ready, aside
	st.window, st.wbytes, st.whole = nil, 0, ready == 0
	st.oldest = oldestCached{}
	st.jumps++
}

// fresh reports whether the message at position belongs to the stream and was not claimed, parked or done yet.
func (st *stream) fresh(position uint64) bool {
	if position < st.cursor || st.lane.skipped.has(position) || st.lane.topic.quarantined.has(position) {
		return false
	}
	if position < st.unread && position >= st.cursor {
		_, is := slices.BinarySearchFunc(st.window, position, func(e *entry, p uint64) int { return cmp.Compare(e.position, p) })
		return is
	}
	return !st.aside.has(position)
}
