package substrate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/longshore/longshore/limits"
)

const testBucket = "stock"

// set commits writes of the test bucket with the acknowledgement of a message made for it: "key=value", or "key" to delete.
func set(t *testing.T, l *Log, pairs ...string) {
	t.Helper()
	require.NoError(t, trySet(t, l, testTenant, testBucket, ValueChanges{}, pairs...))
}

func trySet(t *testing.T, l *Log, tenant, bucket string, c ValueChanges, pairs ...string) error {
	t.Helper()
	for _, p := range pairs {
		key, value, keep := strings.Cut(p, "=")
		c.Writes = append(c.Writes, ValueWrite{Bucket: bucket, Key: key, Delete: !keep, Data: []byte(value)})
	}
	return l.SettleValues(t.Context(), []Settlement{{Lease: leased(t, l, tenant), Verdict: Ack}}, nil, c)
}

// leased returns the lease of a new message of a topic that nobody else claims from.
func leased(t *testing.T, l *Log, tenant string) Lease {
	t.Helper()
	m := l.newMessage("valued", "x")
	m.Tenant = tenant
	_, err := l.Publish(t.Context(), m)
	require.NoError(t, err)
	r := claimRequest("valued", 1)
	r.Tenant = tenant
	got, err := l.Claim(t.Context(), r)
	require.NoError(t, err)
	require.Len(t, got.Deliveries, 1)
	return got.Deliveries[0].Lease
}

func get(t *testing.T, l *Log, key string) (string, ValueRead) {
	t.Helper()
	data, read, err := l.GetValue(testTenant, testBucket, key)
	require.NoError(t, err)
	require.Equal(t, read.Version != 0, data != nil)
	return string(data), read
}

func list(t *testing.T, l *Log, after string, n int) ([]string, bool, ListRead) {
	t.Helper()
	keys, more, read, err := l.ListKeys(t.Context(), testTenant, testBucket, after, n)
	require.NoError(t, err)
	return keys, more, read
}

func TestValues(t *testing.T) {
	t.Run("AreCommittedWithTheAckAndTheOutbox", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		lease := leased(t, l, testTenant)
		changes := ValueChanges{Writes: []ValueWrite{{Bucket: testBucket, Key: "apples", Data: []byte("3")}, {Bucket: testBucket, Key: "none", Data: nil}}}
		require.NoError(t, l.SettleValues(t.Context(), []Settlement{{Lease: lease, Verdict: Ack}}, []Message{l.newMessage("out", "done")}, changes))
		value, read := get(t, l, "apples")
		require.Equal(t, "3", value)
		require.NotZero(t, read.Version)
		_, read = get(t, l, "none")
		require.NotZero(t, read.Version, "an empty value is one")
		require.Equal(t, []string{"done"}, payloads(claim(t, l, "out", 10)))
		require.Zero(t, stats(t, l, "valued").Backlog())
	})
	t.Run("AreNotWrittenWithoutAnAck", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		lease := leased(t, l, testTenant)
		changes := ValueChanges{Writes: []ValueWrite{{Bucket: testBucket, Key: "apples", Data: []byte("3")}}}
		require.ErrorContains(t, l.SettleValues(t.Context(), []Settlement{{Lease: lease, Verdict: Retry}}, nil, changes), "Ack")
		require.NoError(t, l.Settle(t.Context(), []Settlement{{Lease: lease, Verdict: Retry}}, nil))
		require.ErrorIs(t, l.SettleValues(t.Context(), []Settlement{{Lease: lease, Verdict: Ack}}, nil, changes), ErrLeaseLost)
		_, read := get(t, l, "apples")
		require.Zero(t, read.Version)
	})
	t.Run("AreReadBeforeAndAfterTheStoreHasThem", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		set(t, l, "a=1", "b=2")
		for range 2 {
			value, _ := get(t, l, "a")
			require.Equal(t, "1", value)
			storeUpToDate(t, l)
		}
		set(t, l, "a=3", "b")
		for range 2 {
			value, _ := get(t, l, "a")
			require.Equal(t, "3", value)
			_, read := get(t, l, "b")
			require.Zero(t, read.Version)
			storeUpToDate(t, l)
		}
		require.Zero(t, l.state.effects.bytes)
	})
	t.Run("BelongToATenantAndABucket", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		require.NoError(t, trySet(t, l, "acme", "ab", ValueChanges{}, "c=1"))
		require.NoError(t, trySet(t, l, "acme", "a", ValueChanges{}, "bc=2"))
		require.NoError(t, trySet(t, l, "acmea", "b", ValueChanges{}, "c=3"))
		storeUpToDate(t, l)
		for _, c := range [][4]string{{"acme", "ab", "c", "1"}, {"acme", "a", "bc", "2"}, {"acmea", "b", "c", "3"}} {
			data, _, err := l.GetValue(c[0], c[1], c[2])
			require.NoError(t, err)
			require.Equal(t, c[3], string(data))
			keys, _, _, err := l.ListKeys(t.Context(), c[0], c[1], "", 0)
			require.NoError(t, err)
			require.Equal(t, []string{c[2]}, keys)
		}
		_, read, err := l.GetValue("acmea", "ab", "c")
		require.NoError(t, err)
		require.Zero(t, read.Version)
		one, other := leased(t, l, "acme"), leased(t, l, "acmea")
		err = l.SettleValues(t.Context(), []Settlement{{Lease: one, Verdict: Ack}, {Lease: other, Verdict: Ack}}, nil,
			ValueChanges{Writes: []ValueWrite{{Bucket: "a", Key: "k"}}})
		require.ErrorContains(t, err, "one tenant")
	})
}

