package substrate

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/longshore/longshore/limits"
	"github.com/longshore/longshore/substrate/internal/store"
)

// Values are bytes under keys, in buckets of a tenant. They change with a settlement and in no other way: SettleValues commits
// them in the frame of the acknowledgement, given that what its caller read is still so. A value's version is the number of
// the frame that set it; a key that has no value has version 0.

// ValueRead says what was read of a key, so that a settlement can depend on it.
type ValueRead struct {
	Bucket, Key string
	Version     uint64 // 0 = there was no value
	asOf        uint64 // the last frame whose writes had been looked at
}

// ListRead says what was read of a bucket's list of keys, so that a settlement can depend on it.
type ListRead struct {
	Bucket string
	after  string
	n      int
	sum    uint64 // of the keys found
	asOf   uint64
}

// ValueWrite is a value to set, or to delete.
type ValueWrite struct {
	Bucket, Key string
	Delete      bool
	Data        []byte // the log's after the call
}

// ValueChanges are what a settlement depends on, and what it changes: of each key the last write. All are of the tenant of
// the settlement's leases.
type ValueChanges struct {
	Reads  []ValueRead
	Lists  []ListRead
	Writes []ValueWrite

	sizes []sized // of what the writes replace
}

// bytes bounds what the writes take in a frame. c may be nil.
func (c *ValueChanges) bytes() (n int64) {
	if c == nil {
		return 0
	}
	for i := range c.Writes {
		w := &c.Writes[i]
		n += entryOverheadBytes + int64(len(w.Bucket)+len(w.Key)+len(w.Data))
	}
	return n
}

// adds reports whether a value is set. c may be nil.
func (c *ValueChanges) adds() bool {
	return c != nil && slices.ContainsFunc(c.Writes, func(w ValueWrite) bool { return !w.Delete })
}

// GetValue returns a value of a bucket, nil if there is none, and what a settlement needs in order to depend on it. The value
// is the caller's. What is being committed is seen before it is durable: whatever is committed later is never durable without it.
//
// Errors: a *NameError, a *limits.Error, a *KeyError; ErrDamaged if the value's record does not check, which writing mends.
func (l *Log) GetValue(tenant, bucket, key string) ([]byte, ValueRead, error) {
	name, err := bucketName(tenant, bucket)
	if err == nil {
		err = validKey(key)
	}
	if err != nil {
		return nil, ValueRead{}, err
	}
	data, version, asOf, err := l.value(name, key)
	if err != nil {
		return nil, ValueRead{}, err
	}
	return data, ValueRead{Bucket: bucket, Key: key, Version: version, asOf: asOf}, nil
}

// value returns a copy of a value, not nil if there is one.
func (l *Log) value(b BucketName, key string) (data []byte, version, asOf uint64, err error) {
	l.mu.Lock()
	asOf = l.state.values.written
	p, pending := l.pendingValue(b, key)
	l.mu.Unlock()
	if pending {
		if p.version != 0 {
			data = append([]byte{}, p.data...) // pending values are never changed in place
		}
		return data, p.version, asOf, nil
	}
	body, err := l.store.Get(b.key().Value(key))
	if errors.Is(err, store.ErrNotFound) {
		return nil, 0, asOf, nil
	}
	if err == nil {
		version, data, err = decodeValue(body)
	}
	if err != nil {
		return nil, 0, 0, fmt.Errorf("bucket %s: key %q: %w", b.Bucket, key, damagedOr(closedOr(err)))
	}
	return append([]byte{}, data...), version, asOf, nil
}

// pendingValue returns what the store is owed of a key. Log.mu is held.
func (l *Log) pendingValue(b BucketName, key string) (pendingValue, bool) {
	if p, ok := l.state.effects.values.get(b, key); ok {
		return p, true
	}
	if l.flushing != nil {
		return l.flushing.values.get(b, key)
	}
	return pendingValue{}, false
}

// ListKeys returns up to n keys of a bucket, those that come after a key, in the order of their bytes, whether there are more,
// and what a settlement needs in order to depend on the list. An n that is not positive, or above limits.StorePageKeys, is
// that. It looks at no values.
//
// Errors: a *NameError; those of ctx, if many writes to the bucket wait for the store.
func (l *Log) ListKeys(ctx context.Context, tenant, bucket, after string, n int) (keys []string, more bool, read ListRead, err error) {
	name, err := bucketName(tenant, bucket)
	if err != nil {
		return nil, false, ListRead{}, err
	}
	if n <= 0 || n > limits.StorePageKeys {
		n = limits.StorePageKeys
	}
	keys, more, asOf, err := l.listKeys(ctx, name, after, n)
	if err != nil {
		return nil, false, ListRead{}, err
	}
	return keys, more, ListRead{Bucket: bucket, after: after, n: n, sum: sumKeys(keys, more), asOf: asOf}, nil
}

