package dispatcher

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/longshore/longshore/internal/filter"
	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/signedctx"
	"github.com/longshore/longshore/substrate"
)

// shared is what all consumers of a dispatcher have in common.
type shared struct {
	queue     Queue
	context   *signedctx.Context
	observer  Observer
	log       *zap.Logger
	workers   *workers
	crew      *crew
	hostSlots *budget // bound of what is in flight in the host
	maxAge    func(tenant, topic string) time.Duration
	hooks     []Hook
	others    func() []*consumer // of the dispatcher
	inquiries *inquiries         // that wait for replies
	audience  *audience
}

// consumer runs one entry of the manifest.
type consumer struct {
	Consumer
	shared
	log       *zap.Logger
	policy    policy
	filter    *filter.Filter      // nil takes all
	principal signedctx.Principal // as which its guest publishes
	slots     *budget             // its own bound of what is in flight
	condition *condition

	circuit *circuit
	newest  *positions // handled, by ordering key; nil unless they are coalesced
	guests  *guestLog  // of its tenant

	canary   *consumer // another version, which gets some of what this one claims; nil if there is none
	isCanary bool

	rehearses bool // it delivers nothing: see Rehearsal

	retire   context.CancelFunc // ends the claiming for good; set when it is started
	noClaims chan struct{}      // closed when it will claim nothing more

	emptyClaims int  // in a row; the loop's own
	lastFull    bool // the last claim filled a batch; the loop's own
}

// emptyClaimsInARow may happen where consumers of one lane race for its messages.
const emptyClaimsInARow = 3

// newConsumer makes a consumer of what was validated.
func newConsumer(c Consumer, s shared, guests *guestLog) *consumer {
	takes, _ := c.filter()
	var newest *positions
	if c.Batch.Latest {
		newest = newPositions()
	}
	made := &consumer{
		newest:   newest,
		guests:   guests,
		noClaims: make(chan struct{}),
		circuit:  &circuit{Breaker: c.Breaker},
		filter:   takes,
		Consumer: c,
		shared:   s,
		log: s.log.With(zap.String("consumer", c.Name), zap.String("tenant", c.Tenant),
			zap.String("topic", c.Topic), zap.String("lane", c.Lane)),
		policy:    policy{maxAttempts: c.MaxAttempts, retry: c.Retry, nonRetryable: c.NonRetryable},
		principal: signedctx.Principal{Tenant: c.Tenant, Subject: subjectPrefix + c.Name},
		slots:     newBudget(room{messages: c.Concurrency, bytes: limits.InFlightBytes}),
		condition: newCondition(),
	}
	made.addCanary()
	return made
}

// subjectPrefix begins the subject of the principal as which a consumer publishes.
const subjectPrefix = "consumer:"

// run claims and starts deliveries until the dispatcher stops or the consumer is retired, and returns when the last of them
// has ended. While it is paused it gives back what it had not begun, and finishes what it had.
func (c *consumer) run(p phases) {
	defer c.condition.end()
	c.beginCanary()
	var inFlight sync.WaitGroup
	for p.claim.Err() == nil {
		c.claimUntilPaused(p, &inFlight)
		c.condition.waitResumed(p.claim)
	}
	close(c.noClaims)
	inFlight.Wait()
}

func (c *consumer) claimUntilPaused(p phases, inFlight *sync.WaitGroup) {
	untilPaused, stop := context.WithCancel(p.claim)
	defer stop()
	p.claim = untilPaused
	c.condition.begin(stop)
	for untilPaused.Err() == nil {
		c.claimNext(p, inFlight)
	}
}

// claimNext waits for slots of its own, then for messages, and then claims as many as there is room for in the host.
func (c *consumer) claimNext(p phases, inFlight *sync.WaitGroup) {
	own, err := c.slots.takeAtLeast(p.claim, room{messages: limits.ClaimMessages, bytes: limits.InFlightBytes}, c.worthClaiming())
	if err != nil {
		return
	}
	defer func() { c.slots.give(own) }()
	if err := c.queue.WaitReady(p.claim, c.Tenant, c.Topic, c.Lane); err != nil {
		c.storageFailed(p.claim, claiming, err)
		return
	}
	n, allowed := c.mayClaim(p.claim, own.messages)
	if !allowed || !c.fill(p.claim) {
		return
	}
	host, err := c.hostSlots.take(p.claim, room{messages: n, bytes: own.bytes})
	if err != nil {
		return
	}
	defer func() { c.hostSlots.give(host) }()
	used := c.claim(p, host, inFlight)
	own, host = own.less(used), host.less(used)
}

// worthClaiming returns for how many messages a claim rather waits: claims cost little more for many than for one, as long as
// enough messages are in flight to keep the workers busy.
func (c *consumer) worthClaiming() int {
	return max(1, min(c.Concurrency/2, limits.ClaimMessages/2, c.Concurrency-2*c.workers.total))
}

