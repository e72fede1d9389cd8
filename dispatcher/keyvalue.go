package dispatcher

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate"
	"github.com/longshore/longshore/wasi/messaging"
)

// ValueStore is a Queue that keeps values beside messages. Consumers that are granted buckets need one. All methods are safe
// for concurrent use.
type ValueStore interface {
	Queue
	// GetValue returns a value, nil if there is none, and what SettleValues needs in order to depend on it.
	GetValue(tenant, bucket, key string) ([]byte, substrate.ValueRead, error)
	// ListKeys returns up to n of the keys after one, in order, whether there are more, and what SettleValues needs in order
	// to depend on the list.
	ListKeys(ctx context.Context, tenant, bucket, after string, n int) (keys []string, more bool, read substrate.ListRead, err error)
	// SettleValues is Settle, and changes values in the same commit, given that what was read is still so. Else the error is
	// substrate.ErrConflict.
	SettleValues(ctx context.Context, s []substrate.Settlement, outbox []substrate.Message, c substrate.ValueChanges) error
}

// valueName names a value of a tenant.
type valueName struct{ bucket, key string }

// view is the values of a tenant as one call of a guest sees them: what it wrote covers what there is. It remembers what it
// read, the first time, so that a commit fails if a second look found something else. It serves one call.
type view struct {
	store   ValueStore
	tenant  string
	buckets []string // granted

	reads  map[valueName]substrate.ValueRead
	lists  []substrate.ListRead
	writes map[valueName]substrate.ValueWrite
	bytes  int64 // of the keys and values written
}

// newView returns what a call sees, or nil if the consumer is granted no bucket.
func (c *consumer) newView() *view {
	store, keeps := c.queue.(ValueStore)
	if len(c.Buckets) == 0 || !keeps {
		return nil
	}
	return &view{
		store: store, tenant: c.Tenant, buckets: c.Buckets,
		reads: map[valueName]substrate.ValueRead{}, writes: map[valueName]substrate.ValueWrite{},
	}
}

// Open implements messaging.Store.
func (v *view) Open(bucket string) *messaging.StoreError {
	if !slices.Contains(v.buckets, bucket) {
		return &messaging.StoreError{Case: messaging.StoreAccessDenied}
	}
	return nil
}

// Get implements messaging.Store.
func (v *view) Get(bucket, key string) (value []byte, found bool, refused *messaging.StoreError) {
	name := valueName{bucket, key}
	if w, written := v.writes[name]; written {
		return w.Data, !w.Delete, nil
	}
	value, read, err := v.store.GetValue(v.tenant, bucket, key)
	if err != nil {
		return nil, false, storeError(err)
	}
	if _, before := v.reads[name]; !before {
		v.reads[name] = read
	}
	return value, value != nil, nil
}

// Set implements messaging.Store.
func (v *view) Set(bucket, key string, value []byte) *messaging.StoreError {
	return v.write(substrate.ValueWrite{Bucket: bucket, Key: key, Data: value})
}

// Delete implements messaging.Store.
func (v *view) Delete(bucket, key string) *messaging.StoreError {
	return v.write(substrate.ValueWrite{Bucket: bucket, Key: key, Delete: true})
}

func (v *view) write(w substrate.ValueWrite) *messaging.StoreError {
	name := valueName{w.Bucket, w.Key}
	n := v.bytes + int64(len(w.Key)+len(w.Data))
	if before, again := v.writes[name]; again {
		n -= int64(len(before.Key) + len(before.Data))
	}
	err := substrate.ValidValue(w.Key, int64(len(w.Data)))
	if err == nil {
		err = limits.Check(limits.NameStoredCommit, n, limits.StoredCommitBytes)
	}
	if err != nil {
		return storeError(err)
	}
	v.writes[name], v.bytes = w, n
	return nil
}

// List implements messaging.Store.
func (v *view) List(ctx context.Context, bucket, after string) (keys []string, more bool, refused *messaging.StoreError) {
	own := v.written(bucket)
	for from := after; ; {
		page, rest, read, err := v.store.ListKeys(ctx, v.tenant, bucket, from, limits.StorePageKeys)
		if err != nil {
			return nil, false, storeError(err)
		}
		v.lists = append(v.lists, read)
		keys, more = merge(page, own, from, rest), rest
		if len(keys) > 0 || !more {
			break
		}
		from = page[len(page)-1] // the call has deleted them all
	}
	if len(keys) > limits.StorePageKeys {
		keys, more = keys[:limits.StorePageKeys], true
	}
	return keys, more, nil
}

