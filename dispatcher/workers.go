package dispatcher

import (
	"context"
	"slices"
	"sync"
	"time"
)

// workers hands out the processors that run guests, in turns. The next one goes to the tenant that had the least execution
// lately, by its share, and within that to the consumer that has waited longest since it was last served; one consumer's
// turns come in the order of its messages. However many messages a consumer has in flight, its neighbour's next one waits for
// the guests that run now, not for those that wait.
//
// A turn may be alone: it begins once all that run have ended, and nothing begins before it is over.
//
// Who comes next is decided by next alone; the rest doesn't know. It is safe for concurrent use.
type workers struct {
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
}

// tenantTurns are the consumers of one tenant.
type tenantTurns struct {
	share      Share
	most       int    // turns at once
	used       usage  // its running are the turns that are not over
	lastServed uint64 // the value of workers.served at its last turn
	held       uint64 // how often it was passed over because it had as many turns as it may
	consumers  map[string]*consumerTurns
	waiting    []*consumerTurns
}

// consumerTurns are the turns that wait of one consumer, oldest first.
type consumerTurns struct {
	lastServed uint64
	turns      ring[*turn]
}

// turn is a place in the queue for a worker, and then the right to use one.
type turn struct {
	workers *workers
	tenant  *tenantTurns
	granted chan struct{} // closed when the worker is there
	alone   bool          // nothing runs beside it
	state   turnState     // guarded by workers.mu
	began   time.Time     // when it was granted
	fuel    int64         // that it used: see spent
}

type turnState uint8

const (
	turnWaiting turnState = iota
	turnGranted
	turnOver
)

// newWorkers makes n workers, for tenants with these shares and caps.
func newWorkers(n int, shares map[string]Share, caps map[string]Caps) *workers {
	return &workers{free: n, tenants: make(map[string]*tenantTurns), shares: shares, caps: caps, start: time.Now()}
}

// seconds returns a time as the seconds since the workers were made.
func (w *workers) seconds(at time.Time) float64 { return at.Sub(w.start).Seconds() }

// enqueue takes a place in the queue, for a turn that is alone or not. The turn must be ended by done.
func (w *workers) enqueue(tenant, consumer string, alone bool) *turn {
	t := &turn{workers: w, granted: make(chan struct{}), alone: alone}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.push(tenant, consumer, t)
	w.grant()
	return t
}

// wait returns nil once the turn has come, or the error of the first context that is done. Its caller may then run a
// guest, and ends the turn in either case.
func (t *turn) wait(stop, held context.Context) error {
	select {
	case <-t.granted:
	case <-stop.Done():
	case <-held.Done():
	}
	// A turn that came together with a reason not to run doesn't count.
	if err := stop.Err(); err != nil {
		return err
	}
	return held.Err()
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
	if t.state == turnGranted {
		w.free++
		w.running--
		w.account(t)
	}
	t.state = turnOver
	if w.alone == t {
		w.alone = nil
	}
	w.grant()
}

// account counts what a turn that ends has cost.
func (w *workers) account(t *turn) {
	now := time.Now()
	began, c := w.seconds(t.began), cost(now.Sub(t.began), t.fuel)
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
	if t := w.alone; t != nil && w.running == 0 && t.state == turnWaiting {
		w.begin(t)
	}
}

func (w *workers) begin(t *turn) {
	t.state, t.began = turnGranted, time.Now()
	w.free--
	w.running++
	w.used.begin(w.seconds(t.began))
	t.tenant.used.begin(w.seconds(t.began))
	close(t.granted)
}

// forget drops what is known of a consumer that is gone. Its tenant's execution still counts.
func (w *workers) forget(tenant, consumer string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if tt := w.tenants[tenant]; tt != nil {
		delete(tt.consumers, consumer) // turns that are over may still be in the queue
	}
}

func (w *workers) push(tenant, consumer string, t *turn) {
	tt := w.tenants[tenant]
	if tt == nil {
		tt = &tenantTurns{share: w.shares[tenant].withDefaults(), most: w.caps[tenant].turns(), consumers: make(map[string]*consumerTurns)}
		w.tenants[tenant] = tt
	}
	ct := tt.consumers[consumer]
	if ct == nil {
		ct = &consumerTurns{}
		tt.consumers[consumer] = ct
	}
	if len(tt.waiting) == 0 {
		w.waiting = append(w.waiting, tt)
	}
	if ct.turns.len() == 0 {
		tt.waiting = append(tt.waiting, ct)
	}
	t.tenant = tt
	ct.turns.push(t)
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
	t := ct.turns.pop()
	if t.state != turnOver {
		w.served++
		tt.lastServed, ct.lastServed = w.served, w.served
	}
	if ct.turns.len() == 0 {
		tt.waiting = slices.Delete(tt.waiting, consumer, consumer+1)
	}
	if len(tt.waiting) == 0 {
		w.waiting = slices.Delete(w.waiting, tenant, tenant+1)
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
	clock := w.seconds(now)
	all := w.used.recent(now, clock)
	most, first := -1, rank{}
	for i, tt := range w.waiting {
		if !tt.mayRun() {
			tt.held++
			continue
		}
		r := tt.share.rank(tt.used.recent(now, clock), all, tt.lastServed)
		if most < 0 || r.before(first) {
			most, first = i, r
		}
	}
	return most
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