func TestASettlementThatDependsOnValues(t *testing.T) {
	t.Run("IsRefusedIfOneOfThemChanged", func(t *testing.T) {
		for _, stored := range []bool{false, true} {
			l := openLog(t, t.TempDir())
			set(t, l, "a=1", "gone=1")
			_, a := get(t, l, "a")
			_, gone := get(t, l, "gone")
			_, absent := get(t, l, "absent")
			set(t, l, "a=2", "gone", "absent=1")
			if stored {
				storeUpToDate(t, l)
			}
			for _, read := range []ValueRead{a, gone, absent} {
				conflict := new(ConflictError)
				err := trySet(t, l, testTenant, testBucket, ValueChanges{Reads: []ValueRead{read}}, "x=1")
				require.ErrorAs(t, err, &conflict)
				require.ErrorIs(t, err, ErrConflict)
				require.Equal(t, read.Key, conflict.Key)
			}
			_, x := get(t, l, "x")
			require.Zero(t, x.Version)
			require.EqualValues(t, 3, stats(t, l, "valued").Leased, "the leases are still held")
		}
	})
	t.Run("IsTakenIfOthersChanged", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		set(t, l, "a=1")
		_, a := get(t, l, "a")
		set(t, l, "b=2")
		require.NoError(t, trySet(t, l, testTenant, testBucket, ValueChanges{Reads: []ValueRead{a}}, "a=3"))
	})
	t.Run("ReadsAgainWhatMemoryHasForgotten", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		set(t, l, "a=1", "b=1")
		_, a := get(t, l, "a")
		_, b := get(t, l, "b")
		set(t, l, "b=2")
		for i := range limits.StoreRecentWrites/limits.StoreOperations + 2 {
			var pairs []string
			for j := range limits.StoreOperations {
				pairs = append(pairs, fmt.Sprintf("other%06d=", i*limits.StoreOperations+j))
			}
			set(t, l, pairs...)
		}
		require.Greater(t, l.state.values.recent.floor, b.asOf)
		require.LessOrEqual(t, len(l.state.values.recent.young)+len(l.state.values.recent.old), limits.StoreRecentWrites)
		require.ErrorIs(t, trySet(t, l, testTenant, testBucket, ValueChanges{Reads: []ValueRead{b}}), ErrConflict)
		require.NoError(t, trySet(t, l, testTenant, testBucket, ValueChanges{Reads: []ValueRead{a}}))
	})
	t.Run("IsRefusedIfAListOfKeysChanged", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		set(t, l, "a=1", "b=1")
		_, _, read := list(t, l, "", 0)
		set(t, l, "a=2")
		require.NoError(t, trySet(t, l, testTenant, testBucket, ValueChanges{Lists: []ListRead{read}}), "the keys are the same")
		for _, change := range []string{"c=1", "a"} {
			_, _, read := list(t, l, "", 0)
			set(t, l, change)
			require.ErrorIs(t, trySet(t, l, testTenant, testBucket, ValueChanges{Lists: []ListRead{read}}), ErrConflict)
		}
	})
	t.Run("NeverLosesAnIncrement", func(t *testing.T) {
		l := openLog(t, t.TempDir())
		var adders sync.WaitGroup
		for range 4 {
			leases := make([]Lease, 25)
			for i := range leases {
				leases[i] = leased(t, l, testTenant)
			}
			adders.Go(func() {
				for _, lease := range leases {
					for {
						data, read, err := l.GetValue(testTenant, testBucket, "n")
						if err != nil {
							t.Error(err)
							return
						}
						err = l.SettleValues(t.Context(), []Settlement{{Lease: lease, Verdict: Ack}}, nil, ValueChanges{
							Reads: []ValueRead{read}, Writes: []ValueWrite{{Bucket: testBucket, Key: "n", Data: append(data, '.')}},
						})
						if err == nil {
							break
						}
						if !errors.Is(err, ErrConflict) {
							t.Error(err)
							return
						}
					}
				}
			})
		}
		adders.Wait()
		value, _ := get(t, l, "n")
		require.Len(t, value, 100)
	})
}

