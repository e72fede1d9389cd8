package dispatcher

import "context"

// leave gives the worker of a turn back for a while, in the middle of its work. That while doesn't count as execution, and
// nobody waits because the turn is alone. The goroutine that performs the turn stays with it; another one performs those that
// are granted meanwhile.
func (t *turn) leave() {
	w := t.workers
	w.mu.Lock()
	defer w.mu.Unlock()
	w.take(t, turnAway)
	w.launch()
}

// comeBack waits for a worker again, before those turns of the consumer that have not begun. After the error of the first
// context that is done there is none, and what is left of the work is to end at once.
func (t *turn) comeBack(stop, held context.Context) error {
	back := t.queueAgain()
	select {
	case <-back:
	case <-stop.Done():
	case <-held.Done():
	}
	if err := stop.Err(); err != nil {
		return err
	}
	return held.Err()
}

// queueAgain takes a place in the queue, and returns what is closed when the worker is there.
func (t *turn) queueAgain() <-chan struct{} {
	w := t.workers
	w.mu.Lock()
	defer w.mu.Unlock()
	t.state, t.back = turnReturning, make(chan struct{})
	w.push(t)
	w.grant()
	w.launch()
	return t.back
}
