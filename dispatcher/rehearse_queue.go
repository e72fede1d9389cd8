package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate"
)

// RehearsalQueue is a Queue that says what it would do, without doing it. Both methods are safe for concurrent use.
type RehearsalQueue interface {
	Queue
	// WouldReserve returns the error of the first Reserve that would be refused if so much were reserved one after the other.
	WouldReserve(tenant string, wanted ...substrate.Room) error
	// FenceMark returns the highest token that a lane accepted for a fence key, and whether it knows the key.
	FenceMark(tenant, topic, lane, key string) (substrate.FenceMark, bool, error)
}

// errUnwritten is the answer to whatever would change the queue. No step of a rehearsal gets to see it.
var errUnwritten = errors.New("a rehearsal changes nothing")

// unwritten is the ValueStore of a version in a rehearsal: it reads one, and writes nothing. It lists each method, so that one
// that is added to Queue has to be decided about here. It is safe for concurrent use.
type unwritten struct {
	of RehearsalQueue

	mu     sync.Mutex
	minted uint64
	marks  map[string]uint64 // that the rehearsal has raised, by fence key
}

// MintID returns ids of the form of the log's, of messages that are never published: the same in each rehearsal.
func (q *unwritten) MintID() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.minted++
	return unpublishedID(q.minted)
}

func unpublishedID(n uint64) string { return fmt.Sprintf("%013d-%016x", 0, n) }

// Reserve takes nothing.
func (q *unwritten) Reserve(tenant, topic string, payloadBytes int) (*substrate.Reservation, error) {
	return nil, q.of.WouldReserve(tenant, substrate.Room{Topic: topic, PayloadBytes: payloadBytes})
}

// Publish refuses.
func (*unwritten) Publish(context.Context, ...substrate.Message) ([]substrate.Receipt, error) {
	return nil, errUnwritten
}

// PublishHeld refuses.
func (*unwritten) PublishHeld(context.Context, []substrate.Lease, ...substrate.Message) ([]substrate.Receipt, error) {
	return nil, errUnwritten
}

// DeadMessage refuses: nothing dies in a rehearsal.
func (*unwritten) DeadMessage(context.Context, substrate.DeadLetter) (substrate.Message, error) {
	return substrate.Message{}, errUnwritten
}

// WaitReady refuses.
func (*unwritten) WaitReady(context.Context, string, string, string) error { return errUnwritten }

// Claim refuses.
func (*unwritten) Claim(context.Context, substrate.ClaimRequest) (substrate.ClaimResult, error) {
	return substrate.ClaimResult{}, errUnwritten
}

// Start notes nothing: whoever crashes the host in a rehearsal is not suspected in a delivery.
func (*unwritten) Start(...substrate.Lease) (ended func(), err error) { return func() {}, nil }

// RaiseFence compares a token with the lane's mark, and with those of earlier messages of the rehearsal.
func (q *unwritten) RaiseFence(_ context.Context, lease substrate.Lease, f substrate.Fence) error {
	is, _, err := q.of.FenceMark(lease.Tenant, lease.Topic, lease.Lane, f.Key)
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	mark := max(is.Token, q.marks[f.Key])
	if f.Token < mark {
		return &substrate.StaleFenceError{Lease: lease, Fence: f, Mark: mark}
	}
	if _, known := q.marks[f.Key]; known || len(q.marks) < limits.FenceMarks {
		q.marks[f.Key] = f.Token
	}
	return nil
}

// Extend agrees: there are no leases in a rehearsal.
func (*unwritten) Extend(_ context.Context, _ substrate.Lease, d time.Duration) (time.Time, error) {
	return time.Now().Add(d), nil
}

// Settle refuses.
func (*unwritten) Settle(context.Context, []substrate.Settlement, []substrate.Message) error {
	return errUnwritten
}

// GetValue reads a value as it is now.
func (q *unwritten) GetValue(tenant, bucket, key string) ([]byte, substrate.ValueRead, error) {
	values, keeps := q.of.(ValueStore)
	if !keeps {
		return nil, substrate.ValueRead{}, errUnwritten
	}
	return values.GetValue(tenant, bucket, key)
}

// ListKeys lists keys as they are now.
func (q *unwritten) ListKeys(ctx context.Context, tenant, bucket, after string, n int) (keys []string, more bool, read substrate.ListRead, err error) {
	values, keeps := q.of.(ValueStore)
	if !keeps {
		return nil, false, substrate.ListRead{}, errUnwritten
	}
	return values.ListKeys(ctx, tenant, bucket, after, n)
}

// SettleValues refuses.
func (*unwritten) SettleValues(context.Context, []substrate.Settlement, []substrate.Message, substrate.ValueChanges) error {
	return errUnwritten
}

// foreseen admits what one call publishes in a rehearsal: what it published before counts, and what it took back doesn't.
type foreseen struct {
	of     RehearsalQueue
	outbox *outbox
	minted uint64
}

// foresee makes the admitter of an outbox in a rehearsal.
func (c *consumer) foresee(o *outbox) admitter {
	q, is := c.queue.(*unwritten)
	if !is {
		return c.queue
	}
	return &foreseen{of: q.of, outbox: o}
}

// MintID returns the same ids in each call, so that two versions publish the same under the same.
func (f *foreseen) MintID() string {
	f.minted++
	return unpublishedID(f.minted)
}

// Reserve takes nothing.
func (f *foreseen) Reserve(tenant, topic string, payloadBytes int) (*substrate.Reservation, error) {
	var wanted []substrate.Room
	for _, m := range f.outbox.admitted {
		wanted = append(wanted, substrate.Room{Topic: m.Topic, PayloadBytes: len(m.Payload)})
	}
	return nil, f.of.WouldReserve(tenant, append(wanted, substrate.Room{Topic: topic, PayloadBytes: payloadBytes})...)
}
