package substrate

import (
	"time"

	"github.com/longshore/longshore/limits"
)

// muster decides how long the next group may form. Those whom a group answered mostly come again at once: with them the
// next flush carries everybody, and not only who came while the last one ran. So after each group the committer waits
// for as many requests as the group answered, beside those that wait already, but no longer than a flush takes. Where
// they don't come, because what they do between two requests takes longer, it soon stops waiting.
type muster struct {
	timer    *time.Timer
	flush    time.Duration // that the last flush took
	expected int           // requests that the wait under way is for; 0 if there is none
	misses   int           // waits in a row that were in vain
	skip     int           // groups that are not waited for
}

// mostMisses bounds how many groups go by without a wait after waits that were in vain.
const mostMisses = 16

func newMuster() muster { return muster{timer: stoppedTimer()} }

// begin expects the next group, after one of n requests was answered.
func (m *muster) begin(q *queue, n int) {
	switch {
	case n < 2 || m.flush == 0:
		q.expect(1)
	case m.skip > 0:
		m.skip--
		q.expect(1)
	default:
		m.expected = n + q.len()
		m.timer.Reset(min(m.flush, limits.CommitGroupWait))
		q.expect(m.expected)
	}
}

// formed ends the wait because the group is there.
func (m *muster) formed() {
	if m.expected > 0 {
		m.timer.Stop()
		m.expected, m.misses = 0, 0
	}
}

// end ends the wait because its time is over. Whoever has come is the next group.
func (m *muster) end(q *queue) {
	if came := q.expect(1); came < m.expected/2 {
		m.misses = min(m.misses+1, mostMisses)
		m.skip = m.misses
	}
	m.expected = 0
}
