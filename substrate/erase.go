package substrate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/store"
)

// ErrDeleting says that a tenant is being deleted: nothing of it is taken until that is done.
var ErrDeleting = errors.New("the tenant is being deleted")

// DeleteTenant deletes all that the log has of a tenant: its topics with their messages, groups, dead letters, quarantine, fence
// marks, idempotency keys and policies, and its values. It does nothing if there is none. Whoever holds a lease of it has lost
// that; what is published to it meanwhile is refused with ErrDeleting.
//
// also, if not nil, deletes what is kept of the tenant elsewhere. It is called once the deletion can't be undone, durably, and
// before it ends: if a crash comes before also has returned, the next Open names the tenant in Recovered.Deleted. It is called
// as well if the log has nothing of the tenant. An error of it is returned, and stops nothing.
//
// Once it has begun it goes on, also if ctx ends; what a crash leaves is deleted by the next Open. It returns when no key of the
// tenant is left in the store. The bytes go when the store is tidied and the journal overwritten.
//
// Errors: a *NameError; those of ctx and of also; ErrClosed.
func (l *Log) DeleteTenant(ctx context.Context, tenant string, also func() error) error {
	if err := ValidTenant(tenant); err != nil {
		return err
	}
	if also == nil {
		also = func() error { return nil }
	}
	var under *deletion
	mine := false
	err := l.submit(ctx, &request{
		bytes: entryOverheadBytes, need: needNothing,
		before: func(checkpoint) error { return nil }, // the store is up to date then, as the frame needs it
		plan: func(time.Time) (frame, error) {
			if under = l.deleting[tenant]; under != nil || l.state.tenants[tenant] == nil {
				return nil, nil
			}
			under, mine = &deletion{gone: make(chan struct{})}, true
			l.deleting[tenant] = under
			l.forgetTenant(tenant)
			return &eraseFrame{tenant: tenant}, nil
		},
	})
	if err != nil {
		return err
	}
	if under == nil {
		return also()
	}
	if mine {
		err = also()
		if err := l.release(context.WithoutCancel(ctx), under); err != nil {
			return err
		}
	}
	select {
	case <-under.gone:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w, and that goes on: %w", ErrDeleting, ctx.Err())
	case <-l.stopped:
		return ErrClosed
	case <-l.failed:
		return ErrClosed
	}
}

// deletion is one that is under way. Log.mu guards it.
type deletion struct {
	released bool          // its end may come
	gone     chan struct{} // closed then
}

// release lets a deletion come to its end.
func (l *Log) release(ctx context.Context, d *deletion) error {
	l.mu.Lock()
	d.released = true
	l.mu.Unlock()
	return l.submit(ctx, &request{}) // so that the committer looks
}

// forgetTenant forgets what is known of a tenant beside the state. Log.mu is held.
func (l *Log) forgetTenant(tenant string) {
	a := l.admission
	for name := range a.views {
		if name.Tenant == tenant {
			delete(a.views, name)
		}
	}
	for name := range a.buckets {
		if name.Tenant == tenant {
			delete(a.buckets, name)
		}
	}
	delete(a.tenantBuckets, tenant)
	for r := range a.refused {
		if r.tenant == tenant {
			delete(a.refused, r)
		}
	}
	for name := range l.unflushed {
		if name.Tenant == tenant {
			delete(l.unflushed, name)
		}
	}
}

// refuseErasing returns ErrDeleting if a tenant is being deleted. Log.mu is held.
func (l *Log) refuseErasing(tenant string) error {
	if _, under := l.state.erasing[tenant]; under {
		return fmt.Errorf("tenant %s: %w", tenant, ErrDeleting)
	}
	return nil
}

// erase does the next step for a tenant that is being erased, if there is one and the store has nothing else to do. The end of
// the step leads to the next one.
func (c *committer) erase() {
	if c.behind.busy || c.log.Err() != nil {
		return
	}
	if c.chores.erasure == nil && !c.beginErasure() {
		return
	}
	if c.chores.erasure.Done {
		c.endErasure()
	} else if err := c.cut(false); err != nil {
		_ = c.fail(err) // told through Log.Err: no caller waits for this
	}
}

// beginErasure takes up a tenant, and reports whether there is one. The record that it is being erased has to survive whatever
// the deletions do.
func (c *committer) beginErasure() bool {
	for tenant := range c.log.state.erasing {
		if !c.log.isReleased(tenant) {
			continue
		}
		if err := c.flushStore(true); err != nil {
			return false
		}
		c.chores.erasure = &store.Erasure{Tenant: tenant}
		c.dropMarks()
		return true
	}
	return false
}

func (l *Log) isReleased(tenant string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deleting[tenant].released
}

// endErasure commits that nothing of the tenant is left, and sees to it that this is so of the record of the erasure as well.
func (c *committer) endErasure() {
	tenant := c.chores.erasure.Tenant
	c.chores.erasure = nil
	if !c.commitChore(&eraseFrame{tenant: tenant, done: true}) || c.flushStore(false) != nil {
		return
	}
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	close(c.log.deleting[tenant].gone)
	delete(c.log.deleting, tenant)
}

// dropMarks forgets what was noted of topics that are gone.
func (c *committer) dropMarks() {
	for t := range c.chores.marks {
		if c.log.state.topics[t.name] != t {
			delete(c.chores.marks, t)
		}
	}
}

// eraseLeft deletes what a process before left of tenants that it was erasing.
func (r *recovery) eraseLeft() error {
	tenants, err := r.store.Erasures()
	if err != nil || len(tenants) == 0 {
		return err
	}
	if err := r.store.Sync(); err != nil { // the records that say so must survive the deletions
		return err
	}
	for _, tenant := range tenants {
		r.state.erasing[tenant] = struct{}{}
		if err := r.store.EraseAll(tenant, limits.EraseKeys); err != nil {
			return err
		}
	}
	return nil
}

// replayErase applies the frame that begins an erasure, and carries it out.
func (r *recovery) replayErase(f *eraseFrame, number uint64) error {
	if r.state.effects.ops() > 0 {
		if err := r.flush(); err != nil {
			return err
		}
	}
	f.apply(r.state, number)
	r.checkpoint.frame = number
	r.frames++
	if f.done {
		return nil
	}
	if err := r.flush(); err != nil {
		return err
	}
	if err := r.store.Sync(); err != nil {
		return err
	}
	return r.store.EraseAll(f.tenant, limits.EraseKeys)
}

// endErasures notes that nothing is left of tenants that were being erased.
func (r *recovery) endErasures() {
	r.deleted = slices.Sorted(maps.Keys(r.state.erasing))
	for _, tenant := range r.deleted {
		(&eraseFrame{tenant: tenant, done: true}).apply(r.state, 0)
	}
}
