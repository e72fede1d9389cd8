package dispatcher

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/longshore/longshore/substrate"
)

// memQueue is a Queue in memory: exact about leases, attempts and delays, with faults to inject. Its clock is time.Now,
// so that it runs under testing/synctest.
type memQueue struct {
	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at each change
	messages []*stored     // not yet acknowledged or buried, by position
	position uint64
	minted   int
	token    uint64

	// fail is asked before each call ("claim", "extend", "settle", "wait", "publish"); an error is returned to the caller, and nothing is
	// changed. For a settle, published tells how large the outbox is.
	fail func(call string, published int) error
	// reserve answers Reserve.
	reserve func(topic string, bytes int) error

	// start answers Start.
	start   func() error
	running map[substrate.Lease]bool
	started int
	// hasty are the leases that were settled while their guest ran.
	hasty []substrate.Lease

	fences map[string]uint64 // marks

	putAside substrate.ClaimResult // Quarantined and Skipped of the next claim

	claims    int
	extended  int
	acked     []string
	buried    []substrate.Settlement
	released  []substrate.Settlement
	retried   []substrate.Settlement
	published []substrate.Message // by settlements

	alone []substrate.Message          // published by themselves
	dead  map[string]substrate.Message // that a claim buried, by id
}

type stored struct {
	message  substrate.Message
	position uint64
	attempts int
	token    uint64 // of the lease; 0 is none
	until    time.Time
	suspect  bool
	reason   string // of the last settlement that gave one
}

func newMemQueue() *memQueue {
	return &memQueue{
		changed: make(chan struct{}),
		fail:    func(string, int) error { return nil },
		reserve: func(string, int) error { return nil },
		start:   func() error { return nil },
		running: map[substrate.Lease]bool{},
		fences:  map[string]uint64{},
		dead:    map[string]substrate.Message{},
	}
}

func (q *memQueue) publish(msgs ...substrate.Message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range msgs {
		q.position++
		q.messages = append(q.messages, &stored{message: m, position: q.position})
	}
	q.touch()
}

func (q *memQueue) touch() {
	close(q.changed)
	q.changed = make(chan struct{})
}

func (q *memQueue) MintID() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.minted++
	return fmt.Sprintf("%013d-%016x", time.Now().UnixMilli(), q.minted)
}

func (q *memQueue) Reserve(_, topic string, bytes int) (*substrate.Reservation, error) {
	return nil, q.reserve(topic, bytes)
}

func (q *memQueue) PublishHeld(_ context.Context, held []substrate.Lease, msgs ...substrate.Message) ([]substrate.Receipt, error) {
	q.mu.Lock()
	if err := q.fail("publish", len(msgs)); err != nil {
		q.mu.Unlock()
		return nil, err
	}
	for _, l := range held {
		if q.holder(l) == nil {
			q.mu.Unlock()
			return nil, substrate.ErrLeaseLost
		}
	}
	q.mu.Unlock()
	q.publish(msgs...)
	receipts := make([]substrate.Receipt, len(msgs))
	for i, m := range msgs {
		receipts[i].ID = m.ID
	}
	return receipts, nil
}