// written returns what the call wrote to a bucket.
func (v *view) written(bucket string) (own []substrate.ValueWrite) {
	for name, w := range v.writes {
		if name.bucket == bucket {
			own = append(own, w)
		}
	}
	return own
}

func byKey(a, b substrate.ValueWrite) int {
	return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), cmp.Compare(a.Key, b.Key))
}

// merge returns a page of keys with what own, of the same bucket, makes of it. The page begins after a key, and
// ends with its last one if there are more.
func merge(page []string, own []substrate.ValueWrite, after string, more bool) []string {
	gone := map[string]bool{}
	keys := slices.Clone(page)
	for _, w := range own {
		_, listed := slices.BinarySearch(page, w.Key)
		switch {
		case w.Delete:
			gone[w.Key] = true
		case !listed && w.Key > after && (!more || w.Key < page[len(page)-1]):
			keys = append(keys, w.Key)
		}
	}
	slices.Sort(keys)
	return slices.DeleteFunc(keys, func(key string) bool { return gone[key] })
}

// storeError words an error of the store for the guest.
func storeError(err error) *messaging.StoreError {
	bound, key := new(limits.Error), new(substrate.KeyError)
	text := "the store can't be read now"
	switch {
	case errors.As(err, &bound), errors.As(err, &key):
		text = err.Error()
	case errors.Is(err, substrate.ErrDamaged):
		text = "the value's record is damaged; writing it mends it"
	}
	return &messaging.StoreError{Case: messaging.StoreOther, Text: text}
}

// changes returns what a commit depends on and changes.
func (v *view) changes() substrate.ValueChanges {
	c := substrate.ValueChanges{Lists: v.lists}
	for _, r := range v.reads {
		c.Reads = append(c.Reads, r)
	}
	for _, w := range v.writes {
		c.Writes = append(c.Writes, w)
	}
	slices.SortFunc(c.Writes, byKey)
	return c
}

// used reports whether the call read or wrote anything. v may be nil.
func (v *view) used() bool {
	return v != nil && len(v.reads)+len(v.lists)+len(v.writes) > 0
}

// wrote reports whether the call wrote anything. v may be nil.
func (v *view) wrote() bool { return v != nil && len(v.writes) > 0 }

// commitsValues reports whether values belong to what a unit commits: its run used them, and something is acknowledged for
// what the guest did.
func (u *unit) commitsValues() bool {
	return u.run != nil && u.run.values.used() && slices.ContainsFunc(u.decisions, decision.handled)
}

// settleIn hands a unit to the queue, with its values if it has any.
func (c *consumer) settleIn(p phases, u *unit, s []substrate.Settlement, outbox []substrate.Message) error {
	if !u.commitsValues() {
		return c.queue.Settle(p.settle, s, outbox)
	}
	return u.run.values.store.SettleValues(p.settle, s, outbox, u.run.values.changes())
}

// conflicted runs the guest again on the deliveries of a unit that wasn't committed because of a conflict, under the same
// leases, so that it costs no attempt. After limits.StoreReruns the messages are given back.
func (c *consumer) conflicted(p phases, u *unit, cause error) {
	if u.job.reruns >= limits.StoreReruns {
		u.redecide(c, finding{end: atConflict}, cause)
		c.settle(p, u)
		return
	}
	u.run.outbox.release()
	j := u.job.again(u.deliveries)
	j.turn = c.workers.enqueue(c.Tenant, c.Name, u.deliveries[0].Suspect)
	defer j.turn.done()
	defer j.releaseRuns()
	c.onWorker(p, j, func() { c.invoke(p, j) })
	c.settleAll(p, []*job{j})
}

// again returns a job for some deliveries of j, as if they had not been run. j holds their leases.
func (j *job) again(deliveries []*delivery) *job {
	for _, d := range deliveries {
		d.over, d.finding, d.run, d.cause = false, finding{}, nil, nil
	}
	return &job{deliveries: deliveries, ctx: j.ctx, lose: j.lose, reruns: j.reruns + 1}
}

// releaseRuns gives back the room that calls reserved and did not use.
func (j *job) releaseRuns() {
	for _, r := range j.runs {
		r.outbox.release()
	}
}
