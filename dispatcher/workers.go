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
	caps    map[string]Caps  // likewise: none
	start   time.Time        // from which seconds are counted
	used    usage            // by all tenants

	waiters atomic.Int64 // len(waiting), for who can't take the lock
	paused  int          // turns that are, for others

	publishing int // turns that left their worker to publish

	begun []*turn // granted turns whose work is known and that nobody performs yet
	crew  *crew
}

// tenantTurns are the consumers of one tenant.
type tenantTurns struct {
	share      Share
	most       int    // turns at once
	used       usage  // its running are the turns that are not over, nor away
	away       int    // turns that left their worker: each keeps what it runs in, and counts for most
	lastServed uint64 // the value of workers.served at its last turn
	held       uint64 // how often it was passed over because it had as many turns as it may
	consumers  map[string]*consumerTurns
	waiting    []*consumerTurns
}

// consumerTurns are the turns that wait of one consumer, oldest first.
type consumerTurns struct {
	lastServed uint64
	turns      ring[*turn]
	back       ring[*turn] // that had begun before: they come first
}

func (c *consumerTurns) len() int { return c.turns.len() + c.back.len() }

func (c *consumerTurns) push(t *turn) {
	if t.state == turnReturning {
		c.back.push(t)
	} else {
		c.turns.push(t)
	}
}

// pop takes the turn that comes first; there must be one.
func (c *consumerTurns) pop() *turn {
	if c.back.len() > 0 {
		return c.back.pop()
	}
	return c.turns.pop()
}

// turn is a place in the queue for a worker, and then the right to use one.
type turn struct {
	workers *workers
	of      turnOwner
	tenant  *tenantTurns
	alone   bool          // nothing runs beside it
	state   turnState     // guarded by workers.mu, as all below
	work    work          // what is done in it; nil until that is known
	began   time.Time     // when it was granted
	fuel    int64         // that it used: see spent
	back    chan struct{} // closed when it has a worker again: see leave.go
	ran     time.Duration // with a worker, before it left
	counted float64       // as its cost, before it left
}

// turnOwner says whose turn it is.
type turnOwner struct{ tenant, consumer string }

type turnState uint8

const (
	turnWaiting turnState = iota
	turnGranted
	turnAway      // it gave its worker back, and will want one again
	turnReturning // it waits for one again
	turnOver
)

// newWorkers makes n workers, for tenants with these shares and caps, on goroutines of a crew.
func newWorkers(n int, shares map[string]Share, caps map[string]Caps, c *crew) *workers {
	return &workers{crew: c, total: n, free: n, tenants: make(map[string]*tenantTurns), shares: shares, caps: caps, start: time.Now()}
}

// seconds returns a time as the seconds since the workers were made.
func (w *workers) seconds(at time.Time) float64 { return at.Sub(w.start).Seconds() }

// enqueue takes a place in the queue, for a turn that is alone or not. The turn must be ended by done.
func (w *workers) enqueue(tenant, consumer string, alone bool) *turn {
	t := &turn{workers: w, of: turnOwner{tenant, consumer}, alone: alone}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.push(t)
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
	if t.state != turnOver {
		w.take(t, turnOver)
	}
}

// take takes the worker from a turn, if it has one, and gives it to the next one.
func (w *workers) take(t *turn, then turnState) {
	switch t.state {
	case turnGranted:
		w.free++
		w.running--
		w.account(t)
	case turnAway, turnReturning:
		t.tenant.away--
	case turnWaiting, turnOver:
	}
	if t.state = then; then == turnAway {
		t.tenant.away++
	}
	if w.alone == t {
		w.alone = nil
	}
	w.grant()
}

// account counts what a turn has cost since it was granted.
func (w *workers) account(t *turn) {
	now := time.Now()
	t.ran += now.Sub(t.began)
	c := cost(t.ran, t.fuel) - t.counted // its fuel is known only once the guest has returned
	t.counted += c
	began := w.seconds(t.began)
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
	if t := w.alone; t != nil && w.running == 0 && t.state != turnGranted {
		w.begin(t)
	}
}

func (w *workers) begin(t *turn) {
	returns := t.state == turnReturning
	if returns {
		t.tenant.away--
	}
	t.state, t.began = turnGranted, time.Now()
	w.free--
	w.running++
	w.used.begin(w.seconds(t.began))
	t.tenant.used.begin(w.seconds(t.began))
	if returns {
		close(t.back)
	} else if t.work != nil {
		w.begun = append(w.begun, t)
	}
}

// forget drops what is known of a consumer that is gone. Its tenant's execution still counts.
func (w *workers) forget(tenant, consumer string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if tt := w.tenants[tenant]; tt != nil {
		delete(tt.consumers, consumer) // turns that are over may still be in the queue
	}
}

func (w *workers) push(t *turn) {
	tt := w.tenants[t.of.tenant]
	if tt == nil {
		tt = &tenantTurns{
			share: w.shares[t.of.tenant].withDefaults(), most: w.caps[t.of.tenant].turns(), consumers: make(map[string]*consumerTurns),
		}
		w.tenants[t.of.tenant] = tt
	}
	ct := tt.consumers[t.of.consumer]
	if ct == nil {
		ct = &consumerTurns{}
		tt.consumers[t.of.consumer] = ct
	}
	if len(tt.waiting) == 0 {
		w.waiting = append(w.waiting, tt)
		w.waiters.Store(int64(len(w.waiting)))
	}
	if ct.len() == 0 {
		tt.waiting = append(tt.waiting, ct)
	}
	t.tenant = tt
	ct.push(t)
}

// next takes the turn that comes next out of the queue; nil if none waits that may begin.
func (w *workers) next() *turn {
	tenant := w.owedMost()
	if tenant < 0 {
		return nil
	}
	tt := w.waiting[tenant]
	consumer := tt.longest()
	ct := tt.waiting[consumer]
	t := ct.pop()
	if t.state != turnOver {
		w.served++
		tt.lastServed, ct.lastServed = w.served, w.served
	}
	if ct.len() == 0 {
		tt.waiting = slices.Delete(tt.waiting, consumer, consumer+1)
	}
	if len(tt.waiting) == 0 {
		w.waiting = slices.Delete(w.waiting, tenant, tenant+1)
		w.waiters.Store(int64(len(w.waiting)))
	}
	return t
}

// owedMost returns the index of the waiting tenant that is owed most, among those that may have another turn; -1 if there is
// none.
func (w *workers) owedMost() int {
	if len(w.waiting) == 1 && w.waiting[0].mayRun() {
		return 0
	}
	now := time.Now()
	most, first := -1, rank{}
	for i, tt := range w.waiting {
		if !tt.mayRun() {
			tt.held++
			continue
		}
		if r := w.rank(tt, now); most < 0 || r.before(first) {
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

// longest returns the index of the consumer that has waited longest, among those of whose turns one may begin: the least
// lastServed, the first of them if they are equal; -1 if there is none.
func (tt *tenantTurns) longest() int {
	full, least := tt.isFull(), -1
	for i, ct := range tt.waiting {
		if full && ct.back.len() == 0 {
			continue
		}
		if least < 0 || ct.lastServed < tt.waiting[least].lastServed {
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
