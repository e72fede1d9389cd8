package substrate

import (
	"context"
	"time"
)

// WaitReady returns nil once a claim of the lane may find something: at once, or after the publish, the retry that comes
// due, the lease that runs out, the redrive or the resume that makes it so. Another claimer may be faster. It returns
// ctx's error when that ends, and ErrClosed. Neither the topic nor the group need exist yet.
func (l *Log) WaitReady(ctx context.Context, tenant, topic, lane string) error {
	if err := validName(tenant, topic); err != nil {
		return err
	}
	if err := validLane(lane); err != nil {
		return err
	}
	for {
		if l.Err() != nil {
			return ErrClosed
		}
		ready, next, changed := l.readiness(laneName{TopicName{tenant, topic}, lane})
		if ready {
			return nil
		}
		if err := l.sleep(ctx, next, changed); err != nil {
			return err
		}
	}
}

// readiness reports whether something may be claimed now, else when at the earliest (zero: not by time alone), and a
// channel that is closed when the topic changes.
func (l *Log) readiness(name laneName) (ready bool, next time.Time, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := l.state.existing(name)
	if ln != nil && ln.unclaimed() {
		return true, time.Time{}, nil
	}
	if ln != nil && !ln.topic.paused && !ln.paused {
		if ln.ready() > 0 && !ln.stalled || ln.runnable.len() > 0 {
			return true, time.Time{}, nil
		}
		if ln.timers.len() > 0 {
			next = time.Unix(0, ln.timers.first().at)
			if !next.After(l.now()) {
				return true, time.Time{}, nil
			}
		}
	}
	ch := l.waiters[name.topic]
	if ch == nil {
		ch = make(chan struct{})
		l.waiters[name.topic] = ch
	}
	return false, next, ch
}

// unclaimed reports whether the lane is owed nothing only because nobody claimed from it yet: the first claim changes that.
func (ln *lane) unclaimed() bool {
	return ln.name == "" && !ln.owes && ln.topic.mode == LaneAuto
}

func (l *Log) sleep(ctx context.Context, next time.Time, changed <-chan struct{}) error {
	var due <-chan time.Time
	if !next.IsZero() {
		timer := time.NewTimer(next.Sub(l.now()))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-changed:
	case <-due:
	case <-ctx.Done():
		return ctx.Err()
	case <-l.stop:
		return ErrClosed
	case <-l.failed:
		return ErrClosed
	}
	return nil
}

// wake tells the waiting claimers of the topics that the last group changed. The group is durable by now.
func (l *Log) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for t := range l.state.touched {
		if ch := l.waiters[t.name]; ch != nil {
			close(ch)
			delete(l.waiters, t.name)
		}
	}
	clear(l.state.touched)
}