func (q *memQueue) WaitReady(ctx context.Context, tenant, topic, _ string) error {
	for {
		q.mu.Lock()
		if err := q.fail("wait", 0); err != nil {
			q.mu.Unlock()
			return err
		}
		due, changed := q.due(tenant, topic), q.changed
		q.mu.Unlock()
		if due <= 0 {
			return ctx.Err()
		}
		timer := time.NewTimer(due)
		select {
		case <-ctx.Done():
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// due returns how long until a message may be claimed: 0 if one may now, a year if there is none.
func (q *memQueue) due(tenant, topic string) time.Duration {
	due := 365 * 24 * time.Hour
	for _, s := range q.messages {
		if s.message.Tenant == tenant && s.message.Topic == topic {
			due = min(due, max(0, time.Until(s.until)))
		}
	}
	return due
}

func (q *memQueue) Claim(_ context.Context, r substrate.ClaimRequest) (substrate.ClaimResult, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.fail("claim", 0); err != nil {
		return substrate.ClaimResult{}, err
	}
	q.claims++
	out := q.putAside
	q.putAside = substrate.ClaimResult{}
	for _, s := range slices.Clone(q.messages) {
		switch {
		case len(out.Deliveries) == r.MaxMessages:
			return out, nil
		case s.message.Tenant != r.Tenant || s.message.Topic != r.Topic || time.Until(s.until) > 0:
		case s.attempts >= r.MaxAttempts:
			q.remove(s)
			q.dead[s.message.ID] = s.message
			out.Buried = append(out.Buried, substrate.DeadLetter{ID: s.message.ID, Attempts: s.attempts, Reason: "max-attempts"})
		default:
			q.token++
			s.attempts++
			s.token, s.until = q.token, time.Now().Add(r.Lease)
			out.Deliveries = append(out.Deliveries, substrate.Delivery{
				Message: s.message, Attempt: s.attempts, Expires: s.until,
				Lease:   substrate.Lease{Tenant: r.Tenant, Topic: r.Topic, Position: s.position, Token: s.token},
				Suspect: s.suspect, PreviousReason: s.reason,
			})
		}
	}
	return out, nil
}

func (q *memQueue) Start(leases ...substrate.Lease) (func(), error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.start(); err != nil {
		return nil, err
	}
	q.started += len(leases)
	for _, l := range leases {
		q.running[l] = true
	}
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		for _, l := range leases {
			delete(q.running, l)
		}
	}, nil
}

func (q *memQueue) RaiseFence(_ context.Context, l substrate.Lease, f substrate.Fence) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.fail("fence", 0); err != nil {
		return err
	}
	if q.holder(l) == nil {
		return substrate.ErrLeaseLost
	}
	if f.Token < q.fences[f.Key] {
		return &substrate.StaleFenceError{Lease: l, Fence: f, Mark: q.fences[f.Key]}
	}
	q.fences[f.Key] = f.Token
	return nil
}

func (q *memQueue) Extend(_ context.Context, l substrate.Lease, d time.Duration) (time.Time, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.fail("extend", 0); err != nil {
		return time.Time{}, err
	}
	s := q.holder(l)
	if s == nil {
		return time.Time{}, substrate.ErrLeaseLost
	}
	q.extended++
	s.until = time.Now().Add(d)
	return s.until, nil
}

func (q *memQueue) Settle(_ context.Context, settlements []substrate.Settlement, outbox []substrate.Message) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.fail("settle", len(outbox)); err != nil {
		return err
	}
	for _, s := range settlements {
		if q.running[s.Lease] {
			q.hasty = append(q.hasty, s.Lease)
		}
		if q.holder(s.Lease) == nil {
			return substrate.ErrLeaseLost
		}
		if s.Fence.Token < q.fences[s.Fence.Key] {
			return &substrate.StaleFenceError{Lease: s.Lease, Fence: s.Fence, Mark: q.fences[s.Fence.Key]}
		}
	}
	for _, s := range settlements {
		q.settle(q.holder(s.Lease), s)
	}
	q.published = append(q.published, outbox...)
	q.touch()
	return nil
}

func (q *memQueue) settle(held *stored, s substrate.Settlement) {
	held.token, held.until = 0, time.Now().Add(s.Delay)
	if s.Reason != "" {
		held.reason = s.Reason
	}
	switch s.Verdict {
	case substrate.Ack:
		q.remove(held)
		q.acked = append(q.acked, held.message.ID)
	case substrate.Bury:
		q.remove(held)
		q.buried = append(q.buried, s)
	case substrate.Retry:
		q.retried = append(q.retried, s)
	case substrate.Release:
		held.attempts--
		q.released = append(q.released, s)
	}
}

func (q *memQueue) holder(l substrate.Lease) *stored {
	for _, s := range q.messages {
		if s.position == l.Position && s.token == l.Token && s.token != 0 {
			return s
		}
	}
	return nil
}

func (q *memQueue) remove(gone *stored) {
	q.messages = slices.DeleteFunc(q.messages, func(s *stored) bool { return s == gone })
}

// look runs f while nothing changes.
func (q *memQueue) look(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	f()
}
