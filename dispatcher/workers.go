package dispatcher

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// workers hands out the processors that run guests, in turns. The next one goes to the tenant that had the least execution
// lately, by its share, and within that to the consumer that has waited longest since it was last served; one consumer's
// turns come in the order of its messages. However many messages a consumer has in flight, its neighbour's next one waits for
// the guests that run now, not for those that wait.
//
// A turn may be alone: it begins once all that run have ended, and nothing begins before it is over.
//
// A guest that runs for long is paused at one of its safe points when a tenant waits that is owed more: see pause.go.
//
// Who comes next is decided by next alone; the rest doesn't know. What is done in a turn is done on a goroutine of the worker:
// see perform.go. It is safe for concurrent use.
type workers struct {
	total int

	mu      sync.Mutex
	free    int
	running int    // turns granted and not over
	served  uint64 // turns granted so far
	alone   *turn  // that is alone, and runs, or comes next
	tenants map[string]*tenantTurns
	waiting []*tenantTurns
	shares  map[string]Share // by tenant; the others have the default
	start   time.Time        // from which seconds are counted
	used    usage            // by all tenants

	paused  int          // turns
	waiters atomic.Int64 // len(waiting), for who can't take the lock

	begun []*turn // granted turns whose work is known and that nobody performs yet
	crew  *crew
}

// tenantTurns are the consumers of one tenant.
type tenantTurns struct {
	share      Share
	used       usage
	lastServed uint64 // the value of workers.served at its last turn
	consumers  map[string]*consumerTurns
	waiting    []*consumerTurns
	paused     []*turn // come before them, oldest first
}

// waits reports whether the tenant has a turn that waits.
func (tt *tenantTurns) waits() bool { return len(tt.waiting)+len(tt.paused) > 0 }

// consumerTurns are the turns that wait of one consumer, oldest first.
type consumerTurns struct {
	lastServed uint64
	turns      ring[*turn]
}

// turn is a place in the queue for a worker, and then the right to use one.
type turn struct {
	workers *workers
	tenant  *tenantTurns
	alone   bool      // nothing runs beside it
	state   turnState // guarded by workers.mu, as all below
	work    *work     // what is done in it; nil until that is known
	began   time.Time // when it was granted, or went on
	fuel    int64     // that it used: see spent

	resumed chan struct{} // closed when a paused turn goes on
	held    time.Duration // until it was paused last
	charged float64       // seconds that it was charged for until then
}

type turnState uint8

const (
	turnWaiting turnState = iota
	turnGranted
	turnPaused
	turnOver
)

// newWorkers makes n workers, for tenants with these shares, on goroutines of a crew.
func newWorkers(n int, shares map[string]Share, c *crew) *workers {
	return &workers{crew: c, total: n, free: n, tenants: make(map[string]*tenantTurns), shares: shares, start: time.Now()}
}

// seconds returns a time as the seconds since the workers were made.
func (w *workers) seconds(at time.Time) float64 { return at.Sub(w.start).Seconds() }

// enqueue takes a place in the queue, for a turn that is alone or not. The turn must be ended by done.
func (w *workers) enqueue(tenant, consumer string, alone bool) *turn {
	t := &turn{workers: w, alone: alone}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.push(tenant, consumer, t)
	w.grant()
	w.launch()
	return t
}

// spent adds instructions to what the turn counts for.
func (t *turn) spent(fuel int64) {
	t.workers.mu.Lock()
	defer t.workers.mu.Unlock()
	t.fuel += fuel
}

// done gives the worker, or the place in the queue, back. It may be called more than once.
func (t *turn) done() {
	w := t.workers
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end(t)
	w.launch()
}

// end is done under the lock, without starting what is granted because of it.
func (w *workers) end(t *turn) {
	if t.state == turnOver {
		return
	}
	switch t.state {
	case turnGranted:
		w.free++
		w.running--
		w.account(t)
	case turnPaused:
		w.takePaused(t)
	}
	t.state = turnOver
	if w.alone == t {
		w.alone = nil
	}
	w.grant()
}

// account counts what a turn that ends, or pauses, has cost since it began, or went on.
func (w *workers) account(t *turn) {
	now := time.Now()
	t.held += now.Sub(t.began)
	began, c := w.seconds(t.began), max(cost(t.held, t.fuel)-t.charged, 0)
	t.charged += c
	w.used.end(now, began, c)
	t.tenant.used.end(now, began, c)
}

