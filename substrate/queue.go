package substrate

import (
	"context"
	"sync"

	"github.com/longshore/longshore/limits"
)

// queue holds the requests that wait for the committer. It wakes the committer once as many wait as that expects, not for
// each: while a group forms, the processor belongs to those who make the requests.
type queue struct {
	wake chan struct{} // has one when the committer should look

	mu       sync.Mutex
	requests []*request
	expected int           // the committer is woken when so many wait
	taken    chan struct{} // closed by the next take, if somebody waits for room; else nil
	closed   bool
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1), expected: 1} }

// put appends a request. While limits.CommitGroupRequests wait, it waits for room until ctx ends. It returns ErrClosed
// after close.
func (q *queue) put(ctx context.Context, r *request) error {
	for {
		q.mu.Lock()
		if q.closed {
			q.mu.Unlock()
			return ErrClosed
		}
		if len(q.requests) < limits.CommitGroupRequests {
			q.requests = append(q.requests, r)
			q.signal()
			q.mu.Unlock()
			return nil
		}
		if q.taken == nil {
			q.taken = make(chan struct{})
		}
		taken := q.taken
		q.mu.Unlock()
		select {
		case <-taken:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// signal wakes the committer if as many wait as it expects. q.mu is held.
func (q *queue) signal() {
	if len(q.requests) < q.expected {
		return
	}
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// unsignal takes back a signal that was not seen yet. q.mu is held.
func (q *queue) unsignal() {
	select {
	case <-q.wake:
	default:
	}
}

// expect sets how many requests, at least 1, wake the committer, and returns how many wait.
func (q *queue) expect(n int) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.expected = min(n, limits.CommitGroupRequests)
	q.unsignal()
	q.signal()
	return len(q.requests)
}

// take moves what waits to the end of requests. From now on every request wakes the committer, until expect is called.
func (q *queue) take(requests []*request) []*request {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.expected = 1
	q.unsignal()
	requests = append(requests, q.requests...)
	clear(q.requests)
	q.requests = q.requests[:0]
	q.makeRoom()
	return requests
}

// close refuses what comes later. What waits is still to be taken.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.makeRoom()
}

func (q *queue) makeRoom() {
	if q.taken != nil {
		close(q.taken)
		q.taken = nil
	}
}

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.requests)
}
