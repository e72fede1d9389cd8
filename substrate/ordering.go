package substrate

import "slices"

// In an ordered lane one holder at a time has messages of a key, in their order. The first message of a key that is not
// done blocks the later ones: what a claim meets of these is parked, in memory by its position alone, and not looked at
// again until the key is free. A change of the lane's ordering holds for what is met from then on.

// keyQueue is what is not done of one ordering key, but for what the cursor has not reached.
type keyQueue struct {
	hash    uint64
	pending []uint64 // positions, rising: parked messages and flights
	leased  int      // of the flights; all of one holder
	awake   uint64   // the position that may be claimed now, or when its time comes: the first; 0 while the key is held
	loaded  []*entry // what was read ahead of the parked messages at the front
	index   int      // in the lane's runnable, or notTimed
}

func (q *keyQueue) before(r *keyQueue) bool { return q.awake < r.awake }
func (q *keyQueue) place() *int             { return &q.index }

// key returns the hash under which the lane orders a message, 0 if it is free.
func (ln *lane) key(o *origin) uint64 {
	switch ln.ordering {
	case OrderKey:
		return o.order
	case OrderTopic:
		return wholeTopic
	case OrderNone:
	}
	return 0
}

// queueOf returns the queue of a key, which it makes if there is none, or nil for 0.
func (ln *lane) queueOf(hash uint64) *keyQueue {
	if hash == 0 {
		return nil
	}
	q := ln.keys[hash]
	if q == nil {
		q = &keyQueue{hash: hash, index: notTimed}
		ln.keys[hash] = q
	}
	return q
}

func (q *keyQueue) insert(position uint64) {
	if n := len(q.pending); n == 0 || q.pending[n-1] < position {
		q.pending = append(q.pending, position)
		return
	}
	if i, is := slices.BinarySearch(q.pending, position); !is {
		q.pending = slices.Insert(q.pending, i, position)
		q.loaded = nil
	}
}

func (q *keyQueue) drop(position uint64) {
	i, is := slices.BinarySearch(q.pending, position)
	switch {
	case !is:
	case i == 0:
		q.pending = q.pending[1:]
	default:
		q.pending = slices.Delete(q.pending, i, i+1)
	}
	q.unload(position)
}

// unload forgets what was read ahead up to position.
func (q *keyQueue) unload(position uint64) {
	n := 0
	for n < len(q.loaded) && q.loaded[n].position <= position {
		n++
	}
	q.loaded = q.loaded[n:]
}

// park sets a message aside until the earlier ones of its key are done.
func (ln *lane) park(position, hash uint64) {
	q := ln.queueOf(hash)
	q.insert(position)
	ln.parked.add(position)
	ln.parkedN++
	ln.settleKey(q)
}

func (ln *lane) unpark(position uint64) {
	ln.parked.remove(position)
	ln.parkedN--
}

// dropParked takes a message that expired, or that is not wanted any more, out of its key. likely is what the key should
// be: another, if the lane's ordering was changed since.
func (ln *lane) dropParked(position, likely uint64) {
	q := ln.keys[likely]
	if q == nil || !q.holds(position) {
		for _, other := range ln.keys {
			if other.holds(position) {
				q = other
			}
		}
	}
	q.drop(position)
	ln.unpark(position)
	ln.settleKey(q)
}

func (q *keyQueue) holds(position uint64) bool {
	_, is := slices.BinarySearch(q.pending, position)
	return is
}

// settleKey wakes the first message of a key if nobody holds the key, and puts to sleep what was awake before.
func (ln *lane) settleKey(q *keyQueue) {
	if q == nil {
		return
	}
	first := uint64(0)
	if q.leased == 0 && len(q.pending) > 0 {
		first = q.pending[0]
	}
	if first != q.awake || first != 0 && ln.flights[first] != nil && q.index != notTimed {
		ln.sleep(q)
		q.awake = first
		ln.wakeFirst(q)
	}
	if len(q.pending) == 0 {
		delete(ln.keys, q.hash)
	}
}

func (ln *lane) sleep(q *keyQueue) {
	if f := ln.flights[q.awake]; f != nil && !f.leased {
		ln.unschedule(f)
	}
	if q.index != notTimed {
		ln.runnable.remove(q)
		q.index = notTimed
	}
}

func (ln *lane) wakeFirst(q *keyQueue) {
	if q.awake == 0 {
		return
	}
	if f := ln.flights[q.awake]; f != nil {
		ln.schedule(f)
	} else {
		ln.runnable.push(q)
	}
}
