package dispatcher

import (
	"context"
	"time"

	"github.com/longshore/longshore/substrate"
)

// Queue is where messages come from and go to. *substrate.Log is one; an implementation on a distributed engine is to
// be another, so nothing here may assume that the queue is in this process.
//
// All methods are safe for concurrent use. Errors that they share with substrate are matched by errors.Is and errors.As
// against that package's sentinels and types; any other error counts as a fault of the storage, and the call is repeated.
type Queue interface {
	// MintID returns a new message id. The id is sealed into the message's signed context before it is published.
	MintID() string
	// Reserve asks the topic's policy for one more message, ahead of the Settle that publishes it. The reservation is put
	// into that message, or released. It may be nil: then there is nothing to release.
	Reserve(tenant, topic string, payloadBytes int) (*substrate.Reservation, error)
	// Publish stores messages, all or none, and returns when they are durable. Their bytes belong to the queue.
	Publish(ctx context.Context, msgs ...substrate.Message) ([]substrate.Receipt, error)
	// PublishHeld is Publish for a guest that handles messages under leases. If one of those is not held it publishes nothing,
	// and the error is substrate.ErrLeaseLost.
	PublishHeld(ctx context.Context, held []substrate.Lease, msgs ...substrate.Message) ([]substrate.Receipt, error)
	// DeadMessage returns the message of a dead letter that the queue made by itself. The error is substrate.ErrNotFound if it is
	// no more, or can't be read.
	DeadMessage(ctx context.Context, d substrate.DeadLetter) (substrate.Message, error)
	// WaitReady blocks until a claim may find something, ctx is done, or the queue fails. It may return too early, never
	// too late.
	WaitReady(ctx context.Context, tenant, topic, lane string) error
	// Claim leases messages to the caller and doesn't wait for any. The deliveries' bytes belong to the caller.
	Claim(ctx context.Context, r substrate.ClaimRequest) (substrate.ClaimResult, error)
	// Start notes that a guest is about to run on the deliveries, until ended is called: if the host is killed in between, they
	// alone are charged for it, and come back as suspects. After an error the guest must not run.
	Start(leases ...substrate.Lease) (ended func(), err error)
	// RaiseFence raises the lane's mark for a fence key to the token of a claimed message, before a guest runs on that. A
	// lower token than the mark is substrate.ErrStaleFence. A *limits.Error says that the lane has no room for the key yet.
	RaiseFence(ctx context.Context, lease substrate.Lease, f substrate.Fence) error
	// Extend moves the end of the lease to d from now. substrate.ErrLeaseLost says that the lease is another holder's.
	Extend(ctx context.Context, lease substrate.Lease, d time.Duration) (time.Time, error)
	// Settle applies the settlements and publishes the outbox, which needs an Ack or a Bury, all or nothing. After an error other than substrate.ErrLeaseLost
	// and substrate.ErrStaleFence it may be called again with the same arguments. The outbox belongs to the queue.
	Settle(ctx context.Context, s []substrate.Settlement, outbox []substrate.Message) error
}