func (l *Log) listKeys(ctx context.Context, b BucketName, after string, n int) (keys []string, more bool, asOf uint64, err error) {
	overlay, asOf, crowded := l.pendingKeys(b, after)
	if crowded { // bring the store up to date, rather than copy it all under the lock
		if err := l.submit(ctx, &request{abandonable: true}); err != nil {
			return nil, false, 0, err
		}
		overlay, asOf, _ = l.pendingKeys(b, after)
	}
	of := b.key()
	var added []string
	for key, there := range overlay {
		if there {
			added = append(added, key)
		}
	}
	slices.Sort(added)
	full := func() bool {
		more = len(keys) == n
		return more
	}
	err = l.store.Keys(of.Values(), of.Value(after), func(k []byte) bool {
		key := of.Name(k)
		if _, pending := overlay[key]; pending || key <= after {
			return true
		}
		for len(added) > 0 && added[0] < key {
			if full() {
				return false
			}
			keys, added = append(keys, added[0]), added[1:]
		}
		if full() {
			return false
		}
		keys = append(keys, key)
		return true
	})
	for !more && len(added) > 0 && !full() {
		keys, added = append(keys, added[0]), added[1:]
	}
	return keys, more, asOf, closedOr(err)
}

// pendingKeys returns the keys of a bucket after one of which the store is owed something, and whether they will have a
// value; or that there are too many to look at.
func (l *Log) pendingKeys(b BucketName, after string) (keys map[string]bool, asOf uint64, crowded bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	both := []map[string]pendingValue{nil, l.state.effects.values.of(b)}
	if l.flushing != nil {
		both[0] = l.flushing.values.of(b)
	}
	crowded = len(both[0])+len(both[1]) > limits.StorePendingBucket
	keys = make(map[string]bool, len(both[0])+len(both[1]))
	for _, pending := range both { // the newer ones last
		for key, v := range pending {
			if key > after {
				keys[key] = v.version != 0
			}
		}
	}
	return keys, l.state.values.written, crowded
}

// sumKeys returns a checksum of a list.
func sumKeys(keys []string, more bool) uint64 {
	h := fnv.New64a()
	for _, key := range keys {
		fmt.Fprintf(h, "%d:%s", len(key), key)
	}
	fmt.Fprint(h, more)
	return h.Sum64()
}

// SettleValues is Settle, and changes values in the same commit, given that everything in changes that was read is still as
// it was: else the error is ErrConflict, and nothing has changed. Writes need an Ack.
func (l *Log) SettleValues(ctx context.Context, settlements []Settlement, outbox []Message, changes ValueChanges) error {
	if err := changes.validate(settlements); err != nil {
		return err
	}
	changes.Reads, changes.Lists = slices.Clone(changes.Reads), slices.Clone(changes.Lists)
	if len(changes.Writes) > 0 {
		var err error
		if changes.sizes, err = l.sizeValues(settlements[0].Lease.Tenant, changes.Writes); err != nil {
			return err
		}
	}
	for range limits.StoreLooks {
		err := l.settle(ctx, settlements, outbox, &changes)
		if !errors.Is(err, errLookAgain) {
			return err
		}
		if err := l.lookAgain(ctx, settlements[0].Lease.Tenant, &changes); err != nil {
			return err
		}
	}
	err := l.settle(ctx, settlements, outbox, &changes)
	if errors.Is(err, errLookAgain) {
		return &ConflictError{Bucket: changes.bucket()}
	}
	return err
}

// errLookAgain says that memory doesn't tell whether something that was read has changed.
var errLookAgain = errors.New("look again")

// bucket names one that was read.
func (c *ValueChanges) bucket() string {
	if len(c.Lists) > 0 {
		return c.Lists[0].Bucket
	}
	return c.Reads[0].Bucket
}

