package dispatcher

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate"
)

// Batch says how many messages a guest is handed in one call.
type Batch struct {
	// Max is how many there are at most; 0 and 1 hand over each message by itself. More than one takes a guest whose handler
	// takes several. At most limits.CallMessages, and the consumer's concurrency.
	Max int
	// Window is how long a claim waits for more messages once there is one; no lease runs meanwhile. At most
	// limits.BatchWindow.
	Window time.Duration
	// Latest hands over only the newest message of each ordering key. What becomes of it becomes of the older ones, and one
	// that comes later though it is older than what was handled is acknowledged unrun.
	Latest bool
}

// faults lists what is wrong with the batch of a consumer.
func (b Batch) faults(c Consumer) (faults []error) {
	if most := min(limits.CallMessages, c.Concurrency); b.Max < 0 || b.Max > most {
		faults = append(faults, fmt.Errorf("batch of %d: want 1 to %d", b.Max, most))
	}
	if b.Window < 0 || b.Window > limits.BatchWindow {
		faults = append(faults, fmt.Errorf("batch window of %s: want at most %s", b.Window, limits.BatchWindow))
	}
	if b.Max > 1 && c.Guest != nil && !c.Guest.Batches() {
		faults = append(faults, fmt.Errorf("batch of %d: the module handles one message a call; it needs a batch-handler", b.Max))
	}
	if b.Max > 1 && c.Lease <= limits.BatchTimes*c.Limits.CallDuration {
		faults = append(faults, fmt.Errorf("lease %s: want more than %d times the call duration of %s, with batches", c.Lease, limits.BatchTimes, c.Limits.CallDuration))
	}
	if b.Latest && b.Max <= 1 {
		faults = append(faults, errors.New("latest of a batch: want a batch of more than 1"))
	}
	return faults
}

// fill waits until a batch is likely to be full, at most for the window, and reports false if ctx was done before. After a
// claim that was full there is no need to wait.
func (c *consumer) fill(ctx context.Context) bool {
	if c.Batch.Max <= 1 || c.Batch.Window <= 0 || c.lastFull {
		return ctx.Err() == nil
	}
	return sleep(ctx, c.Batch.Window)
}

// mostBytes returns how many payload bytes a claim may have: those of a batch are all in the guest's call at once.
func (c *consumer) mostBytes(r room) int64 {
	if c.Batch.Max > 1 {
		return min(r.bytes, limits.CallBytes)
	}
	return r.bytes
}

// together splits what was claimed at once into what is handled together. What is suspected of having ended a process, or
// couldn't be told apart in its last batch, goes alone.
func (c *consumer) together(claimed []substrate.Delivery) (jobs [][]substrate.Delivery) {
	most := max(1, c.Batch.Max)
	jobs = make([][]substrate.Delivery, 0, (len(claimed)+most-1)/most)
	for from := 0; from < len(claimed); {
		to := from + 1
		for !alone(&claimed[from]) && to < len(claimed) && to-from < most && !alone(&claimed[to]) {
			to++
		}
		jobs = append(jobs, claimed[from:to:to])
		from = to
	}
	return jobs
}

func alone(d *substrate.Delivery) bool {
	return d.Suspect || d.PreviousReason == ReasonBatchDivided
}

// coalesce leaves only the newest message of each ordering key in the job, with those that are older beside it, and ends the
// way of those that are older than what was handled before.
func (c *consumer) coalesce(j *job) {
	if !c.Batch.Latest {
		return
	}
	j.each(func(d *delivery) (finding, bool) { return finding{end: atStale}, !c.newest.isStale(d) })
	byKey := map[string][]*delivery{}
	for _, d := range j.open() {
		if key := d.Message.Options.OrderingKey; key != "" {
			byKey[key] = append(byKey[key], d)
		}
	}
	for _, of := range byKey {
		slices.SortFunc(of, func(a, b *delivery) int { return cmp.Compare(b.Lease.Position, a.Lease.Position) })
		of[0].older = of[1:]
	}
	j.deliveries = slices.DeleteFunc(j.deliveries, func(d *delivery) bool {
		of := byKey[d.Message.Options.OrderingKey]
		return !d.over && len(of) > 0 && of[0] != d
	})
}

// positions are the newest positions that were handled, by ordering key: those of the limits.CoalescedKeys keys that were used
// last. It is safe for concurrent use; nil remembers nothing.
type positions struct {
	mu    sync.Mutex
	byKey map[string]*list.Element
	used  *list.List // of keyPosition, last used first
}

type keyPosition struct {
	key      string
	position uint64
}

func newPositions() *positions {
	return &positions{byKey: map[string]*list.Element{}, used: list.New()}
}

// handled notes that a message was handled.
func (p *positions) handled(d *delivery) {
	key := d.Message.Options.OrderingKey
	if p == nil || key == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.byKey[key]; e != nil {
		e.Value = keyPosition{key, max(e.Value.(keyPosition).position, d.Lease.Position)} //nolint:forcetypeassert // the list has no others
		p.used.MoveToFront(e)
		return
	}
	p.byKey[key] = p.used.PushFront(keyPosition{key, d.Lease.Position})
	if p.used.Len() > limits.CoalescedKeys {
		oldest := p.used.Remove(p.used.Back()).(keyPosition) //nolint:forcetypeassert // the list has no others
		delete(p.byKey, oldest.key)
	}
}

// isStale reports whether a newer message of the same key was handled.
func (p *positions) isStale(d *delivery) bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.byKey[d.Message.Options.OrderingKey]
	return e != nil && d.Lease.Position < e.Value.(keyPosition).position //nolint:forcetypeassert // the list has no others
}
