package substrate

import (
	"context"
	"errors"
	"sync"

	"github.com/longshore/longshore/substrate/internal/store"
)

// ErrTailClosed is returned by Tail.Next after Close, and after the context of Log.Tail has ended.
var ErrTailClosed = errors.New("the tail is closed")

// TailOptions says where a tail begins.
type TailOptions struct {
	// After is the position of a message of the topic, the last that the caller has seen: what came after it is told first. 0
	// begins with what is published from now on.
	After uint64
}

// TailEvent is a message that was published, or a gap.
type TailEvent struct {
	Position uint64  // 0 if the message is delayed: it has none yet
	Delayed  bool    // the message is not visible yet, or was not when it was published
	Message  Message // its slices are the caller's
	// Dropped is how many events before this one were lost: the tail was too slow, and, if it resumes, they are not stored any
	// more, or were of delayed messages; or their records do not check.
	Dropped uint64
	// Gap, if not nil, says that this is no message: the position to resume after is not held by the topic. It is another
	// topic's, or not stored any more. The tail goes on at Gap.To.
	Gap *Gap
}

// Tail tells of a topic's messages as they are published. Next is for one goroutine at a time; Close is safe for all.
//
// It reads from the ring of its topic (see ring), at its own pace: a slow tail costs others, and publishers, nothing. One that
// resumes reads what is stored until it meets the ring.
type Tail struct {
	log     *Log
	name    TopicName
	ring    *ring
	ended   chan struct{} // closed by Close
	endOnce sync.Once
	detach  func() bool // from the context of Log.Tail

	seq     uint64 // number of the ring's event that comes next
	dropped uint64 // events that were lost, and not told of yet
	gap     *Gap   // to be told first

	catching bool     // messages of the store come first
	from     uint64   // the next of them
	until    uint64   // not these
	stored   []Stored // what was read of them
	missed   uint64   // events that the ring dropped since the tail began to catch up, and that were not found in the store yet
	met      bool     // what is read stands for such events
}

// Tail begins to tell of the messages that are published to a topic, which need not exist yet: each once, when it is
// durable, or, on a relaxed topic, answered, in the order of the log. What the topic's consumers do does not matter. A delayed
// message is told of when it is published, and not again when it becomes visible.
//
// A tail that is more than limits.TailRingEvents behind, be it because so many are committed at once, loses the oldest, and is
// told how many with the next event. One that resumes (TailOptions.After) is first told of what is stored after that position,
// and then of what the topic's ring still has, without the delayed messages that come before the first other one if the ring
// is all it needs: it may have seen them.
//
// The tail ends with ctx, with Close, and with the log. Log.Tail refuses with *NameError, *PositionError for a position that
// is not given yet, *limits.Error for more than limits.TailSubscribers, and ErrClosed.
func (l *Log) Tail(ctx context.Context, tenant, topic string, o TailOptions) (*Tail, error) {
	if err := validName(tenant, topic); err != nil {
		return nil, err
	}
	if err := l.readable(ctx); err != nil {
		return nil, err
	}
	t := &Tail{log: l, name: TopicName{tenant, topic}, ended: make(chan struct{})}
	known, next, err := l.tails.add(t, o.After)
	if err != nil {
		return nil, err
	}
	if o.After > 0 && !known {
		if err := t.checkAfter(o.After, next); err != nil {
			t.Close()
			return nil, err
		}
	}
	t.detach = context.AfterFunc(ctx, t.end)
	return t, nil
}

// Close ends the tail. It may be called more than once.
func (t *Tail) Close() {
	if t.detach != nil {
		t.detach()
	}
	t.end()
}

func (t *Tail) end() {
	t.endOnce.Do(func() {
		close(t.ended)
		t.log.tails.remove(t)
	})
}

// checkAfter notes a gap unless the topic holds the message at a position. next is the position of the ring's first message
// after it, or the log's next one.
func (t *Tail) checkAfter(after, next uint64) error {
	if topic := t.log.find(t.name); topic != nil {
		_, err := t.log.body(topic, after)
		corrupt := new(store.CorruptError)
		switch {
		case errors.As(err, &corrupt): // it is held all the same
			return nil
		case !errors.Is(err, store.ErrNotFound):
			return err
		}
		if t.catching {
			first, err := t.log.firstStored(topic, after, t.until)
			if err != nil {
				return err
			}
			if first < t.until {
				next = first
			}
		}
	}
	t.gap = &Gap{From: after, To: next}
	return nil
}

// Next waits for the next event and returns it. It returns ctx's error, ErrTailClosed, ErrClosed once the log is closed, or a
// fault of the disk.
func (t *Tail) Next(ctx context.Context) (TailEvent, error) {
	for {
		if err := t.readable(ctx); err != nil {
			return TailEvent{}, err
		}
		switch {
		case t.gap != nil:
			e := TailEvent{Gap: t.gap}
			t.gap = nil
			return e, nil
		case len(t.stored) > 0:
			m := t.stored[0]
			t.stored = t.stored[1:]
			return t.event(m.Position, m.Message), nil
		case t.catching:
			if err := t.catchUp(ctx); err != nil {
				return TailEvent{}, err
			}
			continue
		}
		e, changed := t.log.tails.read(t)
		if changed == nil {
			m, err := decodeMessage(t.name, append([]byte(nil), e.body...))
			if err != nil {
				return TailEvent{}, err
			}
			return t.event(e.position, m), nil
		}
		t.wait(ctx, changed)
	}
}

// event tells of a message, and of what was dropped before it.
func (t *Tail) event(position uint64, m Message) TailEvent {
	e := TailEvent{Position: position, Delayed: m.Options.Delay != 0, Message: m, Dropped: t.dropped}
	t.dropped = 0
	return e
}

// readable returns why there is no next event any more.
func (t *Tail) readable(ctx context.Context) error {
	if err := t.log.readable(ctx); err != nil {
		return err
	}
	select {
	case <-t.ended:
		return ErrTailClosed
	default:
		return nil
	}
}

// wait returns when the ring has changed, or there is no next event any more.
func (t *Tail) wait(ctx context.Context, changed <-chan struct{}) {
	select {
	case <-changed:
	case <-ctx.Done():
	case <-t.ended:
	case <-t.log.stop:
	case <-t.log.failed:
	}
}

// catchUp reads a page of what is stored, or, if it has read all, meets the ring.
func (t *Tail) catchUp(ctx context.Context) error {
	if t.from >= t.until {
		t.log.tails.meet(t)
		return nil
	}
	topic := t.log.find(t.name)
	if topic == nil {
		t.from = t.until
		return nil
	}
	p, err := t.log.page(ctx, topic, t.from, t.until)
	if err != nil {
		return err
	}
	t.from, t.stored = p.next, p.messages
	if t.met {
		t.stored = t.found(p.messages)
	} else {
		t.dropped += p.damaged
	}
	return nil
}

// found returns the messages that stand for events that the ring dropped. Delayed ones do not: their events came when they
// were published, before they had a position.
func (t *Tail) found(messages []Stored) []Stored {
	found := messages[:0]
	for _, m := range messages {
		if m.Message.Options.Delay == 0 {
			found = append(found, m)
		}
	}
	t.missed -= uint64(len(found))
	return found
}