// lookAgain reads again what the changes depend on.
func (l *Log) lookAgain(ctx context.Context, tenant string, c *ValueChanges) error {
	for i := range c.Reads {
		r := &c.Reads[i]
		_, version, asOf, err := l.value(BucketName{tenant, r.Bucket}, r.Key)
		if err != nil {
			return err
		}
		if version != r.Version {
			return &ConflictError{Bucket: r.Bucket, Key: r.Key}
		}
		r.asOf = asOf
	}
	for i := range c.Lists {
		r := &c.Lists[i]
		keys, more, asOf, err := l.listKeys(ctx, BucketName{tenant, r.Bucket}, r.after, r.n)
		if err != nil {
			return err
		}
		if sumKeys(keys, more) != r.sum {
			return &ConflictError{Bucket: r.Bucket}
		}
		r.asOf = asOf
	}
	return nil
}

// planValues checks that what was read is as it was, and returns what is to be written. Log.mu is held.
func (l *Log) planValues(tenant string, c *ValueChanges) ([]valueWrite, error) {
	v := &l.state.values
	for i := range c.Reads {
		r := &c.Reads[i]
		last := v.recent.last(BucketName{tenant, r.Bucket}, r.Key)
		switch {
		case last > r.asOf && last != r.Version:
			return nil, &ConflictError{Bucket: r.Bucket, Key: r.Key}
		case r.asOf < v.recent.floor:
			return nil, errLookAgain
		}
	}
	for i := range c.Lists {
		if r := &c.Lists[i]; v.buckets[BucketName{tenant, r.Bucket}] > r.asOf {
			return nil, errLookAgain
		}
	}
	fresh := map[string]struct{}{}
	writes := make([]valueWrite, len(c.Writes))
	for i := range c.Writes {
		w := &c.Writes[i]
		name := BucketName{tenant, w.Bucket}
		if _, known := v.buckets[name]; !known {
			fresh[w.Bucket] = struct{}{}
		}
		before, err := l.replaced(name, w.Key, c.sizes[i])
		if err != nil {
			return nil, err
		}
		writes[i] = valueWrite{bucket: name, key: w.Key, gone: w.Delete, data: w.Data, before: before}
	}
	buckets := int64(l.state.uses(tenant).buckets)
	if err := limits.Check(limits.NameBuckets, buckets+int64(len(fresh)), max(limits.BucketsPerTenant, buckets)); err != nil {
		return nil, err
	}
	return writes, l.roomForValues(tenant, writes)
}

// validate checks what needs no state.
func (c *ValueChanges) validate(settlements []Settlement) error {
	if len(c.Reads)+len(c.Lists)+len(c.Writes) == 0 {
		return nil
	}
	acked := false
	for i := range settlements {
		acked = acked || settlements[i].Verdict == Ack
		if settlements[i].Lease.Tenant != settlements[0].Lease.Tenant {
			return errors.New("settle: values belong to one tenant, and the leases are of several")
		}
	}
	if !acked {
		return errors.New("settle: values are committed with an Ack, and there is none")
	}
	if err := limits.Check(limits.NameStoreOps, int64(len(c.Reads)+len(c.Lists)+len(c.Writes)), limits.StoreOperations); err != nil {
		return err
	}
	var bytes int64
	for i := range c.Writes {
		w := &c.Writes[i]
		bytes += int64(len(w.Key) + len(w.Data))
		if err := errors.Join(ValidBucket(w.Bucket), ValidValue(w.Key, int64(len(w.Data)))); err != nil {
			return err
		}
	}
	return limits.Check(limits.NameStoredCommit, bytes, limits.StoredCommitBytes)
}

// KeyError says that no value can stand under a key. It is quoted and cut.
type KeyError struct{ Key string }

// Error implements error.
func (e *KeyError) Error() string {
	return fmt.Sprintf("key %.80q is not allowed: want 1 to %d bytes of UTF-8", e.Key, limits.StoredKeyBytes)
}

// ValidValue returns a *KeyError or *limits.Error if no bucket takes a value of so many bytes under key.
func ValidValue(key string, bytes int64) error {
	if err := validKey(key); err != nil {
		return err
	}
	return limits.Check(limits.NameStoredValue, bytes, limits.StoredValueBytes)
}

func validKey(key string) error {
	if key == "" || !utf8.ValidString(key) {
		return &KeyError{strings.Clone(key)}
	}
	return limits.Check(limits.NameStoredKey, int64(len(key)), limits.StoredKeyBytes)
}

func bucketName(tenant, bucket string) (BucketName, error) {
	return BucketName{tenant, bucket}, errors.Join(ValidTenant(tenant), ValidBucket(bucket))
}