func TestValuesOutliveACrash(t *testing.T) {
	t.Run("BetweenTheFrameAndTheStore", func(t *testing.T) {
		dir := t.TempDir()
		l := openLog(t, dir)
		set(t, l, "a=1", "b=1", "c=1")
		storeUpToDate(t, l)
		set(t, l, "a=2", "b")
		_, before := get(t, l, "a")
		after := reopenCrashed(t, dir)
		value, read := get(t, after, "a")
		require.Equal(t, "2", value)
		require.Equal(t, before.Version, read.Version)
		keys, _, _ := list(t, after, "", 0)
		require.Equal(t, []string{"a", "c"}, keys)
		require.Equal(t, 1, after.state.tenants[testTenant].buckets)
		require.Empty(t, after.state.effects.values.buckets)
	})
	t.Run("AndARestart", func(t *testing.T) {
		dir := t.TempDir()
		l, err := Open(t.Context(), Options{Dir: dir, SegmentBytes: testSegment})
		require.NoError(t, err)
		set(t, l, "a=1")
		require.NoError(t, l.Close())
		l = openLog(t, dir)
		value, read := get(t, l, "a")
		require.Equal(t, "1", value)
		require.NoError(t, trySet(t, l, testTenant, testBucket, ValueChanges{Reads: []ValueRead{read}}, "a=2"))
	})
}

func TestValuesAreInABackup(t *testing.T) {
	l := openLog(t, t.TempDir())
	set(t, l, "a=1", "b=2")
	var b strings.Builder
	_, err := l.Backup(t.Context(), &b)
	require.NoError(t, err)
	dir := t.TempDir()
	_, err = Restore(t.Context(), dir, strings.NewReader(b.String()))
	require.NoError(t, err)
	restored := openLog(t, dir)
	value, read := get(t, restored, "a")
	require.Equal(t, "1", value)
	require.NoError(t, trySet(t, restored, testTenant, testBucket, ValueChanges{Reads: []ValueRead{read}}, "a=2"))
	_, newer := get(t, restored, "a")
	require.Greater(t, newer.Version, read.Version)
}

func TestAValueWhoseRecordDoesNotCheckIsNeverGiven(t *testing.T) {
	dir := t.TempDir()
	l, err := Open(t.Context(), Options{Dir: dir, SegmentBytes: testSegment})
	require.NoError(t, err)
	set(t, l, "a=1", "b=1")
	require.NoError(t, l.Close())
	overwrite(t, dir, BucketName{testTenant, testBucket}.key().Value("a"))
	l = openLog(t, dir)
	_, _, err = l.GetValue(testTenant, testBucket, "a")
	require.ErrorIs(t, err, ErrDamaged)
	keys, _, _ := list(t, l, "", 0)
	require.Equal(t, []string{"a", "b"}, keys)
	set(t, l, "a=2")
	storeUpToDate(t, l)
	value, _ := get(t, l, "a")
	require.Equal(t, "2", value)
}

func TestKeysAreListedInPages(t *testing.T) {
	l := openLog(t, t.TempDir())
	var want []string
	for i := range limits.StorePageKeys + 50 {
		key := fmt.Sprintf("k%04d", i)
		want = append(want, key)
		if i%3 != 0 {
			set(t, l, key+"=1")
		}
	}
	set(t, l, "k0001x=1")
	storeUpToDate(t, l)
	for i := 0; i < len(want); i += 3 { // these are pending, or in the batch that is being written
		set(t, l, want[i]+"=1")
	}
	set(t, l, "k0001x")
	page, more, _ := list(t, l, "", 0)
	require.True(t, more)
	require.Equal(t, want[:limits.StorePageKeys], page)
	rest, more, _ := list(t, l, page[len(page)-1], 0)
	require.False(t, more)
	require.Equal(t, want[limits.StorePageKeys:], rest)
	var all []string
	for after := ""; ; {
		page, more, _ := list(t, l, after, 7)
		all = append(all, page...)
		if !more {
			break
		}
		require.Len(t, page, 7)
		after = page[6]
	}
	require.Equal(t, want, all)
	none, more, _ := list(t, l, "z", 0)
	require.Empty(t, none)
	require.False(t, more)
}

