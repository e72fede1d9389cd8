package dispatcher

import "context"

// work is what is done in a turn.
type work struct {
	do         func()
	stop, held context.Context // once one of them is done, it isn't begun
	err        error           // of that context
	over       chan struct{}   // closed when it is done, or won't be
}

// perform has the worker do something once the turn has come, and returns when that is done. It returns the error of the
// first context that was done before, and then nothing was done. The worker is given back as soon as it is done; the turn is
// to be ended all the same.
//
// Guests run on a goroutine of the worker, not on that of the delivery: one goroutine goes from guest to guest for as long as
// turns wait, so that what a guest uses stays near one processor and nobody has to be woken in between.
func (t *turn) perform(stop, held context.Context, do func()) error {
	work := &work{do: do, stop: stop, held: held, over: make(chan struct{})}
	w := t.workers
	w.mu.Lock()
	t.work = work
	if t.state == turnGranted { // the worker waits for it
		w.begun = append(w.begun, t)
		w.launch()
	}
	w.mu.Unlock()
	select {
	case <-work.over:
		return work.err
	case <-stop.Done():
	case <-held.Done():
	}
	w.mu.Lock()
	waiting := t.state == turnWaiting
	if waiting {
		t.work = nil // done will take it out of the queue
	}
	w.mu.Unlock()
	if waiting {
		return work.why()
	}
	<-work.over
	return work.err
}

// why returns why the work isn't to be begun; nil if it is.
func (k *work) why() error {
	if err := k.stop.Err(); err != nil {
		return err
	}
	return k.held.Err()
}

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
		// A turn that came together with a reason not to run doesn't count.
		if t.work.err = t.work.why(); t.work.err == nil {
			t.work.do()
		}
		over := t.work.over
		t = w.after(t)
		close(over)
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
