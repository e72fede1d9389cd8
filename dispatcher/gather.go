package dispatcher

import (
	"context"
	"sync"
	"time"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate"
)

// settler gathers what the deliveries of one consumer settle at about the same time into one commit, which costs little more
// than that of one alone. Where calls are short, who comes first waits for others: until they are limits.SettleTogether
// messages, no other is under way, or limits.SettleWait is over. It is safe for concurrent use.
type settler struct {
	queue Queue

	mu      sync.Mutex
	coming  int         // messages that are claimed and have not come here yet
	waiting []*toSettle // of the next commit; the first one's goroutine makes it
	size    room        // messages and payload bytes of them
	full    chan struct{}
}

// toSettle is what one delivery asks the queue for.
type toSettle struct {
	settlements []substrate.Settlement
	outbox      []substrate.Message
	err         error
	over        chan struct{} // closed when err is the answer
}

func newSettler(q Queue) *settler { return &settler{queue: q, full: make(chan struct{}, 1)} }

// claimed notes that so many more messages will come, or won't, if the number is negative.
func (s *settler) claimed(messages int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.coming += messages
	s.tellFull()
}

// settle settles one delivery, of so many messages that were claimed for it, and returns the queue's answer for it alone. One
// that is patient may wait for others.
func (s *settler) settle(ctx context.Context, one *toSettle, claimed int, patient bool) error {
	if s.add(one, claimed) {
		if patient {
			s.waitForOthers(ctx)
		}
		s.commit(ctx, s.take())
		return one.err
	}
	<-one.over
	return one.err
}

// add adds to what the next commit is of, and reports whether the caller makes it.
func (s *settler) add(one *toSettle, claimed int) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one.over = make(chan struct{})
	s.coming -= claimed
	s.waiting = append(s.waiting, one)
	s.size.messages += len(one.settlements)
	for _, m := range one.outbox {
		s.size.bytes += int64(len(m.Payload))
	}
	s.tellFull()
	return len(s.waiting) == 1
}

// tellFull ends the waiting of who makes the next commit, if nothing more is worth waiting for.
func (s *settler) tellFull() {
	if len(s.waiting) > 0 && (s.coming <= 0 || s.size.messages >= limits.SettleTogether || s.size.bytes >= limits.SettleTogetherBytes) {
		select {
		case s.full <- struct{}{}:
		default:
		}
	}
}

func (s *settler) waitForOthers(ctx context.Context) {
	timer := time.NewTimer(limits.SettleWait)
	defer timer.Stop()
	select {
	case <-s.full:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// take returns what is to be committed now. Who comes after it belongs to the next commit.
func (s *settler) take() []*toSettle {
	s.mu.Lock()
	defer s.mu.Unlock()
	together := s.waiting
	s.waiting, s.size = nil, room{}
	select {
	case <-s.full:
	default:
	}
	return together
}

// commit settles all in one commit or, if the queue refuses that, each by itself.
func (s *settler) commit(ctx context.Context, together []*toSettle) {
	defer func() {
		for _, one := range together {
			close(one.over)
		}
	}()
	if len(together) > 1 && s.queue.Settle(ctx, allSettlements(together), wholeOutbox(together)) == nil {
		return
	}
	for _, one := range together {
		one.err = s.queue.Settle(ctx, one.settlements, one.outbox)
	}
}

func allSettlements(together []*toSettle) (all []substrate.Settlement) {
	all = make([]substrate.Settlement, 0, len(together))
	for _, one := range together {
		all = append(all, one.settlements...)
	}
	return all
}

func wholeOutbox(together []*toSettle) (all []substrate.Message) {
	n := 0
	for _, one := range together {
		n += len(one.outbox)
	}
	all = make([]substrate.Message, 0, n)
	for _, one := range together {
		all = append(all, one.outbox...)
	}
	return all
}
