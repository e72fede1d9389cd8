package dispatcher

import "context"

// work is what is done in a turn. It is done at most once.
type work interface {
	// held returns why it isn't to be begun; nil if it is.
	held() error
	// do does it, on a goroutine of the worker.
	do()
	// over is told that it is done, or why it wasn't begun. The worker is another's by then.
	over(err error)
}

// assign has the worker do something once the turn has come. The worker is given back as soon as it is done; the turn is to be
// ended all the same.
//
// Guests run on a goroutine of the worker, not on that of the delivery: one goroutine goes from guest to guest for as long as
// turns wait, so that what a guest uses stays near one processor and nobody has to be woken in between.
func (t *turn) assign(k work) {
	w := t.workers
	w.mu.Lock()
	defer w.mu.Unlock()
	t.work = k
	if t.state == turnGranted { // the worker waits for it
		w.begun = append(w.begun, t)
		w.launch()
	}
}

// withdraw ends a turn that has not come, and reports whether it could: then this work won't be done, and isn't told so.
func (t *turn) withdraw(k work) bool {
	w := t.workers
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.state != turnWaiting || t.work != k {
		return false
	}
	t.work = nil
	w.end(t)
	w.launch()
	return true
}

// perform has the worker do something once the turn has come, and returns when that is done. It returns the error of the
// first context that was done before, and then nothing was done.
func (t *turn) perform(stop, held context.Context, do func()) error {
	k := &waited{stop: stop, lost: held, what: do, ended: make(chan error, 1)}
	t.assign(k)
	select {
	case err := <-k.ended:
		return err
	case <-stop.Done():
	case <-held.Done():
	}
	if t.withdraw(k) {
		return k.held()
	}
	return <-k.ended
}

// waited is work that somebody waits for.
type waited struct {
	stop, lost context.Context // once one of them is done, it isn't begun
	what       func()
	ended      chan error // has room
}

func (k *waited) held() error {
	if err := k.stop.Err(); err != nil {
		return err
	}
	return k.lost.Err()
}

func (k *waited) do() { k.what() }

func (k *waited) over(err error) { k.ended <- err }

// launch has those turns performed, each on a goroutine of its own, that were granted since the lock was taken.
func (w *workers) launch() {
	for _, t := range w.begun {
		w.crew.do(func() { w.performFrom(t) })
	}
	clear(w.begun)
	w.begun = w.begun[:0]
}

// performFrom performs a turn, and then those that are granted because it is over, until there is none.
func (w *workers) performFrom(t *turn) {
	for t != nil {
		k := t.work
		err := k.held() // a turn that came together with a reason not to run doesn't count
		if err == nil {
			k.do()
		}
		t = w.after(t)
		k.over(err)
	}
}

// after ends a turn and returns the one that its worker performs next; nil if there is none.
func (w *workers) after(t *turn) (next *turn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end(t)
	if len(w.begun) > 0 {
		next, w.begun = w.begun[0], w.begun[1:]
	}
	w.launch()
	return next
}