func TestAListWaitsForTheStoreIfManyWritesOfItsBucketAreOwed(t *testing.T) {
	l := openLog(t, t.TempDir())
	for i := 0; i <= limits.StorePendingBucket; i += limits.StoreOperations {
		var pairs []string
		for j := range limits.StoreOperations {
			pairs = append(pairs, fmt.Sprintf("k%06d=", i+j))
		}
		set(t, l, pairs...)
	}
	keys, more, _ := list(t, l, "", 3)
	require.Equal(t, []string{"k000000", "k000001", "k000002"}, keys)
	require.True(t, more)
}

func TestValuesAreBounded(t *testing.T) {
	l := openLog(t, t.TempDir())
	write := func(writes ...ValueWrite) error {
		for i := range writes {
			writes[i].Bucket = testBucket
		}
		return l.SettleValues(t.Context(), []Settlement{{Lease: leased(t, l, testTenant), Verdict: Ack}}, nil, ValueChanges{Writes: writes})
	}
	long := strings.Repeat("k", limits.StoredKeyBytes)
	require.NoError(t, write(ValueWrite{Key: long}))
	require.ErrorIs(t, write(ValueWrite{Key: long + "k"}), &limits.Error{Name: limits.NameStoredKey})
	_, _, err := l.GetValue(testTenant, testBucket, long+"k")
	require.ErrorIs(t, err, &limits.Error{Name: limits.NameStoredKey})
	for _, key := range []string{"", "\xff"} {
		require.ErrorAs(t, write(ValueWrite{Key: key}), new(*KeyError))
	}
	require.ErrorIs(t, write(ValueWrite{Key: "k", Data: make([]byte, limits.StoredValueBytes+1)}), &limits.Error{Name: limits.NameStoredValue})
	whole := make([]byte, limits.StoredValueBytes-1)
	require.ErrorIs(t, write(ValueWrite{Key: "a", Data: whole}, ValueWrite{Key: "b", Data: whole}, ValueWrite{Key: "c", Data: whole},
		ValueWrite{Key: "d", Data: whole}, ValueWrite{Key: "e"}), &limits.Error{Name: limits.NameStoredCommit})
	many := slices.Repeat([]ValueWrite{{Key: "k"}}, limits.StoreOperations+1)
	require.ErrorIs(t, write(many...), &limits.Error{Name: limits.NameStoreOps})

	require.NoError(t, ValidBucket(strings.Repeat("b", limits.BucketBytes)))
	for _, name := range []string{"", ".", "a/b", "a b", strings.Repeat("b", limits.BucketBytes+1)} {
		require.ErrorAs(t, ValidBucket(name), new(*NameError))
		_, _, err := l.GetValue(testTenant, name, "k")
		require.ErrorAs(t, err, new(*NameError))
		_, _, _, err = l.ListKeys(t.Context(), testTenant, name, "", 0)
		require.ErrorAs(t, err, new(*NameError))
	}
	for i := 1; i < limits.BucketsPerTenant; i++ { // the test bucket is one
		require.NoError(t, trySet(t, l, testTenant, fmt.Sprintf("b%d", i), ValueChanges{}, "k=1"))
	}
	require.ErrorIs(t, trySet(t, l, testTenant, "another", ValueChanges{}, "k=1"), &limits.Error{Name: limits.NameBuckets})
	require.NoError(t, trySet(t, l, testTenant, "b1", ValueChanges{}, "k=2"))
	require.NoError(t, trySet(t, l, "other", "another", ValueChanges{}, "k=1"))
}

func TestTheLargestValueIsStored(t *testing.T) {
	l, err := Open(t.Context(), Options{Dir: t.TempDir(), SegmentBytes: 8 * limits.MiB})
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	whole := strings.Repeat("v", limits.StoredValueBytes)
	set(t, l, "k="+whole)
	storeUpToDate(t, l)
	value, _ := get(t, l, "k")
	require.Equal(t, whole, value)
}

func TestWhatValuesHoldInMemoryIsOwedToTheStore(t *testing.T) {
	l, err := Open(t.Context(), Options{Dir: t.TempDir(), SegmentBytes: 64 * limits.MiB})
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	value := strings.Repeat("v", limits.StoredValueBytes/2)
	for i := range 3 * limits.WriteBehindLagBytes / len(value) {
		set(t, l, fmt.Sprintf("k%d=%s", i, value))
		l.mu.Lock()
		require.LessOrEqual(t, l.state.effects.bytes, int64(limits.WriteBehindLagBytes+limits.StoredCommitBytes))
		l.mu.Unlock()
	}
	storeUpToDate(t, l)
	require.Eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.state.effects.bytes == 0 && l.flushing == nil
	}, 5*time.Second, time.Millisecond)
}