// grant gives free workers to those that wait.
func (w *workers) grant() {
	for w.free > 0 && w.alone == nil {
		t := w.next()
		if t == nil {
			return
		}
		if t.state == turnOver { // left the queue
			continue
		}
		if t.alone {
			w.alone = t
			break
		}
		w.begin(t)
	}
	for w.free > 0 && w.alone != nil && w.paused > 0 { // it waits for them too
		w.begin(w.anyPaused())
	}
	if t := w.alone; t != nil && w.running+w.paused == 0 && t.state == turnWaiting {
		w.begin(t)
	}
}

func (w *workers) begin(t *turn) {
	if t.state == turnPaused {
		w.takePaused(t)
		close(t.resumed)
	} else if t.work != nil {
		w.begun = append(w.begun, t)
	}
	t.state, t.began = turnGranted, time.Now()
	w.free--
	w.running++
	w.used.begin(w.seconds(t.began))
	t.tenant.used.begin(w.seconds(t.began))
}

func (w *workers) push(tenant, consumer string, t *turn) {
	tt := w.tenants[tenant]
	if tt == nil {
		tt = &tenantTurns{share: w.shares[tenant].withDefaults(), consumers: make(map[string]*consumerTurns)}
		w.tenants[tenant] = tt
	}
	ct := tt.consumers[consumer]
	if ct == nil {
		ct = &consumerTurns{}
		tt.consumers[consumer] = ct
	}
	w.join(tt)
	if ct.turns.len() == 0 {
		tt.waiting = append(tt.waiting, ct)
	}
	t.tenant = tt
	ct.turns.push(t)
}

// join puts a tenant, which is about to have one turn more that waits, among those that have any.
func (w *workers) join(tt *tenantTurns) {
	if !tt.waits() {
		w.waiting = append(w.waiting, tt)
		w.waiters.Store(int64(len(w.waiting)))
	}
}

// leave takes a tenant out if none of its turns waits any more.
func (w *workers) leave(tt *tenantTurns) {
	if !tt.waits() {
		w.waiting = slices.DeleteFunc(w.waiting, func(other *tenantTurns) bool { return other == tt })
		w.waiters.Store(int64(len(w.waiting)))
	}
}

// next takes the turn that comes next out of the queue; nil if none waits.
func (w *workers) next() *turn {
	if len(w.waiting) == 0 {
		return nil
	}
	tenant := w.owedMost()
	tt := w.waiting[tenant]
	defer w.leave(tt)
	if len(tt.paused) > 0 {
		w.served++
		tt.lastServed = w.served
		return tt.paused[0] // which begin takes out
	}
	consumer := tt.longest()
	ct := tt.waiting[consumer]
	t := ct.turns.pop()
	if t.state != turnOver {
		w.served++
		tt.lastServed, ct.lastServed = w.served, w.served
	}
	if ct.turns.len() == 0 {
		tt.waiting = slices.Delete(tt.waiting, consumer, consumer+1)
	}
	return t
}

// owedMost returns the index of the waiting tenant that is owed most.
func (w *workers) owedMost() int {
	if len(w.waiting) == 1 {
		return 0
	}
	now := time.Now()
	most, first := 0, rank{}
	for i, tt := range w.waiting {
		if r := w.rank(tt, now); i == 0 || r.before(first) {
			most, first = i, r
		}
	}
	return most
}

// rank returns how much a tenant is owed now.
func (w *workers) rank(tt *tenantTurns, now time.Time) rank {
	clock := w.seconds(now)
	return tt.share.rank(tt.used.recent(now, clock), w.used.recent(now, clock), tt.lastServed)
}

// longest returns the index of the consumer that has waited longest: the least lastServed, the first of them if they are
// equal.
func (tt *tenantTurns) longest() int {
	least := 0
	for i, ct := range tt.waiting {
		if ct.lastServed < tt.waiting[least].lastServed {
			least = i
		}
	}
	return least
}

// ring is a queue that reuses its memory.
type ring[T any] struct {
	items []T
	head  int
}

func (r *ring[T]) len() int { return len(r.items) - r.head }

func (r *ring[T]) push(v T) { r.items = append(r.items, v) }

// pop takes the oldest; there must be one.
func (r *ring[T]) pop() T {
	var none T
	v := r.items[r.head]
	r.items[r.head] = none
	r.head++
	if r.head*2 >= len(r.items) {
		n := copy(r.items, r.items[r.head:])
		clear(r.items[n:])
		r.items, r.head = r.items[:n], 0
	}
	return v
}
