package substrate

import (
	"time"

	"github.com/longshore/longshore/limits"
)

// A relaxed topic's publishes and acknowledgements are answered once they are written, and flushed a little later: when
// its policy's number of them is reached, or FlushDelay after the first. Frames are flushed in their order, so that
// what is durable is always a prefix; a flush for a strict topic makes everything before it durable too.

// relaxed reports whether n messages, all of whose topics are relaxed, may be answered before they are on disk, and counts
// them. Acknowledgements and their outbox follow the topic that was acknowledged. Log.mu is held.
func (l *Log) relaxed(n int, topicOf func(i int) TopicName) bool {
	if n == 0 || len(l.admission.config) == 0 && !l.state.policies {
		return false // nobody has a policy
	}
	counts := map[TopicName]int64{}
	for i := range n {
		counts[topicOf(i)]++
	}
	for name, more := range counts {
		if l.unflushed[name]+more > l.admission.view(l.state, name).MaxUnflushed.Value {
			return false
		}
	}
	for name, more := range counts {
		l.unflushed[name] += more
	}
	return true
}

// flushed notes that everything is on disk, and how long that took.
func (c *committer) flushed(took time.Duration) {
	c.log.flushes.Add(1)
	c.log.flushNanos.Add(int64(took))
	c.log.mu.Lock()
	clear(c.log.unflushed)
	c.log.mu.Unlock()
	c.flush.Stop()
	c.flushing = false
}

// flushLater sees to it that what was written without a flush gets one.
func (c *committer) flushLater() {
	if !c.flushing && len(c.log.unflushed) > 0 {
		c.flush.Reset(limits.FlushDelay)
		c.flushing = true
	}
}

// sync flushes what was written.
func (c *committer) sync() error {
	start := time.Now()
	if err := c.log.journal.Sync(); err != nil {
		return c.fail(err)
	}
	c.marked()
	c.flushed(time.Since(start))
	return nil
}
