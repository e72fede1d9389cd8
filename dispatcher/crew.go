package dispatcher

import (
	"sync"

	"github.com/longshore/longshore/limits"
)

// crew runs functions on goroutines that it keeps: a new one would have to grow its stack for every message. It is safe for
// concurrent use.
type crew struct {
	mu    sync.Mutex
	idle  []*hand // the one that was used last is last
	ended bool
	all   sync.WaitGroup
}

// hand is a goroutine of a crew.
type hand struct {
	next chan func() // closed to end it
}

// do runs f on a goroutine that runs nothing else.
func (c *crew) do(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.idle); n > 0 {
		h := c.idle[n-1]
		c.idle = c.idle[:n-1]
		h.next <- f // it has room, and waits
		return
	}
	c.all.Go(func() { c.work(&hand{next: make(chan func(), 1)}, f) })
}

// work runs f, and what comes after it.
func (c *crew) work(h *hand, f func()) {
	for ok := true; ok; {
		f()
		if !c.rest(h) {
			return
		}
		f, ok = <-h.next
	}
}

// rest puts a goroutine among those that wait, unless there are enough.
func (c *crew) rest(h *hand) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || len(c.idle) >= limits.IdleHands {
		return false
	}
	c.idle = append(c.idle, h)
	return true
}

// end returns when nothing runs any more. What is still to run runs.
func (c *crew) end() {
	c.mu.Lock()
	c.ended = true
	for _, h := range c.idle {
		close(h.next)
	}
	c.idle = nil
	c.mu.Unlock()
	c.all.Wait()
}