// claim claims what fits into the room, starts it, and returns the room that it takes. That may be more than there was,
// by one large message.
func (c *consumer) claim(p phases, r room, inFlight *sync.WaitGroup) (used room) {
	since := time.Now()
	claimed, err := c.queue.Claim(p.claim, c.claimRequest(r))
	if err != nil { // beside it there may be deliveries all the same
		c.storageFailed(p.claim, claiming, err)
	} else {
		c.storageWorked(claiming)
	}
	for _, dead := range claimed.Buried {
		c.reportBuried(dead)
	}
	for _, e := range claimed.Quarantined {
		c.reportQuarantined(e)
	}
	for _, e := range claimed.Skipped {
		c.reportSkipped(e)
	}
	used = c.start(p, c.assign(claimed.Deliveries), since, inFlight)
	c.tellDeaths(p.settle, claimed.Buried)
	c.tellQuarantined(p.settle, claimed.Quarantined)
	c.lastFull = len(claimed.Deliveries) >= c.Batch.Max
	if err == nil {
		c.restIfEmpty(p.claim, len(claimed.Deliveries)+len(claimed.Buried)+len(claimed.Quarantined))
	}
	return used
}

// restIfEmpty keeps the loop from spinning where the queue wakes it again and again for nothing.
func (c *consumer) restIfEmpty(ctx context.Context, claimed int) {
	if claimed > 0 {
		c.emptyClaims = 0
		return
	}
	c.emptyClaims++
	if c.emptyClaims > emptyClaimsInARow {
		sleep(ctx, storageBackoff(c.emptyClaims-emptyClaimsInARow-1))
	}
}

func (c *consumer) claimRequest(r room) substrate.ClaimRequest {
	return substrate.ClaimRequest{
		Tenant: c.Tenant, Topic: c.Topic, Lane: c.Lane,
		MaxMessages: r.messages, MaxBytes: c.mostBytes(r), Lease: c.Lease, MaxAttempts: c.MaxAttempts,
	}
}

// start begins what was claimed, in that order, as one shift of each version, and returns the room that it takes.
func (c *consumer) start(p phases, claimed []assignment, since time.Time, inFlight *sync.WaitGroup) (size room) {
	var shifts []*shift
	for _, a := range claimed {
		i := slices.IndexFunc(shifts, func(s *shift) bool { return s.consumer == a.to })
		if i < 0 {
			i, shifts = len(shifts), append(shifts, a.to.newShift(p))
		}
		s := shifts[i]
		j := s.newJob(a.deliveries, since)
		for _, d := range a.deliveries {
			j.size = j.size.plus(room{messages: 1, bytes: int64(len(d.Message.Payload))})
		}
		s.add(j)
		size = size.plus(j.size)
	}
	for _, s := range shifts {
		s.begin(inFlight)
	}
	return size
}

// storageFailed counts an error of the queue, and waits a little longer for each error in a row. An error because ctx is done
// doesn't count.
func (c *consumer) storageFailed(ctx context.Context, doing operation, err error) {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return
	}
	sleep(ctx, storageBackoff(c.countStorageError(doing, err)))
}

// countStorageError returns how many errors there were in a row before, and says so once when the consumer becomes unhealthy.
func (c *consumer) countStorageError(doing operation, err error) (before int) {
	before, unhealthy := c.condition.storageFailed(doing)
	if unhealthy {
		c.log.Error("consumer is unhealthy: the storage keeps failing", zap.Stringer("doing", doing), zap.Error(err))
	}
	return before
}

// storageFault is what a delivery came to for which the queue couldn't note that its guest begins.
func (c *consumer) storageFault(d *delivery, err error) finding {
	d.cause = err
	if d.lease.lost() || d.lease.of.ctx.Err() != nil {
		return finding{end: notStarted}
	}
	return finding{end: atStorage, before: c.countStorageError(starting, err)}
}

func (c *consumer) storageWorked(doing operation) {
	if c.condition.storageWorked(doing) {
		c.log.Info("consumer is healthy again: the storage works")
	}
}

// pause stops the claiming until an operator has seen to the reason.
func (c *consumer) pause(reason string, cause error) {
	if c.condition.pause(reason) {
		c.log.Error("consumer is paused: messages are kept, none is charged; resume it when the cause is gone",
			zap.String("reason", reason), zap.Error(cause))
	}
}

// resume lets a paused consumer go on, and reports whether it was paused.
func (c *consumer) resume() bool {
	canary := c.resumeCanary()
	if !c.condition.resume() {
		return canary
	}
	c.log.Info("consumer is resumed")
	return true
}

// status returns what the consumer is doing.
func (c *consumer) status() ConsumerStatus {
	s := c.condition.status()
	s.Name, s.Tenant, s.Topic, s.Lane, s.Module, s.Version = c.Name, c.Tenant, c.Topic, c.Lane, c.Guest.Digest(), c.Version
	s.Canary = c.canaryStatus()
	return s
}
